//! Who read which file in which state, who wrote it last, and whose turn it is to write.
//!
//! What was read belongs to one agent; writers and locks belong to the process, for agents of all sessions meet there.

use claw_kernel::digest::Digest;
use indexmap::IndexMap;
use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use tokio::sync::OwnedMutexGuard;

/// Files whose state is remembered, for each agent and for writers; the oldest are forgotten.
const MOST: usize = 10_000;

/// A file as somebody saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    length: u64,
    modified: (i64, i64),
    inode: u64,
    digest: Option<Digest>,
}

impl Seen {
    /// A file of which every byte was read.
    pub fn whole(meta: &Metadata, bytes: &[u8]) -> Self {
        Self { digest: Some(Digest::of(bytes)), ..Self::part(meta) }
    }

    /// A file that was too long to be read whole.
    pub fn part(meta: &Metadata) -> Self {
        Self {
            length: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            inode: meta.ino(),
            digest: None,
        }
    }

    fn is_still(&self, now: &Self) -> bool {
        match (self.digest, now.digest) {
            (Some(then), Some(now)) => then == now,
            (Some(_), None) | (None, Some(_)) | (None, None) => {
                (self.length, self.modified, self.inode) == (now.length, now.modified, now.inode)
            }
        }
    }
}

/// What an agent knows of a file that it wants to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// It saw the file as it is.
    Current,
    /// It never saw it.
    Unread {
        /// Who wrote it last in this process, if that was somebody else.
        by: Option<Arc<str>>,
    },
    /// It changed since.
    Changed {
        /// Who wrote it, if it was an agent of this process.
        by: Option<Arc<str>>,
    },
}

/// What one agent read.
#[derive(Debug, Default)]
pub struct ReadState {
    seen: Mutex<IndexMap<PathBuf, Seen>>,
}

struct LastWrite {
    agent: Arc<str>,
    seen: Seen,
}

static WRITES: LazyLock<Mutex<IndexMap<PathBuf, LastWrite>>> = LazyLock::new(Mutex::default);
static LOCKS: LazyLock<Mutex<HashMap<PathBuf, Weak<tokio::sync::Mutex<()>>>>> = LazyLock::new(Mutex::default);

impl ReadState {
    /// Nothing read yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The agent has seen a file (resolved path).
    pub fn saw(&self, path: &Path, seen: Seen) {
        remember(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner), path, seen);
    }

    /// The agent has written a file: it knows it, and everybody can learn who it was.
    pub fn wrote(&self, path: &Path, agent: &Arc<str>, seen: Seen) {
        self.saw(path, seen);
        let write = LastWrite { agent: Arc::clone(agent), seen };
        remember(&mut WRITES.lock().unwrap_or_else(PoisonError::into_inner), path, write);
    }

    /// What `agent` knows of a file that is now as `now` says.
    pub fn knowledge(&self, path: &Path, agent: &str, now: &Seen) -> Knowledge {
        let writes = WRITES.lock().unwrap_or_else(PoisonError::into_inner);
        let by = writes
            .get(path)
            .filter(|write| &*write.agent != agent && write.seen.is_still(now))
            .map(|write| Arc::clone(&write.agent));
        match self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(path) {
            None => Knowledge::Unread { by },
            Some(seen) if seen.is_still(now) => Knowledge::Current,
            Some(_) => Knowledge::Changed { by },
        }
    }
}

fn remember<V>(map: &mut IndexMap<PathBuf, V>, path: &Path, value: V) {
    if map.len() >= MOST && !map.contains_key(path) {
        // In batches: removing the first one shifts all others.
        map.drain(..MOST / 10);
    }
    map.insert(path.to_owned(), value);
}

/// The right to write some files. Given back when dropped.
#[derive(Debug)]
pub struct WriteTurn {
    _held: Vec<OwnedMutexGuard<()>>,
}

/// Waits for the turn to write files (resolved paths). Taken in the order of the paths, so that two who want the same
/// files never wait for each other.
pub async fn write_turn(paths: impl IntoIterator<Item = PathBuf>) -> WriteTurn {
    let mut paths: Vec<PathBuf> = paths.into_iter().collect();
    paths.sort();
    paths.dedup();
    let mut held = Vec::with_capacity(paths.len());
    for path in paths {
        let lock = lock_of(path);
        held.push(lock.lock_owned().await);
    }
    WriteTurn { _held: held }
}

fn lock_of(path: PathBuf) -> Arc<tokio::sync::Mutex<()>> {
    let mut locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(lock) = locks.get(&path).and_then(Weak::upgrade) {
        return lock;
    }
    if locks.len() >= 256 {
        locks.retain(|_, lock| lock.strong_count() > 0);
    }
    let lock = Arc::default();
    locks.insert(path, Arc::downgrade(&lock));
    lock
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_by_another_agent_is_told_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let put = |text: &str| {
            claw_kernel::durable::append_in_place(&path, text.as_bytes()).unwrap();
            Seen::whole(&path.metadata().unwrap(), text.as_bytes())
        };
        drop(claw_kernel::durable::create_stream(&path).unwrap());
        let (a, b) = (ReadState::new(), ReadState::new());
        let one = put("one");
        assert_eq!(a.knowledge(&path, "A", &one), Knowledge::Unread { by: None });
        a.saw(&path, one);
        b.saw(&path, one);
        assert_eq!(a.knowledge(&path, "A", &one), Knowledge::Current);
        let two = put("two");
        b.wrote(&path, &"B".into(), two);
        assert_eq!(a.knowledge(&path, "A", &two), Knowledge::Changed { by: Some("B".into()) });
        assert_eq!(b.knowledge(&path, "B", &two), Knowledge::Current);
        let three = put("six");
        assert_eq!(a.knowledge(&path, "A", &three), Knowledge::Changed { by: None });
    }

    #[tokio::test]
    async fn two_who_want_two_files_in_opposite_order_both_get_them() {
        for _ in 0..10 {
            let (one, two) = (PathBuf::from("/turn/1"), PathBuf::from("/turn/2"));
            let first = write_turn([one.clone(), two.clone()]);
            let second = write_turn([two, one]);
            let both = async { tokio::join!(async { drop(first.await) }, async { drop(second.await) }) };
            tokio::time::timeout(std::time::Duration::from_secs(10), both).await.unwrap();
        }
    }
}
