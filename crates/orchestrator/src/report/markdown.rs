//! `report.md`: a run for people. What ran, what it cost, what failed and why, what to do next.

use super::plain::one_line;
use super::run_report::{RunReport, StepReport};
use super::words::{money, span};
use crate::journal::record::{EndState, RunStatus};
use claw_kernel::visible::visible;
use serde_json::Value;
use std::fmt::Write as _;
use std::time::Duration;

/// Rows of the table of steps.
const MOST_ROWS: usize = 500;
/// Bytes of the result shown in full.
const MOST_RESULT: usize = 16 * 1024;

/// The text of `report.md`. Writing to a String cannot fail.
pub fn render(report: &RunReport) -> String {
    let mut text = String::with_capacity(4096);
    head(&mut text, report);
    failures(&mut text, report);
    steps(&mut text, report);
    denials(&mut text, report);
    result(&mut text, report);
    if !report.notes.is_empty() {
        text.push_str("\n## Notes\n\n");
        for note in &report.notes {
            let _ = writeln!(text, "- {}", one_line(note));
        }
    }
    next(&mut text, report);
    text
}

fn head(text: &mut String, report: &RunReport) {
    let _ = writeln!(text, "# {}: {}\n", one_line(&report.workflow), report.status.as_str());
    let _ = writeln!(text, "- run: {}", report.run_id);
    let _ = writeln!(text, "- exit code: {}", report.exit_code);
    let _ = writeln!(text, "- steps: {}", counts(report));
    let usage = &report.usage;
    let _ = writeln!(
        text,
        "- cost: {}; tokens: {} in, {} out, {} cache read, {} cache write",
        money(usage),
        usage.input,
        usage.output,
        usage.cache_read,
        usage.cache_write
    );
    if usage.unknown > 0 {
        let _ = writeln!(text, "- requests whose usage is not known: {}", usage.unknown);
    }
    let _ = writeln!(text, "- time: {}", span(report.elapsed));
    let _ = writeln!(text, "- files: {}", report.folder.display());
}

fn counts(report: &RunReport) -> String {
    let states = [
        EndState::Succeeded,
        EndState::Cached,
        EndState::Failed,
        EndState::Cancelled,
        EndState::Interrupted,
        EndState::Skipped,
    ];
    let mut parts: Vec<String> = states
        .into_iter()
        .map(|state| (report.count(state), state))
        .filter(|(count, _)| *count > 0)
        .map(|(count, state)| format!("{count} {}", state.as_str()))
        .collect();
    let pending = report.steps.iter().filter(|step| step.status.is_none()).count();
    if pending > 0 {
        parts.push(format!("{pending} not run"));
    }
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}

fn failures(text: &mut String, report: &RunReport) {
    let failed: Vec<&StepReport> = report.failures();
    if failed.is_empty() {
        return;
    }
    text.push_str("\n## What failed\n");
    for step in failed.iter().take(MOST_ROWS) {
        let class = step.error_class.map(class_word).unwrap_or_default();
        let _ = writeln!(text, "\n### {}\n", step.step);
        let times = if step.attempts == 1 { "attempt" } else { "attempts" };
        let _ = writeln!(
            text,
            "{} {times}{class}: {}",
            step.attempts,
            step.error.as_deref().map_or_else(|| "no word why".to_owned(), one_line)
        );
        if let Some(file) = &step.output_file {
            let _ = writeln!(text, "\nOutput: {}", file.display());
        }
    }
    more(text, failed.len());
}

fn class_word(class: claw_agents::outcome::FailureClass) -> String {
    match serde_json::to_value(class) {
        Ok(Value::String(word)) => format!(", {word}"),
        Ok(_) | Err(_) => String::new(),
    }
}

fn steps(text: &mut String, report: &RunReport) {
    if report.steps.is_empty() {
        return;
    }
    text.push_str(
        "\n## Steps\n\n| step | status | attempts | time | cost | why |\n|---|---|---|---|---|---|\n",
    );
    for step in report.steps.iter().take(MOST_ROWS) {
        let status = step.status.map_or("not run", EndState::as_str);
        let time = step.seconds.and_then(|secs| Duration::try_from_secs_f64(secs).ok());
        let why = step.error.as_deref().map(one_line).unwrap_or_default();
        let _ = writeln!(
            text,
            "| {} | {status} | {} | {} | {} | {} |",
            step.step,
            step.attempts,
            time.map(span).unwrap_or_default(),
            step.usage.as_ref().map(money).unwrap_or_default(),
            why.replace('|', "\\|"),
        );
    }
    more(text, report.steps.len());
}

