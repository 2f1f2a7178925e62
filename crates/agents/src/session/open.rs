//! A session that this process holds: its lock, its log, what it held when it was opened.

use super::error::SessionError;
use super::import;
use super::store::{Found, Store};
use crate::transcript::{Loaded, Opened, Record, Transcript, interrupted};
use claw_kernel::clock;
use claw_kernel::durable::{FileLock, LogWriter, Owner};
use claw_kernel::ids::SessionId;
use claw_kernel::tasks;
use claw_providers::message::{Message, Role};
use std::path::{Path, PathBuf};

/// Bytes of a session that are read.
const MOST: u64 = 1 << 30;

/// A session, held until this is dropped.
#[derive(Debug)]
pub struct OpenSession {
    /// Its id.
    pub id: SessionId,
    /// Its file.
    pub path: PathBuf,
    /// What it holds, put right.
    pub loaded: Loaded,
    /// What was put right and not said before, for people.
    pub repairs: Vec<String>,
    pub(crate) transcript: Transcript,
    pub(crate) store: Store,
    pub(crate) writer: LogWriter,
    lock: FileLock,
}

impl Store {
    /// A new session.
    ///
    /// # Errors
    /// Its file cannot be made.
    pub async fn create(&self, writer: &LogWriter, model: &str) -> Result<OpenSession, SessionError> {
        self.create_as(SessionId::fresh(), writer, model, None).await
    }

    /// A new session with an id that the user chose.
    ///
    /// # Errors
    /// As `create`; it exists.
    pub async fn create_as(
        &self,
        id: SessionId,
        writer: &LogWriter,
        model: &str,
        from: Option<String>,
    ) -> Result<OpenSession, SessionError> {
        self.make_folder()?;
        let path = self.file(id);
        let lock = lock(id, &path)?;
        let io = |source| SessionError::Io { path: path.clone(), source };
        let mut transcript = Transcript::create(&path, writer).map_err(io)?;
        let begun = self.begun(id, model, None, from.clone());
        transcript.append_lines(begun.line()).await?;
        let mut loaded = Loaded::nothing();
        loaded.facts.model = Some(model.to_owned()).filter(|model| !model.is_empty());
        let (store, writer) = (self.clone(), writer.clone());
        Ok(OpenSession { id, path, loaded, repairs: Vec::new(), transcript, store, writer, lock })
    }

    /// Opens what was found; a file of another format is read into a new session, which is found again later.
    ///
    /// # Errors
    /// Another process holds it; it cannot be read.
    pub async fn open(
        &self,
        found: Found,
        writer: &LogWriter,
        model: Option<&str>,
    ) -> Result<OpenSession, SessionError> {
        match found {
            Found::Own { id, path } => self.open_own(id, path, writer, model).await,
            Found::Foreign { path } => import::open(self, &path, writer, model).await,
        }
    }

    pub(super) async fn open_own(
        &self,
        id: SessionId,
        path: PathBuf,
        writer: &LogWriter,
        model: Option<&str>,
    ) -> Result<OpenSession, SessionError> {
        let lock = lock(id, &path)?;
        let bytes = path.metadata().map_err(|source| SessionError::Io { path: path.clone(), source })?.len();
        if bytes > MOST {
            return Err(SessionError::TooLarge { path, bytes, most: MOST });
        }
        let opened = Transcript::open(&path, writer, |_, _| false).await;
        let Opened { mut transcript, mut loaded } =
            opened.map_err(|error| SessionError::Unreadable(error.to_string()))?;
        let mut lines = Vec::new();
        let repairs = settle(&mut loaded, &mut lines);
        let model = model.map(str::to_owned).or_else(|| loaded.facts.model.clone()).unwrap_or_default();
        lines.extend(self.begun(id, &model, loaded.facts.name.clone(), None).line());
        loaded.facts.model = Some(model).filter(|model| !model.is_empty());
        transcript.append_lines(lines).await?;
        let (store, writer) = (self.clone(), writer.clone());
        Ok(OpenSession { id, path, loaded, repairs, transcript, store, writer, lock })
    }

    /// A new session with what another one holds. The other is read, not held.
    ///
    /// # Errors
    /// It cannot be read, or the new one cannot be made.
    pub async fn fork(
        &self,
        found: Found,
        writer: &LogWriter,
        model: Option<&str>,
    ) -> Result<OpenSession, SessionError> {
        let (path, from) = match &found {
            Found::Own { id, path } => (path.clone(), id.to_string()),
            Found::Foreign { path } => (path.clone(), path.display().to_string()),
        };
        let id = SessionId::fresh();
        import::copy(self, (&path, from), id, writer, model).await
    }

