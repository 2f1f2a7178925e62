//! The open transcript of an attempt: records go through the process's log writer, in order.

use super::load::{Loaded, Repair, TranscriptError, load};
use claw_kernel::durable::{self, Durability, Log, LogFailed, LogWriter};
use claw_kernel::tasks::{self, TaskFailed};
use serde_json::Value;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The transcript could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenFailed {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: {source}", path.display())]
    Unreadable { path: PathBuf, source: TranscriptError },
    #[error(transparent)]
    Log(#[from] LogFailed),
    #[error(transparent)]
    Task(#[from] TaskFailed),
}

/// A transcript and what it held.
pub(crate) struct Opened {
    pub(crate) transcript: Transcript,
    pub(crate) loaded: Loaded,
}

/// An open transcript.
#[derive(Debug)]
pub(crate) struct Transcript {
    log: Log,
    bytes: u64,
}

impl Transcript {
    /// Opens it, repairs its end, and reads what it holds. The folder is made.
    pub(crate) async fn open<F>(path: &Path, writer: &LogWriter, reads_only: F) -> Result<Opened, OpenFailed>
    where
        F: Fn(&str, &Value) -> bool + Send + 'static,
    {
        // Nearly always there is none yet: nothing to be read, nobody to be woken.
        match Self::create(path, writer) {
            Ok(transcript) => return Ok(Opened { transcript, loaded: Loaded::nothing() }),
            Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => {}
            Err(source) => return Err(OpenFailed::Io { path: path.to_owned(), source }),
        }
        let owned = path.to_owned();
        let loaded = tasks::blocking("transcript", move || read(&owned, &reads_only)).await??;
        let (log, bytes) = writer.open(path)?;
        let mut transcript = Self { log, bytes };
        if loaded.unended {
            transcript.write(vec![b'\n']).await?;
        }
        Ok(Opened { transcript, loaded })
    }

    /// A new one. Its folder must exist.
    pub(crate) fn create(path: &Path, writer: &LogWriter) -> io::Result<Self> {
        Ok(Self { log: writer.create(path)?, bytes: 0 })
    }

    /// Of a file that is whole, without reading it.
    pub(crate) fn again(path: &Path, writer: &LogWriter) -> Result<Self, LogFailed> {
        let (log, bytes) = writer.open(path)?;
        Ok(Self { log, bytes })
    }

    /// Records that `Record::line` made. Done when the kernel has the bytes: the next request may leave.
    pub(crate) async fn append_lines(&mut self, lines: Vec<u8>) -> Result<(), LogFailed> {
        self.write(lines).await
    }

    /// A handle for records of others: they stand in the order in which they are given.
    pub(crate) fn log(&self) -> Log {
        self.log.clone()
    }

    async fn write(&mut self, bytes: Vec<u8>) -> Result<(), LogFailed> {
        self.bytes = self.log.append(bytes, Durability::Written).await?;
        Ok(())
    }

    /// Bytes written, all whole.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

fn read(path: &Path, reads_only: &dyn Fn(&str, &Value) -> bool) -> Result<Loaded, OpenFailed> {
    let io = |source| OpenFailed::Io { path: path.to_owned(), source };
    if let Some(folder) = path.parent() {
        durable::private_dir(folder).map_err(io)?;
    }
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(io(error)),
    };
    let loaded = load(&bytes, reads_only)
        .map_err(|source| OpenFailed::Unreadable { path: path.to_owned(), source })?;
    if loaded.repairs.iter().any(|repair| matches!(repair, Repair::TornTail { .. })) {
        // The bytes are kept beside the file before they go.
        let mut aside = path.as_os_str().to_owned();
        aside.push(format!(".torn-at-{}", loaded.whole));
        let torn =
            usize::try_from(loaded.whole).ok().and_then(|whole| bytes.get(whole..)).unwrap_or_default();
        durable::replace(Path::new(&aside), torn, durable::Mode::Private, durable::Sync::No).map_err(io)?;
        durable::truncate(path, loaded.whole).map_err(io)?;
    }
    Ok(loaded)
}
