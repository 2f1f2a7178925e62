//! The end of a run: the result on standard output and nothing else there, the rest for people on standard error.

use crate::args::{Format, RunFlags};
use crate::error::{ExpectedError, exit};
use crate::signals::Ending;
use crate::terminal::{Stdout, say, summary, width, write_answer, write_stdout};
use claw_kernel::durable::LockFailed;
use claw_orchestrator::journal::error::JournalError;
use claw_orchestrator::report::RunReport;
use claw_orchestrator::run::RunError;
use claw_orchestrator::rundir::RunDirError;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// A reader that takes nothing for so long after the end gets no more.
const PATIENCE: Duration = Duration::from_secs(2);

/// Tells what the run came to.
///
/// # Errors
/// Standard output.
pub(super) async fn tell(
    mut report: RunReport,
    ending: Option<Ending>,
    out: Option<Arc<Stdout>>,
    flags: &RunFlags,
) -> Result<u8, ExpectedError> {
    if let Some(ending) = ending {
        report.exit_code = ending.exit_code();
    }
    say(&summary(&report, width()));
    let code = report.exit_code;
    let written = match (flags.output_format, out) {
        (Format::StreamJson, Some(out)) => last_line(&report, out).await,
        (Format::Json | Format::StreamJson, _) => write_stdout(json(&report)? + "\n"),
        (Format::Text, _) => write_answer(&text(&report.result)),
    };
    match (written, ending) {
        // Whatever ended the run first is what is told.
        (Err(_), Some(_)) | (Ok(()), _) => Ok(code),
        (Err(error), None) => Err(error),
    }
}

async fn last_line(report: &RunReport, out: Arc<Stdout>) -> Result<(), ExpectedError> {
    let line = json(report)?;
    let close = async {
        // The error that counts comes from the flush.
        let _ = out.line(line).await;
        out.flush().await
    };
    tokio::time::timeout(PATIENCE, close).await.unwrap_or(Err(ExpectedError::Pipe))
}

fn json(report: &RunReport) -> Result<String, ExpectedError> {
    report.to_json().map_err(|error| ExpectedError::Fault(error.to_string()))
}

/// A text as it is, anything else as JSON, nothing for nothing.
fn text(result: &Value) -> String {
    match result {
        Value::Null => String::new(),
        Value::String(text) if text.is_empty() || text.ends_with('\n') => text.clone(),
        Value::String(text) => format!("{text}\n"),
        other => format!("{other:#}\n"),
    }
}

/// A run that could not start or went down with its state.
pub(super) fn failed(error: &RunError) -> ExpectedError {
    let message = error.to_string();
    match error {
        RunError::Folder(error) => folder(error),
        RunError::OtherWorkflow { .. } => ExpectedError::NotFound {
            message,
            hint: "`claw runs list` shows the runs of this project and their workflows".to_owned(),
        },
        RunError::Step(error) => ExpectedError::NotFound {
            message,
            hint: error.near.as_ref().map_or_else(
                || "`claw runs show latest` lists the steps of the newest run".to_owned(),
                |near| format!("did you mean `{near}`?"),
            ),
        },
        RunError::Journal(JournalError::Damaged { .. }) => ExpectedError::Run {
            message,
            code: exit::STATE,
            hint: Some(
                "with --accept-damage the lost lines are moved to journal.damaged and their steps are in doubt"
                    .to_owned(),
            ),
        },
        RunError::Journal(_) | RunError::Write { .. } | RunError::Landing(_) => ExpectedError::Run {
            message,
            code: exit::STATE,
            hint: Some(
                "when the cause is gone, the same command with --resume goes on from what is done".to_owned(),
            ),
        },
        RunError::Spawn(_) | RunError::Crashed => ExpectedError::Fault(message),
    }
}

/// The folder of runs, or of one run.
pub(crate) fn folder(error: &RunDirError) -> ExpectedError {
    let message = error.to_string();
    match error {
        RunDirError::Lock(LockFailed::Held { .. }) => ExpectedError::Run {
            message,
            code: exit::HELD,
            hint: Some("wait until it ends, or stop that process".to_owned()),
        },
        RunDirError::NoSuchRun { .. } | RunDirError::Ambiguous { .. } | RunDirError::NeverRan { .. } => {
            ExpectedError::NotFound {
                message,
                hint: "`claw runs list` shows the runs of this project".to_owned(),
            }
        }
        RunDirError::NoSuchStep(_) => {
            ExpectedError::NotFound { message, hint: "`claw runs show RUN` lists its steps".to_owned() }
        }
        RunDirError::Io { .. }
        | RunDirError::Shape { .. }
        | RunDirError::Schema { .. }
        | RunDirError::Lock(LockFailed::Io { .. })
        | RunDirError::Journal(_) => ExpectedError::Run { message, code: exit::STATE, hint: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_is_printed_as_it_is_and_anything_else_as_json() {
        assert_eq!(text(&json!("done")), "done\n");
        assert_eq!(text(&json!("done\n")), "done\n");
        assert_eq!(text(&Value::Null), "");
        assert_eq!(text(&json!({"a": 1})), "{\n  \"a\": 1\n}\n");
    }
}
