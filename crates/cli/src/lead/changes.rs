//! What git says is changed in the work tree. Nothing that the repository configures is run for it.

use claw_kernel::cancel::CancelToken;
use claw_tools::error::ToolError;
use claw_tools::process::{self, End, Job};
use claw_tools::sandbox::{Reach, SandboxPolicy};
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Bytes that are shown.
const MOST: usize = 4 * 1024 * 1024;
/// How long git may take.
const TIME: Duration = Duration::from_secs(20);

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoChanges {
    /// Git says no.
    #[error("git: {0}")]
    Git(String),
    /// It cannot be run.
    #[error("cannot run git: {0}")]
    Start(#[from] ToolError),
}

const FIRST: [&str; 14] = [
    "--no-pager",
    "--no-optional-locks",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.pager=cat",
    "-c",
    "core.quotePath=false",
    "-c",
    "core.sshCommand=false",
    "-c",
    "protocol.allow=never",
];

/// The difference to the last commit, new files named at its end.
///
/// # Errors
/// It is no work tree, or git cannot be run.
pub(super) async fn uncommitted(folder: &Path, path: Option<&str>) -> Result<String, NoChanges> {
    let difference =
        ["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short", "HEAD", "--"];
    let mut text = match git(folder, &difference, path).await {
        Ok(text) => text,
        // Before the first commit there is no HEAD.
        Err(NoChanges::Git(said)) if said.contains("HEAD") => String::new(),
        Err(error) => return Err(error),
    };
    let new = git(folder, &["ls-files", "--others", "--exclude-standard", "--"], path).await?;
    for name in new.lines() {
        text.push_str("new file, not in git: ");
        text.push_str(name);
        text.push('\n');
    }
    Ok(text)
}

async fn git(folder: &Path, arguments: &[&str], path: Option<&str>) -> Result<String, NoChanges> {
    let words = FIRST.iter().chain(arguments).copied().chain(path).map(OsString::from);
    let policy = Arc::new(SandboxPolicy::new(Reach::ReadOnly, folder));
    let mut job = Job::argv("git", words, folder, policy);
    job.time = Some(TIME);
    job.keep = MOST;
    let done = process::run(job, &CancelToken::new()).await?;
    match done.end {
        End::Exited(0) => Ok(done.out.text(MOST)),
        End::Exited(_) | End::Signalled(_) | End::TimedOut | End::Cancelled => {
            let said = done.err.text(400);
            Err(NoChanges::Git(said.lines().next().unwrap_or("it failed").to_owned()))
        }
    }
}

/// The branch, from one small file; no process is started for it.
pub(super) fn branch(folder: &Path) -> Option<String> {
    let top = folder.ancestors().find(|above| above.join(".git").exists())?;
    let head = std::fs::read_to_string(top.join(".git/HEAD")).ok()?;
    Some(head.trim().strip_prefix("ref: refs/heads/")?.to_owned())
}
