//! What can go wrong with decisions on disk.

use claw_kernel::durable::LockFailed;
use std::io;
use std::path::PathBuf;

/// Decisions cannot be read or kept.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is not what claw wrote.
    #[error("{} is no file of decisions", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: serde_json::Error,
    },
    /// A newer claw wrote it.
    #[error("{} is of version {version}, and this claw reads 1", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// It cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another process writes it.
    #[error(transparent)]
    Locked(#[from] LockFailed),
}
