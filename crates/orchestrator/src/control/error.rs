//! What can be wrong between a run and another process.

use crate::journal::error::JournalError;
use crate::rundir::RunDirError;
use std::io;
use std::path::PathBuf;

/// An order was not carried out, or a run cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Nobody listens there (any more).
    #[error("nobody listens on {}: {source}", socket.display())]
    Unreachable {
        /// Where.
        socket: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The other side went away in the middle.
    #[error("the process that works on the run is gone: {0}")]
    Gone(#[from] io::Error),
    /// The other side says what this program does not understand.
    #[error("the process that works on the run speaks another language: {0}")]
    Garbled(String),
    /// The run does not take the order.
    #[error("{reason}")]
    Refused {
        /// Why.
        reason: String,
    },
    /// The run's folder, or who holds it.
    #[error(transparent)]
    Folder(#[from] RunDirError),
    /// Its journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
}
