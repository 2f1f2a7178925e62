//! Why a run could not start, or broke.

use crate::journal::error::JournalError;
use crate::rundir::RunDirError;
use claw_kernel::ids::RunId;
use claw_kernel::supervise::SpawnFailed;
use std::io;
use std::path::PathBuf;

/// A name that is no step of the workflow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{asked}` names no step of this run")]
pub struct NoSuchStep {
    /// As it was asked for.
    pub asked: String,
    /// The nearest.
    pub near: Option<String>,
}

/// A run that could not start, or that broke.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Its folder: missing, held by another process, unreadable.
    #[error(transparent)]
    Folder(#[from] RunDirError),
    /// The run that was named is one of another file.
    #[error(
        "run {run} is one of {}, not of {}",
        ran.as_ref().map_or_else(|| "no workflow file".to_owned(), |ran| ran.display().to_string()),
        asked.display()
    )]
    OtherWorkflow {
        /// As named.
        run: RunId,
        /// Its file.
        ran: Option<PathBuf>,
        /// The file that was given.
        asked: PathBuf,
    },
    /// A step was named that is not there.
    #[error(transparent)]
    Step(#[from] NoSuchStep),
    /// Its journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// What a killed merge left in the workspace can be neither finished nor taken back.
    #[error("a merge was stopped half way and cannot be settled: {0}")]
    Landing(#[from] crate::worktree::WorktreeError),
    /// A file of its own cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Its scheduler could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnFailed),
    /// Its scheduler died: a fault of claw.
    #[error("the scheduler of the run stopped without a word")]
    Crashed,
}
