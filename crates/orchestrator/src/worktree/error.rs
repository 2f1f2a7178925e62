//! What can be wrong with folders, branches and merges.

use claw_kernel::durable::LockFailed;
use claw_tools::error::ToolError;
use std::io;
use std::path::PathBuf;

/// A folder, a branch or a merge that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    /// The workspace is in no work tree of git.
    #[error(
        "{} is not in a git work tree, which `isolation = \"worktree\"` and git merges need; run `git init` there and \
         commit, or take `isolation` out{}", path.display(), told(said)
    )]
    NotARepository {
        /// The workspace.
        path: PathBuf,
        /// What git said.
        said: String,
    },
    /// The workspace is a folder inside a work tree.
    #[error("{} is not the top of its git work tree {}; start claw there", path.display(), top.display())]
    NotTheTop {
        /// The workspace.
        path: PathBuf,
        /// The top.
        top: PathBuf,
    },
    /// Nothing is committed yet.
    #[error("the git repository of {} has no commit yet, so there is nothing to branch from; commit something first", path.display())]
    NoCommit {
        /// The workspace.
        path: PathBuf,
    },
    /// `apply = "squash"` and `"merge"` commit: they want a workspace without changes.
    #[error(
        "the workspace has changes that are not committed ({}), and `apply = \"{apply}\"` commits; commit or stash them, \
         or use `apply = \"patch\"`",
        listed(files)
    )]
    NotClean {
        /// As the file says.
        apply: &'static str,
        /// What is changed, a few of them.
        files: Vec<String>,
    },
    /// Somebody changed the workspace while the merge was made.
    #[error(
        "the workspace has changed while the merge was made ({what}); nothing was written to it, run the merge again"
    )]
    ParentChanged {
        /// What is not as it was.
        what: String,
    },
    /// The merge would write over what git does not know.
    #[error(
        "the merge would write over {}, which git does not know; move it away and run the merge again",
        listed(files)
    )]
    InTheWay {
        /// Relative to the workspace.
        files: Vec<String>,
    },
    /// A branch that a merge needs is not there.
    #[error("the branch {branch} is gone, and with it the work of that step; run the step again")]
    BranchGone {
        /// Its name.
        branch: String,
    },
    /// The program itself could not be run.
    #[error("cannot run git: {0}")]
    Start(#[from] ToolError),
    /// The program refused.
    #[error("`git {what}` failed ({}){}", code.map_or_else(|| "it was ended".to_owned(), |code| format!("exit code {code}")), told(said))]
    Git {
        /// The command of git.
        what: String,
        /// Its exit code.
        code: Option<i32>,
        /// The end of what it said.
        said: String,
    },
    /// It gave more than can be taken in.
    #[error("`git {what}` gave more than {most} bytes")]
    TooMuch {
        /// The command of git.
        what: String,
        /// The bound.
        most: usize,
    },
    /// It gave something else than it should.
    #[error("`git {what}` gave what cannot be understood")]
    Unreadable {
        /// The command of git.
        what: String,
    },
    /// A file or a folder cannot be read or written.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file of claw's own does not hold what it should.
    #[error("{} is damaged: {source}", path.display())]
    Shape {
        /// Which.
        path: PathBuf,
        /// What is wrong in it.
        source: serde_json::Error,
    },
    /// Another process lands a merge here.
    #[error(transparent)]
    Lock(#[from] LockFailed),
    /// The index of the workspace is in use.
    #[error("{} is there: another git command works in the workspace, or one was killed there; remove the file if none runs", lock.display())]
    IndexLocked {
        /// The lock's file.
        lock: PathBuf,
    },
    /// The command of `verify` could not be run at all.
    #[error("`verify` cannot be run: {0}")]
    Verify(String),
    /// The step was cancelled.
    #[error("cancelled")]
    Cancelled,
}

impl WorktreeError {
    pub(super) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    /// Whether it is a matter of what stands in the workspace or on the branches, not of the tools.
    pub fn is_conflict(&self) -> bool {
        match self {
            Self::NotClean { .. } | Self::ParentChanged { .. } | Self::InTheWay { .. } => true,
            Self::NotARepository { .. }
            | Self::NotTheTop { .. }
            | Self::NoCommit { .. }
            | Self::BranchGone { .. }
            | Self::Start(_)
            | Self::Git { .. }
            | Self::TooMuch { .. }
            | Self::Unreadable { .. }
            | Self::Io { .. }
            | Self::Shape { .. }
            | Self::Lock(_)
            | Self::IndexLocked { .. }
            | Self::Verify(_)
            | Self::Cancelled => false,
        }
    }
}

fn told(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(": {said}") }
}

/// A few names, and how many more there are.
fn listed(files: &[String]) -> String {
    const SHOWN: usize = 5;
    let mut text = files.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if files.len() > SHOWN {
        text.push_str(&format!(" and {} more", files.len() - SHOWN));
    }
    text
}
