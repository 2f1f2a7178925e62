//! The end of a run for people: a table, the failures with cause and path, what to do next. Pure.

use super::figures::{elapsed, money, tokens, took};
use super::fit::{cut, padded};
use claw_kernel::visible::visible_line;
use claw_orchestrator::journal::record::EndState;
use claw_orchestrator::report::{RunReport, StepReport};
use std::fmt::Write;
use std::time::Duration;

/// Rows of the table; steps that did not succeed are shown first.
const MOST: usize = 40;
/// Failures told with their cause.
const CAUSES: usize = 20;

/// The whole text, ended by a line feed.
pub fn summary(report: &RunReport, width: usize) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{} {} in {} · {} · {} tokens · {}",
        visible_line(&report.workflow),
        report.status.as_str(),
        elapsed(report.elapsed),
        counts(report),
        tokens(report.usage.total()),
        money(report.total_cost_usd),
    );
    table(&mut out, report, width);
    failures(&mut out, report, width);
    for denied in report.permission_denials.iter().take(CAUSES) {
        let denial = &denied.denial;
        let _ = writeln!(
            out,
            "denied: {}: {} {}: {}",
            denied.step,
            denial.tool,
            visible_line(&denial.subject),
            visible_line(&denial.reason)
        );
    }
    more(&mut out, report.permission_denials.len(), CAUSES, "denied");
    for note in &report.notes {
        let _ = writeln!(out, "note: {}", visible_line(note));
    }
    let _ = writeln!(out, "report: {}", visible_line(&report.folder.join("report.md").to_string_lossy()));
    if let Some(resume) = &report.resume {
        let _ = writeln!(out, "resume: {}", visible_line(resume));
    }
    out
}

/// `3 succeeded, 1 failed, 2 skipped`.
fn counts(report: &RunReport) -> String {
    let states = [
        EndState::Succeeded,
        EndState::Cached,
        EndState::Failed,
        EndState::Skipped,
        EndState::Cancelled,
        EndState::Interrupted,
    ];
    let mut parts: Vec<String> = states
        .into_iter()
        .filter_map(|state| match report.count(state) {
            0 => None,
            n => Some(format!("{n} {}", state.as_str())),
        })
        .collect();
    let pending = report.steps.iter().filter(|step| step.status.is_none()).count();
    if pending > 0 {
        parts.push(format!("{pending} pending"));
    }
    parts.join(", ")
}

fn more(out: &mut String, all: usize, shown: usize, what: &str) {
    if all > shown {
        let _ = writeln!(out, "+ {} more {what}", all - shown);
    }
}

fn table(out: &mut String, report: &RunReport, width: usize) {
    let mut steps: Vec<&StepReport> = report.steps.iter().collect();
    if steps.len() > MOST {
        let is_good = |step: &StepReport| matches!(step.status, Some(EndState::Succeeded | EndState::Cached));
        steps.sort_by_key(|step| is_good(step));
        steps.truncate(MOST);
    }
    let longest = steps.iter().map(|step| step.step.to_string().chars().count()).max().unwrap_or(4);
    // The figures take 46 columns; the rest is for names.
    let name = longest.clamp(4, width.saturating_sub(47).max(12));
    let wide = width >= 60;
    let row = |cells: [&str; 6]| {
        let [step, status, attempts, time, spent, cost] = cells;
        if wide {
            format!("{} {status:<11} {attempts:>8} {time:>8} {spent:>7} {cost:>8}", padded(step, name))
        } else {
            cut(&format!("{} {status:<11} {time:>7}", padded(step, name.min(18))), width)
        }
    };
    let _ = writeln!(out, "{}", row(["step", "status", "attempts", "time", "tokens", "cost"]).trim_end());
    for step in &steps {
        let time = step.seconds.filter(|s| s.is_finite() && *s >= 0.0).map(Duration::from_secs_f64).map(took);
        let usage = step.usage.filter(|usage| usage.total() > 0);
        let cells = [
            &*step.step.to_string(),
            step.status.map_or("pending", EndState::as_str),
            &step.attempts.to_string(),
            time.as_deref().unwrap_or(""),
            &usage.map(|usage| tokens(usage.total())).unwrap_or_default(),
            &usage.map(|usage| money(usage.usd)).unwrap_or_default(),
        ];
        let _ = writeln!(out, "{}", row(cells).trim_end());
    }
    more(out, report.steps.len(), steps.len(), "steps");
}

