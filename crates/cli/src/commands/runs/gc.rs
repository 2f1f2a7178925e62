//! `claw runs gc`: lists what nothing needs any more, runs and worktrees; removes it where that is said.

use super::found::runs;
use super::list::summary_json;
use crate::args::{Format, GcFlags};
use crate::commands::run::folder_error;
use crate::error::{ExpectedError, exit};
use crate::services::{folder, state_folder};
use crate::terminal::{say, write_stdout};
use claw_kernel::clock;
use claw_kernel::visible::visible_line;
use claw_orchestrator::journal::record::RunStatus;
use claw_orchestrator::rundir::{RunSummary, project_top, remove};
use claw_orchestrator::worktree::{self, GcDone, GcItem, GcScope, WorktreeError};
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What there is to clear.
struct Left {
    old: Vec<RunSummary>,
    worktrees: Vec<GcItem>,
    done: GcDone,
}

/// Lists, and with `--yes` removes: worktrees first, then the runs that tell of them.
///
/// # Errors
/// State that cannot be read or removed, git, standard output.
pub(super) async fn run(flags: &GcFlags) -> Result<u8, ExpectedError> {
    let runs = runs(flags.rest())?;
    let workspace = project_top(&folder(flags.rest().cwd.as_deref())?);
    let is_repository = workspace.join(".git").exists();
    let scope = GcScope { workspace, runs: runs.clone(), worktrees: state_folder().join("worktrees") };
    let all = runs.list().map_err(|error| folder_error(&error))?;
    let old: Vec<RunSummary> = all.into_iter().filter(|run| is_old(run, flags)).collect();
    let worktrees =
        if is_repository { worktree::list(&scope).await.map_err(|e| git(&e))? } else { Vec::new() };
    let mut left = Left { old, worktrees, done: GcDone::default() };
    if flags.yes {
        if is_repository {
            left.done = worktree::clear(&scope, &left.worktrees, flags.force).await.map_err(|e| git(&e))?;
        }
        for summary in &left.old {
            remove(&summary.run).map_err(|error| folder_error(&error))?;
        }
    }
    match flags.rest().output_format {
        Format::Text => text(&left, flags)?,
        Format::Json | Format::StreamJson => write_stdout(format!("{}\n", data(&left, flags)))?,
    }
    Ok(exit::OK)
}

fn git(error: &WorktreeError) -> ExpectedError {
    ExpectedError::Run { message: error.to_string(), code: exit::STATE, hint: None }
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

/// What becomes of a folder with its branch.
fn fate(item: &GcItem, force: bool) -> &'static str {
    match (item.folder_goes(force), item.branch_goes(force)) {
        (Some(true), Some(true)) => "folder and branch go",
        (Some(true), Some(false) | None) => "folder goes, branch stays",
        (Some(false) | None, Some(true)) => "branch goes",
        (Some(false) | None, Some(false) | None) => "stays",
    }
}

fn text(left: &Left, flags: &GcFlags) -> Result<(), ExpectedError> {
    let mut out = String::new();
    let word = if flags.yes { "removed" } else { "old run" };
    for run in &left.old {
        let _ = writeln!(
            out,
            "{word}  {}  {:<11}  {}  {}",
            run.file.run_id,
            run.status.as_str(),
            run.file.created_at,
            visible_line(&run.file.name)
        );
    }
    if flags.yes {
        for folder in &left.done.folders {
            let _ = writeln!(out, "removed  {}", folder.display());
        }
        for (branch, commit) in &left.done.branches {
            let _ = writeln!(out, "removed  branch {branch} (it was {commit})");
        }
        for (what, why) in &left.done.kept {
            let _ = writeln!(out, "kept     {what}: {}", visible_line(why));
        }
    } else {
        for item in &left.worktrees {
            let _ = writeln!(
                out,
                "worktree {}  {} · {}",
                item.branch,
                item.state.word(),
                fate(item, flags.force)
            );
        }
    }
    write_stdout(out)?;
    if left.old.is_empty() && left.worktrees.is_empty() {
        say(&format!("no worktrees, and no finished run that is older than {} days\n", flags.days));
    } else if !flags.yes {
        say("nothing is removed without --yes\n");
    }
    Ok(())
}

fn data(left: &Left, flags: &GcFlags) -> Value {
    let runs: Vec<Value> = left.old.iter().map(summary_json).collect();
    let worktrees: Vec<Value> = left
        .worktrees
        .iter()
        .map(|item| {
            json!({
                "run_id": item.run,
                "branch": item.branch,
                "folder": item.folder,
                "bytes": item.bytes,
                "state": item.state.word(),
                "folder_goes": item.folder_goes(flags.force),
                "branch_goes": item.branch_goes(flags.force),
            })
        })
        .collect();
    let kept: Vec<Value> =
        left.done.kept.iter().map(|(what, why)| json!({ "what": what, "why": why })).collect();
    json!({ "removed": flags.yes, "runs": runs, "worktrees": worktrees, "kept": kept })
}
