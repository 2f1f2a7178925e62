//! `write_file`: a file as a whole, new or over an old one.

use crate::error::ToolError;
use crate::files::kind;
use crate::files::text::TextFile;
use crate::files::write::{Stored, store};
use crate::input;
use crate::output::ToolOutput;
use crate::patch::hunks;
use crate::read_state::{Knowledge, ReadState, Seen, write_turn};
use crate::tool::{Effect, Tool, ToolContext};
use claw_kernel::tasks;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const NAME: &str = "write_file";

/// Writes a file.
#[derive(Debug)]
pub struct WriteFile;

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// The file, absolute or from the working folder.
    #[serde(alias = "file_path", alias = "filePath")]
    path: String,
    /// Its whole new content.
    #[serde(alias = "contents", alias = "file_text")]
    content: String,
}

impl Tool for WriteFile {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["write", "create_file"]
    }

    fn description(&self) -> String {
        "Writes a whole file; parent folders are made. To change part of a file use edit_file.".to_owned()
    }

    fn input_schema(&self) -> Value {
        input::schema::<Input>()
    }

    fn effect(&self, ctx: &ToolContext, input: &Value) -> Result<Effect, ToolError> {
        let input: Input = input::parse(NAME, input)?;
        Ok(Effect { writes: vec![ctx.folder.resolve(&input.path)], ..Effect::default() })
    }

    fn call<'a>(
        &'a self,
        ctx: &'a ToolContext,
        judged: &'a Effect,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let input: Input = input::parse(NAME, &input)?;
            let path = judged.written(NAME)?.to_owned();
            let turn = tokio::select! {
                turn = write_turn([path.clone()]) => turn,
                () = ctx.cancel.cancelled() => return Err(ToolError::Cancelled),
            };
            let (reads, agent) = (Arc::clone(&ctx.reads), Arc::clone(&ctx.agent));
            let shown = ctx.folder.shown(&path).into_owned();
            // Once begun it is brought to its end, turn included, also when the call is dropped.
            let work = tasks::blocking(NAME, move || {
                let _turn = turn;
                write(&path, &input.content, &reads, &agent).map(|done| done.output(&path, &shown))
            });
            work.await.map_err(|error| ToolError::Panicked(error.to_string()))?
        })
    }
}

/// Larger files are not written over: their old content could be neither kept nor shown.
const MOST_BYTES: u64 = 32 << 20;

struct Written {
    old: Option<String>,
    new: String,
    bytes: usize,
    stored: Stored,
}

fn write(path: &Path, content: &str, reads: &ReadState, agent: &Arc<str>) -> Result<Written, ToolError> {
    let before = before(path)?;
    let file = match &before {
        Some((bytes, seen)) => {
            refuse_stale(path, &reads.knowledge(path, agent, seen))?;
            TextFile::decode(bytes).ok()
        }
        None => None,
    };
    let (old, bytes) = match file {
        Some(old) => (Some(old.text().to_owned()), old.with_text(content).encode()),
        None => (None, content.as_bytes().to_vec()),
    };
    let stored = store(path, &bytes)?;
    let meta = path.metadata().map_err(|source| ToolError::Io { path: path.to_owned(), source })?;
    reads.wrote(path, agent, Seen::whole(&meta, &bytes));
    let old = old.or_else(|| before.map(|_| String::new()));
    Ok(Written { old, new: content.to_owned(), bytes: bytes.len(), stored })
}

/// The content that is there; none for a new file. Errors: it is no regular file, it cannot be read.
fn before(path: &Path) -> Result<Option<(Vec<u8>, Seen)>, ToolError> {
    if let Err(error) = path.metadata()
        && error.kind() == std::io::ErrorKind::NotFound
    {
        return Ok(None);
    }
    let (file, meta) = kind::open_regular(path)?;
    if meta.len() > MOST_BYTES {
        return Err(ToolError::Refused(format!(
            "{} has {} bytes, more than the {MOST_BYTES} that are written over; remove it with bash first if that is meant",
            path.display(),
            meta.len()
        )));
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES)
        .read_to_end(&mut bytes)
        .map_err(|source| ToolError::Io { path: PathBuf::from(path), source })?;
    let seen = Seen::whole(&meta, &bytes);
    Ok(Some((bytes, seen)))
}

fn refuse_stale(path: &Path, knowledge: &Knowledge) -> Result<(), ToolError> {
    let shown = path.display();
    let text = match knowledge {
        Knowledge::Current | Knowledge::Unread { by: None } => return Ok(()),
        Knowledge::Changed { by: Some(by) } => {
            format!("{shown} changed since you read it, by agent {by}; read it again, then write")
        }
        Knowledge::Changed { by: None } => {
            format!("{shown} changed since you read it; read it again, then write")
        }
        Knowledge::Unread { by: Some(by) } => {
            format!("{shown} was written by agent {by} and you have not read it; read it, then write")
        }
    };
    Err(ToolError::Refused(text))
}

impl Written {
    fn output(&self, path: &Path, shown: &str) -> ToolOutput {
        let (kind, verb) = if self.old.is_some() { ("update", "updated") } else { ("create", "created") };
        let patch = self.old.as_ref().map_or_else(Vec::new, |old| hunks(old, &self.new));
        let text = format!("{verb} {shown} ({} bytes){}", self.bytes, self.stored.note());
        let data = json!({"type": kind, "filePath": path, "structuredPatch": patch});
        ToolOutput { text, data, ..ToolOutput::default() }
    }
}

#[cfg(test)]
mod tests;
