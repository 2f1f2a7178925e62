//! `claw runs gc`: lists what nothing needs any more; removes it where that is said.

use super::found::runs;
use crate::args::{Format, GcFlags};
use crate::commands::run::folder_error;
use crate::error::ExpectedError;
use crate::terminal::{say, write_stdout};
use claw_kernel::clock;
use claw_kernel::visible::visible_line;
use claw_orchestrator::journal::record::RunStatus;
use claw_orchestrator::rundir::{RunSummary, remove};
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Lists, and with `--yes` removes.
///
/// # Errors
/// State that cannot be read or removed, standard output.
pub(super) fn run(flags: &GcFlags) -> Result<(), ExpectedError> {
    let runs = runs(flags.rest())?;
    let all = runs.list().map_err(|error| folder_error(&error))?;
    let old: Vec<RunSummary> = all.into_iter().filter(|run| is_old(run, flags)).collect();
    if flags.yes {
        for summary in &old {
            remove(&summary.run).map_err(|error| folder_error(&error))?;
        }
    }
    match flags.rest().output_format {
        Format::Text => text(&old, flags),
        Format::Json | Format::StreamJson => write_stdout(format!("{}\n", data(&old, flags))),
    }
}

fn is_old(run: &RunSummary, flags: &GcFlags) -> bool {
    let can_go_on = match run.status {
        RunStatus::Running => return false,
        RunStatus::Succeeded => false,
        RunStatus::Failed
        | RunStatus::Partial
        | RunStatus::Paused
        | RunStatus::Stopped
        | RunStatus::Cancelled
        | RunStatus::Interrupted => true,
    };
    let since = run.ended.unwrap_or(run.file.created_at);
    run.owner.is_none() && clock::now().since(since) >= DAY * flags.days && (flags.force || !can_go_on)
}

fn text(old: &[RunSummary], flags: &GcFlags) -> Result<(), ExpectedError> {
    let mut out = String::new();
    let word = if flags.yes { "removed" } else { "old" };
    for run in old {
        let _ = writeln!(
            out,
            "{word}  {}  {:<11}  {}  {}",
            run.file.run_id,
            run.status.as_str(),
            run.file.created_at,
            visible_line(&run.file.name)
        );
    }
    write_stdout(out)?;
    if old.is_empty() {
        say(&format!("nothing that is older than {} days and done\n", flags.days));
    } else if !flags.yes {
        say("nothing is removed without --yes\n");
    }
    Ok(())
}

fn data(old: &[RunSummary], flags: &GcFlags) -> Value {
    let runs: Vec<Value> = old.iter().map(super::list::summary_json).collect();
    json!({ "removed": flags.yes, "runs": runs })
}
