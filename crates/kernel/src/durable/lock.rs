//! A kernel lock: released when its owner dies, whatever way. The file names the owner for those who are refused.

use crate::clock::Timestamp;
use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Who holds a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Process.
    pub pid: u32,
    /// When it took the lock.
    pub since: Timestamp,
    /// Where it listens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<PathBuf>,
}

/// The lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockFailed {
    /// Somebody holds it.
    #[error("{} is held by {}", path.display(), owner.as_ref().map_or_else(|| "another process".to_owned(), |o| format!("process {} since {}", o.pid, o.since)))]
    Held {
        /// The lock's file.
        path: PathBuf,
        /// Who, where the file tells.
        owner: Option<Owner>,
    },
    /// The file cannot be used.
    #[error("{}: {source}", path.display())]
    Io {
        /// The lock's file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// Held until it is dropped.
#[derive(Debug)]
pub struct FileLock {
    _file: File,
}

impl FileLock {
    /// Takes the lock now or fails at once.
    pub fn take(path: &Path, owner: &Owner) -> Result<Self, LockFailed> {
        let io = |source| LockFailed::Io { path: path.to_owned(), source };
        let file = open(path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => Self::held(file, owner).map_err(io),
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let _ = file.take(4096).read_to_string(&mut text);
                Err(LockFailed::Held { path: path.to_owned(), owner: serde_json::from_str(&text).ok() })
            }
            Err(TryLockError::Error(source)) => Err(io(source)),
        }
    }

    /// Takes the lock as soon as it is free: blocks until then. For a holder that is known to be dead: a child that it
    /// was about to start may hold its files for a moment longer.
    pub fn wait(path: &Path, owner: &Owner) -> Result<Self, LockFailed> {
        let taken = open(path).and_then(|file| file.lock().map(|()| file));
        let held = taken.and_then(|file| Self::held(file, owner));
        held.map_err(|source| LockFailed::Io { path: path.to_owned(), source })
    }

    /// Takes the lock as soon as it is free, without blocking the caller. Where it is dropped before, the lock goes back
    /// as soon as it comes.
    ///
    /// # Errors
    /// Where the file cannot be used.
    pub async fn when_free(path: PathBuf, owner: Owner) -> Result<Self, LockFailed> {
        match Self::take(&path, &owner) {
            Err(LockFailed::Held { .. }) => {}
            taken => return taken,
        }
        // A thread of its own: such a wait may take hours, and the pool of blocking work is small.
        let (say, said) = tokio::sync::oneshot::channel();
        let at = path.clone();
        let io = |source| LockFailed::Io { path: at, source };
        let waiter = std::thread::Builder::new().name("lock".to_owned());
        if let Err(source) = waiter.spawn(move || say.send(Self::wait(&path, &owner))) {
            return Err(io(source));
        }
        said.await.map_err(|_| io(io::Error::other("the thread that waits for the lock is gone")))?
    }

    fn held(mut file: File, owner: &Owner) -> io::Result<Self> {
        let text = serde_json::to_string(owner)?;
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(text.as_bytes())?;
        Ok(Self { _file: file })
    }
}

fn open(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_taker_learns_who_holds_it_and_a_dropped_lock_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let owner = Owner { pid: 7, since: crate::clock::now(), socket: None };
        let held = FileLock::take(&path, &owner).unwrap();
        match FileLock::take(&path, &owner) {
            Err(LockFailed::Held { owner: Some(found), .. }) => assert_eq!(found, owner),
            other => panic!("{other:?}"),
        }
        drop(held);
        FileLock::take(&path, &owner).unwrap();
    }
}
