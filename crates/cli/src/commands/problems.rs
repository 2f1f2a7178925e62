//! Problems of a workflow file: with an excerpt on a terminal, plain on a pipe, as JSON for programs.

use crate::args::Format;
use crate::error::ExpectedError;
use crate::terminal::{say, stderr_is_terminal, write_stdout};
use claw_kernel::visible::visible;
use claw_orchestrator::workflow::problem::Problem;
use serde_json::json;
use std::fmt::Write;
use std::path::Path;
use unicode_width::UnicodeWidthStr;

/// Longest line of source that is shown, in characters; of longer ones the place around the problem.
const LONGEST: usize = 160;

/// The text of a file that a problem names: prompts and nested files have problems too.
pub(super) type TextOf<'a> = &'a dyn Fn(&Path) -> Option<String>;

/// Tells all of them. The error that comes back counts them.
///
/// # Errors
/// Standard output.
pub(super) fn tell(
    file: &Path,
    text_of: TextOf<'_>,
    problems: &[Problem],
    format: Format,
) -> Result<ExpectedError, ExpectedError> {
    warn(text_of, problems);
    let told = ExpectedError::Problems { file: file.to_owned(), count: problems.len() };
    if format != Format::Text {
        let data = json!({
            "error": told.to_string(),
            "exit_code": told.exit_code(),
            "problems": problems,
        });
        write_stdout(format!("{data}\n"))?;
    }
    Ok(told)
}

/// Tells them on standard error.
pub(super) fn warn(text_of: TextOf<'_>, problems: &[Problem]) {
    let excerpts = stderr_is_terminal();
    let mut known: Option<(&Path, String)> = None;
    for problem in problems {
        if !excerpts {
            say(&visible(&format!("{problem}\n")));
            continue;
        }
        let file = problem.place.file.as_path();
        let source = match known.take().filter(|(path, _)| *path == file) {
            Some((_, text)) => text,
            None => text_of(file).unwrap_or_default(),
        };
        say(&visible(&excerpt(problem, &source)));
        known = Some((file, source));
    }
}

/// The problem with the line it stands on and a mark under it.
fn excerpt(problem: &Problem, source: &str) -> String {
    let mut out = format!("{} {}", problem.code, problem.place);
    if !problem.path.is_empty() {
        let _ = write!(out, " {}", problem.path);
    }
    let _ = writeln!(out, "\n  {}", problem.message);
    if let Some((before, marked, after)) = marked(problem, source) {
        let number = problem.place.line.to_string();
        let blank = " ".repeat(number.len());
        let indent = " ".repeat(before.width());
        let mark = "^".repeat(marked.width().max(1));
        let _ = writeln!(out, " {blank} |\n {number} | {before}{marked}{after}\n {blank} | {indent}{mark}");
    }
    if let Some(help) = &problem.help {
        let _ = writeln!(out, "  help: {help}");
    }
    out.push('\n');
    out
}

/// The line, cut before and behind what is marked.
fn marked(problem: &Problem, source: &str) -> Option<(String, String, String)> {
    let place = &problem.place;
    let line = source.lines().nth(place.line.checked_sub(1)?)?;
    let chars: Vec<char> = line.chars().map(|c| if c == '\t' { ' ' } else { c }).collect();
    let start = place.column.saturating_sub(1).min(chars.len());
    let wanted =
        source.get(place.span.clone()).map_or(1, |text| text.lines().next().unwrap_or("").chars().count());
    let end = (start + wanted.max(1)).min(chars.len()).max(start);
    let from = if chars.len() > LONGEST { start.saturating_sub(LONGEST / 4) } else { 0 };
    let to = if chars.len() > LONGEST { (from + LONGEST).min(chars.len()) } else { chars.len() };
    let end = end.min(to);
    let text =
        |range: std::ops::Range<usize>| chars.get(range).unwrap_or_default().iter().collect::<String>();
    Some((text(from..start), text(start..end), text(end..to)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use claw_orchestrator::workflow::problem::{Code, Place};

    fn problem(line: usize, column: usize, span: std::ops::Range<usize>) -> Problem {
        Problem {
            code: Code::E111,
            place: Place { file: "w.toml".into(), line, column, span },
            path: "node.plan.needs".into(),
            message: "no node is named `diif`".into(),
            help: Some("did you mean `diff`?".into()),
        }
    }

    #[test]
    fn a_problem_shows_its_place() {
        let source = "[node.plan]\nneeds = [\"日\", \"diif\"]\n";
        let at = source.find("\"diif").unwrap();
        insta::assert_snapshot!(excerpt(&problem(2, 15, at..at + 6), source));
    }

    #[test]
    fn a_place_outside_the_source_does_no_harm() {
        for (line, column) in [(0, 0), (1, 900), (99, 1)] {
            let text = excerpt(&problem(line, column, 5..5000), "schema = 1");
            assert!(text.contains("E111") && text.contains("did you mean"), "{text}");
        }
        let long = format!("x = \"{}\"", "é".repeat(5000));
        assert!(excerpt(&problem(1, 5, 4..9000), &long).chars().count() < 700);
    }
}
