//! What can be wrong with a journal.

use super::reader::Damage;
use claw_kernel::durable::LogFailed;
use claw_kernel::tasks::TaskFailed;
use std::io;
use std::path::PathBuf;

/// A journal that cannot be used. All of these end the run with exit code 74.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It cannot be read, or what belongs to it cannot be written.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Larger than any run makes it.
    #[error("{} has {bytes} bytes; at most {most} are read", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: u64,
        /// The limit.
        most: u64,
    },
    /// Lines in it are lost.
    #[error("E301: {}: {damage}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where and what.
        damage: Box<Damage>,
    },
    /// It can no longer be written.
    #[error(transparent)]
    Log(#[from] LogFailed),
    /// A record that has no text form.
    #[error("a record cannot be written as JSON")]
    Encode(#[from] serde_json::Error),
    /// The reading task died.
    #[error(transparent)]
    Task(#[from] TaskFailed),
}
