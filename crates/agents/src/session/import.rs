//! New sessions from what others hold: forks, and files of other formats.

use super::error::SessionError;
use super::foreign::{self, Foreign};
use super::open::OpenSession;
use super::store::Store;
use crate::transcript::{self, Record};
use claw_kernel::clock;
use claw_kernel::digest::Digest;
use claw_kernel::durable::LogWriter;
use claw_kernel::ids::SessionId;
use claw_kernel::tasks;
use claw_providers::message::{Block, Message, Role};
use std::path::{Path, PathBuf};

/// Bytes of a foreign file.
const MOST: u64 = 256 << 20;

/// Opens a foreign file: what it holds goes into a session of its own, the first time. The file stays as it is.
pub(super) async fn open(
    store: &Store,
    path: &Path,
    writer: &LogWriter,
    model: Option<&str>,
) -> Result<OpenSession, SessionError> {
    let bytes = read(path).await?;
    // The same content is the same session.
    let id = SessionId::of_digest(&Digest::of(&bytes));
    let own = store.file(id);
    if own.is_file() {
        return store.open_own(id, own, writer, model).await;
    }
    let foreign = foreign::read(&bytes).ok_or_else(|| SessionError::NoSession {
        path: path.to_owned(),
        why: "neither claw's own format nor one of those that are read".to_owned(),
    })?;
    write(store, (id, path.display().to_string()), foreign, writer, model).await
}

/// A new session with what a file holds.
pub(super) async fn copy(
    store: &Store,
    (path, from): (&Path, String),
    id: SessionId,
    writer: &LogWriter,
    model: Option<&str>,
) -> Result<OpenSession, SessionError> {
    let bytes = read(path).await?;
    if !bytes.starts_with(b"{\"v\":")
        && let Some(foreign) = foreign::read(&bytes)
    {
        return write(store, (id, from), foreign, writer, model).await;
    }
    let loaded = transcript::load(&bytes, &|_, _| false)
        .map_err(|error| SessionError::Unreadable(error.to_string()))?;
    let model = model.map(str::to_owned).or(loaded.facts.model).unwrap_or_default();
    let mut session = store.create_as(id, writer, &model, Some(from)).await?;
    // All whole lines: prompts, summaries and costs stay what they were. Snapshots stay with the first.
    let whole = usize::try_from(loaded.whole).unwrap_or(usize::MAX).min(bytes.len());
    let lines = bytes[..whole].split_inclusive(|byte| *byte == b'\n');
    let mut copied: Vec<u8> = Vec::with_capacity(whole);
    for line in lines {
        match serde_json::from_slice::<Record>(line) {
            Ok(
                Record::Snapshot { .. }
                | Record::Closed { .. }
                | Record::Session { .. }
                | Record::Team { .. },
            )
            | Err(_) => {}
            Ok(_) => copied.extend(line),
        }
    }
    session.transcript.append_lines(copied).await?;
    session.read_again().await?;
    Ok(session)
}

async fn read(path: &Path) -> Result<Vec<u8>, SessionError> {
    let path: PathBuf = path.to_owned();
    let done = tasks::blocking("session", move || {
        let io = |source| SessionError::Io { path: path.clone(), source };
        let (file, meta) = claw_tools::files::kind::open_regular(&path)
            .map_err(|error| SessionError::NoSession { path: path.clone(), why: error.to_string() })?;
        if meta.len() > MOST {
            return Err(SessionError::TooLarge { path: path.clone(), bytes: meta.len(), most: MOST });
        }
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::Read::take(file, MOST), &mut bytes).map_err(io)?;
        Ok(bytes)
    });
    done.await?
}

async fn write(
    store: &Store,
    (id, from): (SessionId, String),
    foreign: Foreign,
    writer: &LogWriter,
    model: Option<&str>,
) -> Result<OpenSession, SessionError> {
    let Foreign { messages, usage, model: answered, lost } = foreign;
    let model = model.map(str::to_owned).or_else(|| answered.clone()).unwrap_or_default();
    let mut session = store.create_as(id, writer, &model, Some(from)).await?;
    let mut lines = Vec::new();
    let (mut prompt, mut turn) = (0, 0);
    for message in messages {
        let record = match message.role {
            Role::User if is_said(&message) => {
                prompt += 1;
                Record::Said { prompt, at: clock::now(), content: message.content }
            }
            Role::User => Record::Message { turn, message, stop: None },
            Role::Assistant => {
                turn += 1;
                Record::Message { turn, message, stop: None }
            }
        };
        lines.extend(record.line());
    }
    if let Some(usage) = usage {
        lines.extend(Record::Usage { usage, model: answered }.line());
    }
    session.transcript.append_lines(lines).await?;
    session.read_again().await?;
    session.repairs = lost.into_iter().chain(std::mem::take(&mut session.repairs)).collect();
    Ok(session)
}

fn is_said(message: &Message) -> bool {
    message.content.iter().all(|block| matches!(block, Block::Text { .. } | Block::Image(_)))
}