fn failures(out: &mut String, report: &RunReport, width: usize) {
    let failed: Vec<&StepReport> = report.failures();
    for step in failed.iter().take(CAUSES) {
        let class = step.error_class.and_then(|class| serde_json::to_value(class).ok());
        let class =
            class.as_ref().and_then(|class| class.as_str()).map(|c| format!(" ({c})")).unwrap_or_default();
        let cause = visible_line(step.error.as_deref().unwrap_or("no cause was told")).into_owned();
        let _ = writeln!(out, "failed: {}{class}: {}", step.step, cut(&cause, (width * 4).max(200)));
        if let Some(file) = &step.output_file {
            let _ = writeln!(out, "  see {}", visible_line(&file.to_string_lossy()));
        }
    }
    more(out, failed.len(), CAUSES, "failed");
}

#[cfg(test)]
mod tests {
    use super::*;
    use claw_agents::outcome::{Denial, FailureClass};
    use claw_orchestrator::journal::record::RunStatus;
    use claw_orchestrator::report::run_report::{SCHEMA, StepDenial};
    use claw_providers::usage::Usage;

    fn step(name: &str, status: Option<EndState>, seconds: Option<f64>) -> StepReport {
        StepReport {
            step: name.parse().unwrap(),
            status,
            attempts: 1,
            agent_id: None,
            error: None,
            error_class: None,
            usage: seconds.map(|_| Usage { input: 12_000, output: 950, usd: Some(0.12), ..Usage::NOTHING }),
            output_file: None,
            seconds,
        }
    }

    fn report() -> RunReport {
        RunReport {
            schema: SCHEMA,
            run_id: "01KBCDEFGHJKMNPQRSTVWXYZ01".parse().unwrap(),
            workflow: "review".into(),
            status: RunStatus::Failed,
            exit_code: 1,
            result: serde_json::Value::Null,
            steps: vec![
                step("explore=security", Some(EndState::Succeeded), Some(75.2)),
                StepReport {
                    attempts: 3,
                    error: Some("no answer\nfor 5 minutes".into()),
                    error_class: Some(FailureClass::Timeout),
                    output_file: Some("/p/.claw/runs/01K/nodes/fix.3/output.md".into()),
                    ..step("fix", Some(EndState::Failed), Some(3.25))
                },
                step("tell", None, None),
            ],
            usage: Usage { input: 24_000, output: 1_900, usd: Some(0.24), ..Usage::NOTHING },
            total_cost_usd: Some(0.24),
            permission_denials: vec![StepDenial {
                step: "fix".parse().unwrap(),
                denial: Denial {
                    tool: "bash".into(),
                    subject: "curl x".into(),
                    reason: "uses the network".into(),
                },
            }],
            resume: Some("claw run w.toml --resume=01KBCDEFGHJKMNPQRSTVWXYZ01".into()),
            notes: vec!["a word\u{1b}[2J".into()],
            folder: "/p/.claw/runs/01K".into(),
            elapsed: Duration::from_secs(80),
        }
    }

    #[test]
    fn the_end_says_what_ran_what_failed_and_what_to_do() {
        insta::assert_snapshot!("wide", summary(&report(), 100));
        insta::assert_snapshot!("narrow", summary(&report(), 40));
    }

    #[test]
    fn a_thousand_steps_are_a_short_table() {
        let mut many = report();
        many.steps.extend((0..1000).map(|n| step(&format!("a={n}"), Some(EndState::Succeeded), Some(1.0))));
        let text = summary(&many, 80);
        assert!(
            text.lines().count() < 60 && text.contains("+ 963 more steps") && text.contains("fix"),
            "{text}"
        );
    }
}
