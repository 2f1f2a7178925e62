//! What the screen says of tool calls: one line, the result folded, changes in colours, several readings as one line.
//! Pure.

use crate::terminal::figures::took;
use crate::terminal::paint::{Line, Style, Theme};
use std::time::Duration;

/// Lines of a result that are shown.
const FOLD: usize = 15;
/// Lines of a result that only tells what was read.
const FOLD_READING: usize = 0;
/// Names of a summary.
const MOST_NAMES: usize = 4;

/// A call that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EndedCall {
    pub(super) tool: String,
    pub(super) subject: String,
    pub(super) is_error: bool,
    pub(super) result: String,
    pub(super) patch: Vec<String>,
    pub(super) took: Duration,
}

impl EndedCall {
    /// It only looked at something: its result is for the model.
    pub(super) fn is_reading(&self) -> bool {
        !self.is_error && is_reading(&self.tool)
    }
}

fn is_reading(tool: &str) -> bool {
    matches!(tool, "read_file" | "glob_search" | "grep_search" | "list_dir" | "ls" | "ToolSearch" | "Skill")
}

/// The line of a call.
pub(super) fn head(tool: &str, subject: &str, sign: &str, style: Style, theme: &Theme) -> Line {
    Line::styled(format!("{sign} "), style).with(tool, theme.strong).with(format!(" {subject}"), Style::PLAIN)
}

/// All lines of an ended call.
pub(super) fn ended(call: &EndedCall, theme: &Theme, width: usize) -> Vec<Line> {
    let style = if call.is_error { theme.error } else { theme.good };
    let mut first = head(&call.tool, &call.subject, "●", style, theme);
    if call.took >= Duration::from_millis(500) {
        let room = width.saturating_sub(10);
        first = first.cut(room).with(format!(" {}", took(call.took)), theme.quiet);
    }
    let mut lines = vec![first.cut(width)];
    let body: Vec<Line> =
        if call.patch.is_empty() { plain(call, theme) } else { changes(&call.patch, theme) };
    let fold = if call.is_reading() { FOLD_READING } else { FOLD };
    let folded: Vec<Line> = body.iter().flat_map(|line| line.fold(width.saturating_sub(4))).collect();
    let hidden = folded.len().saturating_sub(fold);
    for (n, line) in folded.into_iter().take(fold).enumerate() {
        let mut shown = Line::styled(if n == 0 { "  ⎿ " } else { "    " }, theme.quiet);
        shown.append(line);
        lines.push(shown);
    }
    if hidden > 0 {
        let what = if hidden == 1 { "line" } else { "lines" };
        let more = if fold == 0 {
            format!("  ⎿ {hidden} {what}")
        } else {
            format!("    … {hidden} more {what}")
        };
        lines.push(Line::styled(format!("{more} (Ctrl-O shows all)"), theme.quiet).cut(width));
    }
    lines
}

fn plain(call: &EndedCall, theme: &Theme) -> Vec<Line> {
    let style = if call.is_error { theme.error } else { theme.quiet };
    let text = call.result.trim_end();
    // More than is folded is only counted: a screen has no use for a megabyte.
    text.lines().map(|line| Line::styled(clipped(line), style)).collect()
}

fn clipped(line: &str) -> &str {
    const LONGEST: usize = 4_000;
    &line[..line.floor_char_boundary(LONGEST.min(line.len()))]
}

/// The lines of a difference, in colours.
pub(super) fn changes(patch: &[String], theme: &Theme) -> Vec<Line> {
    let styled = |line: &String| {
        let style = match line.as_bytes().first() {
            Some(b'+') => theme.added,
            Some(b'-') => theme.removed,
            Some(b'@') => theme.accent,
            _ => theme.quiet,
        };
        Line::styled(clipped(line), style)
    };
    patch.iter().map(styled).collect()
}

/// Several readings in one line.
pub(super) fn summary(calls: &[EndedCall], theme: &Theme, width: usize) -> Vec<Line> {
    if let [call] = calls {
        return ended(call, theme, width);
    }
    let mut line = Line::styled("● ", theme.good);
    let mut tools: Vec<&str> = Vec::new();
    for call in calls {
        if !tools.contains(&call.tool.as_str()) {
            tools.push(&call.tool);
        }
    }
    for (n, tool) in tools.iter().enumerate() {
        let subjects: Vec<&str> =
            calls.iter().filter(|call| call.tool == *tool).map(|call| call.subject.as_str()).collect();
        if n > 0 {
            line.push(" · ", theme.quiet);
        }
        line.push(*tool, theme.strong);
        let times = if subjects.len() > 1 { format!(" ×{}", subjects.len()) } else { String::new() };
        let more = subjects.len().saturating_sub(MOST_NAMES);
        let names = subjects[..subjects.len() - more].join(", ");
        let rest = if more > 0 { format!(" + {more} more") } else { String::new() };
        line.push(format!("{times} {names}{rest}"), Style::PLAIN);
    }
    vec![line.cut(width)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::paint::ThemeName;

    fn call(tool: &str, subject: &str, result: &str) -> EndedCall {
        EndedCall {
            tool: tool.into(),
            subject: subject.into(),
            is_error: false,
            result: result.into(),
            patch: Vec::new(),
            took: Duration::from_millis(1200),
        }
    }

    fn shown(lines: &[Line]) -> String {
        lines.iter().map(Line::text).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn calls_are_shown_as_reviewed() {
        let theme = ThemeName::Dark.theme();
        let long: String = (1..=40).map(|n| format!("line {n}\n")).collect();
        let edit = EndedCall {
            patch: vec!["@@ -1,2 +1,2 @@".into(), " a".into(), "-b".into(), "+B\x1b[2J".into()],
            ..call("edit_file", "src/x.rs", "edited")
        };
        let failed = EndedCall { is_error: true, ..call("bash", "false", "exit code 1") };
        let readings = [
            call("read_file", "a.rs", "x\ny\n"),
            call("read_file", "b.rs", "z"),
            call("glob_search", "*.md", ""),
        ];
        let all = [
            shown(&ended(&call("bash", "cargo test", &long), &theme, 60)),
            shown(&ended(&edit, &theme, 60)),
            shown(&ended(&failed, &theme, 40)),
            shown(&ended(&call("read_file", "a.rs", "x\ny\n"), &theme, 60)),
            shown(&summary(&readings, &theme, 60)),
        ];
        insta::assert_snapshot!(all.join("\n\n"));
    }

    #[test]
    fn a_line_of_a_megabyte_is_folded() {
        let lines = ended(&call("bash", "x", &"y".repeat(1_000_000)), &ThemeName::Dark.theme(), 80);
        assert!(lines.len() <= FOLD + 2 && lines.iter().all(|line| line.width() <= 80));
    }
}