    pub(super) fn begun(
        &self,
        id: SessionId,
        model: &str,
        name: Option<String>,
        from: Option<String>,
    ) -> Record {
        Record::Session {
            id,
            at: clock::now(),
            folder: self.workspace().to_owned(),
            model: model.to_owned(),
            name,
            from,
        }
    }

    /// Removes a session with all that lies beside it.
    ///
    /// # Errors
    /// Another process holds it; the system says no.
    pub async fn delete(&self, found: Found) -> Result<(), SessionError> {
        let (id, path) = match found {
            Found::Own { id, path } => (id, path),
            Found::Foreign { path } => {
                return Err(SessionError::NoSession {
                    path,
                    why: "it is not claw's own; delete the file itself".to_owned(),
                });
            }
        };
        let held = lock(id, &path)?;
        let done = tasks::blocking("delete", move || {
            let io = |source| SessionError::Io { path: path.clone(), source };
            std::fs::remove_file(&path).map_err(io)?;
            for ending in ["files", "outputs"] {
                // They may never have been made.
                let _ = std::fs::remove_dir_all(path.with_extension(ending));
            }
            // Nobody can hold it any more but this process.
            let _ = std::fs::remove_file(lock_of(&path));
            drop(held);
            Ok(())
        });
        done.await?
    }

    /// Gives a session that nobody holds another name; empty takes it away.
    ///
    /// # Errors
    /// Another process holds it; it cannot be written.
    pub async fn rename(&self, found: Found, writer: &LogWriter, name: &str) -> Result<(), SessionError> {
        let mut session = self.open(found, writer, None).await?;
        session.append(&[Record::Named { name: name.trim().to_owned() }]).await
    }
}

impl OpenSession {
    /// Appends records.
    pub(crate) async fn append(&mut self, records: &[Record]) -> Result<(), SessionError> {
        let lines = records.iter().flat_map(Record::line).collect();
        Ok(self.transcript.append_lines(lines).await?)
    }

    /// What it holds now, read again; nothing is written but what a repair needs.
    pub(crate) async fn read_again(&mut self) -> Result<(), SessionError> {
        let path = self.path.clone();
        let read = tasks::blocking("session", move || {
            let bytes = std::fs::read(&path).map_err(|source| SessionError::Io { path, source })?;
            crate::transcript::load(&bytes, &|_, _| false)
                .map_err(|error| SessionError::Unreadable(error.to_string()))
        });
        let mut loaded = read.await??;
        let mut lines = Vec::new();
        self.repairs = settle(&mut loaded, &mut lines);
        if !lines.is_empty() {
            self.transcript.append_lines(lines).await?;
        }
        self.loaded = loaded;
        Ok(())
    }

    /// Parts of it, for a lead.
    pub(crate) fn split(self) -> (Transcript, Held) {
        let Self { id, path, loaded, repairs, transcript, store, writer, lock } = self;
        (transcript, Held { id, path, loaded, repairs, store, writer, lock })
    }
}

/// All of an open session but its transcript, which a running conversation has.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) id: SessionId,
    pub(crate) path: PathBuf,
    pub(crate) loaded: Loaded,
    pub(crate) repairs: Vec<String>,
    pub(crate) store: Store,
    pub(crate) writer: LogWriter,
    lock: FileLock,
}

impl Held {
    pub(crate) fn with(self, transcript: Transcript) -> OpenSession {
        let Self { id, path, loaded, repairs, store, writer, lock } = self;
        OpenSession { id, path, loaded, repairs, transcript, store, writer, lock }
    }
}

fn lock_of(path: &Path) -> PathBuf {
    path.with_extension("lock")
}

fn lock(id: SessionId, path: &Path) -> Result<FileLock, SessionError> {
    let owner = Owner { pid: std::process::id(), since: clock::now(), socket: None };
    FileLock::take(&lock_of(path), &owner).map_err(|failed| SessionError::locked(id, failed))
}

/// Calls of the last message that have no result are told so, once: they are not made again by themselves. The value:
/// what was put right and nobody was told of yet.
pub(super) fn settle(loaded: &mut Loaded, lines: &mut Vec<u8>) -> Vec<String> {
    let open = std::mem::take(&mut loaded.open);
    if !open.is_empty() {
        let content = open.iter().map(|call| interrupted(&call.id)).collect();
        let message = Message { role: Role::User, content };
        lines.extend(Record::Message { turn: loaded.turns, message: message.clone(), stop: None }.line());
        loaded.history.push(message);
        loaded.last_stop = None;
    }
    let all = loaded.repairs.iter().map(ToString::to_string);
    let said: Vec<String> = all.filter(|repair| !loaded.facts.told.contains(repair)).collect();
    if !said.is_empty() {
        lines.extend(Record::Repaired { said: said.clone() }.line());
    }
    said
}
