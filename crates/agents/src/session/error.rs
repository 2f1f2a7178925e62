//! What can go wrong with a session on disk.

use claw_kernel::durable::{LockFailed, LogFailed, Owner};
use claw_kernel::tasks::TaskFailed;
use std::io;
use std::path::PathBuf;

/// A session that cannot be found, opened or changed.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// No session of this project has such an id or name.
    #[error("no session `{reference}` in {}", folder.display())]
    Unknown {
        /// As typed.
        reference: String,
        /// Where was looked.
        folder: PathBuf,
    },
    /// There is none at all.
    #[error("there is no session yet in {}", folder.display())]
    None {
        /// Where was looked.
        folder: PathBuf,
    },
    /// It lies in another project.
    #[error("session {reference} belongs to another folder: {}", path.display())]
    Elsewhere {
        /// As typed.
        reference: String,
        /// Its file.
        path: PathBuf,
    },
    /// Several begin like this.
    #[error("`{reference}` is the beginning of {} sessions: {}", ids.len(), ids.join(", "))]
    Ambiguous {
        /// As typed.
        reference: String,
        /// Some of them.
        ids: Vec<String>,
    },
    /// Another process has it open.
    #[error("session {id} is held by {}", owner.as_ref().map_or_else(|| "another process".to_owned(), |o| format!("process {} since {}", o.pid, o.since)))]
    Held {
        /// Which.
        id: String,
        /// Who.
        owner: Option<Owner>,
    },
    /// The file is larger than any that is read.
    #[error("{} has {bytes} bytes; sessions above {most} bytes are not read", path.display())]
    TooLarge {
        /// Which.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The limit.
        most: u64,
    },
    /// It is none of the formats that claw reads.
    #[error("{} is no session: {why}", path.display())]
    NoSession {
        /// Which.
        path: PathBuf,
        /// What was found.
        why: String,
    },
    /// It cannot be read as a transcript.
    #[error("{0}")]
    Unreadable(String),
    /// The system says no.
    #[error("{}: {source}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// It cannot be written.
    #[error(transparent)]
    Log(#[from] LogFailed),
    /// Work on it died.
    #[error(transparent)]
    Task(#[from] TaskFailed),
}

impl SessionError {
    pub(super) fn locked(id: impl ToString, failed: LockFailed) -> Self {
        match failed {
            LockFailed::Held { owner, .. } => Self::Held { id: id.to_string(), owner },
            LockFailed::Io { path, source } => Self::Io { path, source },
        }
    }

    /// What to do next, for people.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown { .. } => Some("see `claw resume` for the sessions of this folder".to_owned()),
            Self::None { .. } => Some("start one with `claw` or `claw -p \"…\"`".to_owned()),
            Self::Elsewhere { path, .. } => {
                Some(format!("go to its folder, or give the file itself: `--resume {}`", path.display()))
            }
            Self::Ambiguous { .. } => Some("give more of the id".to_owned()),
            Self::Held { .. } => Some(
                "wait until that process has ended, or make a copy of its own with `--fork-session`"
                    .to_owned(),
            ),
            Self::TooLarge { .. }
            | Self::NoSession { .. }
            | Self::Unreadable(_)
            | Self::Io { .. }
            | Self::Log(_)
            | Self::Task(_) => None,
        }
    }
}
