//! What can be wrong with the files of a run.

use crate::journal::error::JournalError;
use claw_kernel::durable::LockFailed;
use std::io;
use std::path::PathBuf;

/// The state of a run cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RunDirError {
    /// A file or a folder cannot be read or written.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file does not hold what it should.
    #[error("{} is damaged: {source}", path.display())]
    Shape {
        /// Which.
        path: PathBuf,
        /// What is wrong in it.
        source: serde_json::Error,
    },
    /// Written by another version of claw.
    #[error("{} is of schema {found}; this claw reads schema {known}", path.display())]
    Schema {
        /// Which.
        path: PathBuf,
        /// In the file.
        found: u64,
        /// Of this program.
        known: u32,
    },
    /// No such run.
    #[error("there is no run `{wanted}` in {}", folder.display())]
    NoSuchRun {
        /// As it was asked for.
        wanted: String,
        /// The folder of runs.
        folder: PathBuf,
    },
    /// More than one run begins or ends like that.
    #[error("`{wanted}` names more than one run: {}", found.join(", "))]
    Ambiguous {
        /// As it was asked for.
        wanted: String,
        /// Those that match, at most ten.
        found: Vec<String>,
    },
    /// No run of that file.
    #[error("no run of {} is in {}", workflow.display(), folder.display())]
    NeverRan {
        /// The workflow file.
        workflow: PathBuf,
        /// The folder of runs.
        folder: PathBuf,
    },
    /// No such step.
    #[error("the run has no step `{0}`")]
    NoSuchStep(String),
    /// Another process has the run.
    #[error(transparent)]
    Lock(#[from] LockFailed),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl RunDirError {
    pub(super) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}
