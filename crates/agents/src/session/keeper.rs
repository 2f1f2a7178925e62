//! Snapshots: what files were before claw's own tools changed them, so that a rewind can put them back.
//!
//! Owns the copies beside the session. Bounded: large files and more than a session's share are told as not kept.

use crate::effects::{CallNo, EffectLog, EffectLogFailed};
use crate::transcript::{Record, Snapshot, Was};
use claw_kernel::digest::Digest;
use claw_kernel::durable::{self, Durability, Log};
use claw_kernel::tasks;
use claw_tools::files::kind::open_regular;
use claw_tools::files::paths;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of one file that are kept.
const MOST_OF_A_FILE: u64 = 4 << 20;
/// Bytes that one process keeps for a session.
const MOST: u64 = 256 << 20;

/// Keeps files of one session. Cheap to clone.
#[derive(Clone, Debug)]
pub struct FileKeeper {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    log: Log,
    /// Holds the copies, named by their digest.
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    prompt: u32,
    bytes: u64,
    snapshots: Vec<Snapshot>,
}

impl FileKeeper {
    /// For the session at `path`, whose records go to `log`; it kept `snapshots` before.
    pub(crate) fn new(path: &Path, log: Log, snapshots: Vec<Snapshot>) -> Self {
        let state = Mutex::new(State { snapshots, ..State::default() });
        Self { inner: Arc::new(Inner { log, folder: path.with_extension("files"), state }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Whatever a panic left in it is whole.
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on files are kept for this prompt.
    pub(crate) fn begin(&self, prompt: u32) {
        self.state().prompt = prompt;
    }

    /// Puts back what files were before a prompt, those in `places` only. The value: each file, and what was wrong.
    pub(crate) async fn put_back(&self, prompt: u32, places: Vec<PathBuf>) -> Vec<(PathBuf, Option<String>)> {
        let mut first: BTreeMap<PathBuf, Was> = BTreeMap::new();
        for snapshot in &self.state().snapshots {
            if snapshot.prompt >= prompt {
                first.entry(snapshot.path.clone()).or_insert(snapshot.was);
            }
        }
        let folder = self.inner.folder.clone();
        let done = tasks::blocking("rewind", move || {
            let all = first.into_iter();
            all.map(|(path, was)| {
                let wrong = put_back(&path, was, &folder, &places).err().map(|why| why.to_string());
                (path, wrong)
            })
            .collect()
        });
        done.await.unwrap_or_default()
    }

    async fn keep(&self, path: PathBuf) -> Result<(), EffectLogFailed> {
        let (prompt, left) = {
            let state = self.state();
            if state.snapshots.iter().any(|kept| kept.prompt == state.prompt && kept.path == path) {
                return Ok(());
            }
            (state.prompt, MOST.saturating_sub(state.bytes).min(MOST_OF_A_FILE))
        };
        let (folder, at) = (self.inner.folder.clone(), path.clone());
        let kept = tasks::blocking("snapshot", move || copy(&at, &folder, left)).await;
        let (was, bytes) = kept.unwrap_or((Was::Unknown, 0));
        {
            let mut state = self.state();
            state.bytes += bytes;
            state.snapshots.push(Snapshot { prompt, path: path.clone(), was });
        }
        let line = Record::Snapshot { prompt, path, was }.line();
        let written = self.inner.log.append(line, Durability::Written).await;
        written.map(|_| ()).map_err(|failed| EffectLogFailed(failed.to_string()))
    }
}

impl EffectLog for FileKeeper {
    fn intent(&self, _: CallNo, _: &str) -> BoxFuture<'_, Result<(), EffectLogFailed>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn before_write(&self, _: CallNo, writes: &[PathBuf]) -> BoxFuture<'_, Result<(), EffectLogFailed>> {
        let writes = writes.to_vec();
        Box::pin(async move {
            for path in writes {
                self.keep(path).await?;
            }
            Ok(())
        })
    }

    fn done(&self, _: CallNo, _: Digest) -> BoxFuture<'_, Result<(), EffectLogFailed>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// What a file is, with a copy of it where there is room.
fn copy(path: &Path, folder: &Path, left: u64) -> (Was, u64) {
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return (Was::Absent, 0),
        Ok(meta) if meta.is_file() && meta.len() <= left => {}
        Ok(_) | Err(_) => return (Was::Unknown, 0),
    }
    kept(path, folder, left).unwrap_or((Was::Unknown, 0))
}

fn kept(path: &Path, folder: &Path, left: u64) -> io::Result<(Was, u64)> {
    let (file, _) = open_regular(path).map_err(io::Error::other)?;
    let mut bytes = Vec::new();
    file.take(left + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > left {
        return Ok((Was::Unknown, 0));
    }
    let digest = Digest::of(&bytes);
    durable::private_dir(folder)?;
    match durable::create(&folder.join(digest.hex()), &bytes) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        done => done?,
    }
    Ok((Was::Kept { digest }, bytes.len() as u64))
}

/// Why a file is not what it was.
#[derive(Debug, thiserror::Error)]
enum NotPutBack {
    #[error("it lies outside the folders of this session")]
    Outside,
    #[error("it governs git")]
    Governs,
    #[error("its content was not kept (too large, or no plain file)")]
    NotKept,
    #[error("its copy is damaged")]
    Damaged,
    #[error("its copy cannot be read: {0}")]
    NoCopy(io::Error),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A session file is input: it puts nothing back outside the places where claw may write.
fn put_back(path: &Path, was: Was, folder: &Path, places: &[PathBuf]) -> Result<(), NotPutBack> {
    let real = paths::resolve(path);
    if !places.iter().any(|place| real.starts_with(place)) {
        return Err(NotPutBack::Outside);
    }
    if real.components().any(|part| part.as_os_str() == ".git") {
        return Err(NotPutBack::Governs);
    }
    match was {
        Was::Unknown => Err(NotPutBack::NotKept),
        Was::Absent => match std::fs::remove_file(&real) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            Ok(()) | Err(_) => Ok(()),
        },
        Was::Kept { digest } => {
            let bytes = std::fs::read(folder.join(digest.hex())).map_err(NotPutBack::NoCopy)?;
            if Digest::of(&bytes) != digest {
                return Err(NotPutBack::Damaged);
            }
            if let Some(parent) = real.parent() {
                std::fs::create_dir_all(parent)?;
            }
            Ok(durable::replace(&real, &bytes, durable::Mode::Keep, durable::Sync::No)?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use claw_kernel::durable::{LogWriter, Mode, Sync, create, private_dir, replace};

    #[tokio::test]
    async fn files_are_put_back_as_they_were_before_a_prompt_and_never_outside() {
        let top = tempfile::tempdir().unwrap();
        let top = paths::resolve(top.path());
        let project = top.join("project");
        private_dir(&project).unwrap();
        let (old, new, outside) = (project.join("old"), project.join("new"), top.join("outside"));
        create(&old, b"one").unwrap();
        create(&outside, b"mine").unwrap();
        let session = top.join("s.jsonl");
        let log = LogWriter::start().unwrap().create(&session).unwrap();
        let keeper = FileKeeper::new(&session, log, Vec::new());
        let call = CallNo { turn: 1, index: 1 };
        keeper.begin(1);
        keeper.before_write(call, std::slice::from_ref(&old)).await.unwrap();
        replace(&old, b"two", Mode::Keep, Sync::No).unwrap();
        keeper.begin(2);
        keeper.before_write(call, &[old.clone(), new.clone(), outside.clone()]).await.unwrap();
        replace(&old, b"three", Mode::Keep, Sync::No).unwrap();
        replace(&new, b"new", Mode::Keep, Sync::No).unwrap();
        replace(&outside, b"changed", Mode::Keep, Sync::No).unwrap();
        let back = keeper.put_back(2, vec![project.clone()]).await;
        assert_eq!(std::fs::read(&old).unwrap(), b"two");
        assert!(!new.exists());
        assert_eq!(std::fs::read(&outside).unwrap(), b"changed");
        let wrong: Vec<&PathBuf> =
            back.iter().filter(|(_, wrong)| wrong.is_some()).map(|(path, _)| path).collect();
        assert_eq!(wrong, [&outside]);
        // Another process knows it from the records.
        let loaded = crate::transcript::load(&std::fs::read(&session).unwrap(), &|_, _| false).unwrap();
        let log = LogWriter::start().unwrap().open(&session).unwrap().0;
        let later = FileKeeper::new(&session, log, loaded.facts.snapshots);
        later.put_back(1, vec![project]).await;
        assert_eq!(std::fs::read(&old).unwrap(), b"one");
    }
}