fn more(text: &mut String, count: usize) {
    if count > MOST_ROWS {
        let _ = writeln!(text, "\n… and {} more.", count - MOST_ROWS);
    }
}

fn denials(text: &mut String, report: &RunReport) {
    if report.permission_denials.is_empty() {
        return;
    }
    text.push_str("\n## What was not allowed\n\n");
    for denied in report.permission_denials.iter().take(MOST_ROWS) {
        let denial = &denied.denial;
        let _ = writeln!(
            text,
            "- {}: {} `{}`: {}",
            denied.step,
            denial.tool,
            one_line(&denial.subject),
            one_line(&denial.reason)
        );
    }
    more(text, report.permission_denials.len());
}

fn result(text: &mut String, report: &RunReport) {
    let (body, kind) = match &report.result {
        Value::Null => return,
        Value::String(said) => (said.clone(), ""),
        other => (serde_json::to_string_pretty(other).unwrap_or_default(), "json"),
    };
    let body = visible(body.trim_end());
    let mut cut = MOST_RESULT.min(body.len());
    while !body.is_char_boundary(cut) {
        cut -= 1;
    }
    let shown = &body[..cut];
    let fence = fence_for(shown);
    let _ = writeln!(text, "\n## Result\n\n{fence}{kind}\n{shown}\n{fence}");
    if cut < body.len() {
        let _ = writeln!(text, "\n… {} bytes more.", body.len() - cut);
    }
}

/// Longer than any fence inside.
fn fence_for(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

fn next(text: &mut String, report: &RunReport) {
    let Some(resume) = &report.resume else { return };
    let what = match report.status {
        RunStatus::Succeeded => return,
        RunStatus::Failed | RunStatus::Partial => {
            "Mend what failed, then go on. What succeeded is not run again unless it changed"
        }
        RunStatus::Paused => "Once what it waits for is there, go on",
        RunStatus::Stopped => "Raise the limit that ended it, then go on",
        RunStatus::Cancelled | RunStatus::Interrupted | RunStatus::Running => "Go on where it stopped",
    };
    let _ = writeln!(text, "\n## What to do next\n\n{what}:\n\n    {resume}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::run_report::tests::{report, step};

    #[test]
    fn a_failed_run_tells_what_failed_and_what_to_do() {
        insta::assert_snapshot!(render(&report()), @r###"
        # review: failed

        - run: 01KBCDEFGHJKMNPQRSTVWXYZ01
        - exit code: 1
        - steps: 1 succeeded, 1 failed, 1 skipped, 1 not run
        - cost: 0.42 USD; tokens: 1200 in, 340 out, 0 cache read, 0 cache write
        - time: 1m 15s
        - files: /r

        ## What failed

        ### fix

        3 attempts, timeout: no answer for 5 minutes

        Output: /r/nodes/fix.3/output.md

        ## Steps

        | step | status | attempts | time | cost | why |
        |---|---|---|---|---|---|
        | diff | succeeded | 1 | 3.2s | 0.42 USD |  |
        | fix | failed | 3 |  |  | no answer for 5 minutes |
        | verify | skipped | 0 |  |  | needs fix |
        | tell | not run | 0 |  |  |  |

        ## What was not allowed

        - fix: bash `rm -rf /`: mode read-only

        ## Result

        ```json
        {
          "verdict": "fail"
        }
        ```

        ## Notes

        - fix: prompt changed

        ## What to do next

        Mend what failed, then go on. What succeeded is not run again unless it changed:

            claw run review.toml --resume=01KBCDEFGHJKMNPQRSTVWXYZ01
        "###);
    }

    #[test]
    fn a_run_of_ten_thousand_steps_gives_a_bounded_report() {
        let mut report = report();
        report.steps = (0..10_000).map(|n| step(&format!("a={n}"), Some(EndState::Failed))).collect();
        let text = render(&report);
        assert!(text.lines().count() < 5 * MOST_ROWS + 100);
        assert!(text.contains("… and 9500 more."));
    }

    #[test]
    fn no_result_steers_a_terminal_or_leaves_its_fence() {
        let mut report = report();
        report.result = Value::String("```\n\u{1b}[2J\n````".to_owned());
        let text = render(&report);
        assert!(!text.contains('\u{1b}') && text.contains("\n`````\n```\n"), "{text}");
    }
}
