//! What the tools that edit share: a text found and replaced in a file that is as the agent knows it, and what is said when
//! it is not found.

use crate::cut;
use crate::error::ToolError;
use crate::files::kind;
use crate::files::text::TextFile;
use crate::files::write::{Stored, store};
use crate::read_state::{Knowledge, ReadState, Seen};
use claw_kernel::near;
use claw_kernel::redact::Redactor;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// Bytes of a file that is edited.
const MOST_BYTES: u64 = 32 * 1024 * 1024;
/// Places named when a text is found several times.
const MOST_PLACES: usize = 10;
/// Lines looked at for a near one.
const NEAR_LINES: usize = 5_000;

/// One text for another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edit<'i> {
    pub(super) old: &'i str,
    pub(super) new: &'i str,
    pub(super) everywhere: bool,
}

/// Who edits.
#[derive(Clone)]
pub(super) struct Editor {
    pub(super) reads: Arc<ReadState>,
    pub(super) agent: Arc<str>,
    pub(super) redactor: Arc<Redactor>,
}

impl Editor {
    pub(super) fn of(ctx: &crate::tool::ToolContext) -> Self {
        let (reads, agent) = (Arc::clone(&ctx.reads), Arc::clone(&ctx.agent));
        Self { reads, agent, redactor: Arc::clone(&ctx.redactor) }
    }

    /// All edits one after the other, or none. The turn to write is held by the caller.
    pub(super) fn edit(&self, path: &Path, edits: &[Edit<'_>]) -> Result<Edited, ToolError> {
        let (bytes, seen) = content(path)?;
        self.refuse_stale(path, &seen)?;
        let file = TextFile::decode(&bytes)
            .map_err(|why| ToolError::Refused(format!("{} cannot be edited: {why}", path.display())))?;
        let (mut now, mut lines) = (file.clone(), Vec::new());
        for (at, edit) in edits.iter().enumerate() {
            let (next, places) = self.one(path, &now, edit).map_err(|why| {
                let which = format!("edit {} of {}, so nothing was changed: ", at + 1, edits.len());
                ToolError::Refused(if edits.len() > 1 { format!("{which}{why}") } else { why.to_string() })
            })?;
            (now, lines) = (next, [lines, places].concat());
        }
        let encoded = now.encode();
        let stored = store(path, &encoded)?;
        self.wrote(path, &encoded)?;
        Ok(Edited { old: file.text().to_owned(), new: now.text().to_owned(), lines, stored })
    }

    /// The file must be as the agent last saw it.
    pub(super) fn refuse_stale(&self, path: &Path, seen: &Seen) -> Result<(), ToolError> {
        if let Knowledge::Changed { by } = self.reads.knowledge(path, &self.agent, seen) {
            let by = by.map_or_else(String::new, |by| format!(", by agent {by}"));
            let text = format!("{} changed since you read it{by}; read it again, then edit", path.display());
            return Err(ToolError::Refused(text));
        }
        Ok(())
    }

    /// The agent knows what it wrote.
    pub(super) fn wrote(&self, path: &Path, bytes: &[u8]) -> Result<(), ToolError> {
        let meta = path.metadata().map_err(|source| ToolError::Io { path: path.to_owned(), source })?;
        self.reads.wrote(path, &self.agent, Seen::whole(&meta, bytes));
        Ok(())
    }

    fn one(&self, path: &Path, file: &TextFile, edit: &Edit<'_>) -> Result<(TextFile, Vec<usize>), NoEdit> {
        if edit.old == edit.new {
            return Err(NoEdit::Same);
        }
        if edit.old.is_empty() {
            if !file.text().is_empty() {
                return Err(NoEdit::Empty);
            }
            return Ok((file.with_text(edit.new), vec![1]));
        }
        let found = file.find(edit.old);
        let lines = lines_of(file.text(), found.iter().map(|range| range.start));
        match found.len() {
            0 => Err(NoEdit::NotFound(not_found(path, file.text(), edit.old, &self.redactor))),
            2.. if !edit.everywhere => Err(NoEdit::Several(several(path, &lines))),
            _ => Ok((file.replace(&found, edit.new), lines)),
        }
    }
}

/// Why an edit is not made.
#[derive(Debug, thiserror::Error)]
enum NoEdit {
    #[error("old_string and new_string are the same: there is nothing to change")]
    Same,
    #[error("old_string is empty: give the text to replace, or use write_file")]
    Empty,
    #[error("{0}")]
    NotFound(String),
    #[error("{0}")]
    Several(String),
}

/// What an edit made of a file.
pub(super) struct Edited {
    pub(super) old: String,
    pub(super) new: String,
    /// Where, counted from 1.
    pub(super) lines: Vec<usize>,
    pub(super) stored: Stored,
}

/// A file's bytes, whole.
pub(super) fn content(path: &Path) -> Result<(Vec<u8>, Seen), ToolError> {
    let (mut file, meta) = kind::open_regular(path)?;
    if meta.len() > MOST_BYTES {
        return Err(ToolError::Refused(format!(
            "{} is too long to edit ({} bytes)",
            path.display(),
            meta.len()
        )));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|source| ToolError::Io { path: path.to_owned(), source })?;
    let seen = Seen::whole(&meta, &bytes);
    Ok((bytes, seen))
}

/// The lines of ascending places, counted from 1, in one pass.
fn lines_of(text: &str, places: impl Iterator<Item = usize>) -> Vec<usize> {
    let (mut line, mut from) = (1, 0);
    places
        .map(|at| {
            line += text.as_bytes()[from..at].iter().filter(|byte| **byte == b'\n').count();
            from = at;
            line
        })
        .collect()
}

fn several(path: &Path, lines: &[usize]) -> String {
    let mut places: Vec<String> = lines.iter().take(MOST_PLACES).map(ToString::to_string).collect();
    if lines.len() > MOST_PLACES {
        places.push("…".to_owned());
    }
    format!(
        "old_string is found {} times in {} (lines {}); give more of the text around it, or set replace_all",
        lines.len(),
        path.display(),
        places.join(", ")
    )
}

fn not_found(path: &Path, text: &str, old: &str, redactor: &Redactor) -> String {
    let shown = path.display();
    let first = old.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    match near_line(text, first.trim()) {
        Some((number, line)) => {
            let line = cut::head(&redactor.apply(line.trim_end()), 200);
            format!(
                "old_string is not found in {shown}; the nearest to its first line is line {number}: {line}"
            )
        }
        None => format!("old_string is not found in {shown}, nor a line like it; read the file again"),
    }
}

/// Bytes of a line that is compared letter by letter.
const NEAR_LENGTH: usize = 120;
/// Lines that are compared so.
const NEAR_CANDIDATES: usize = 500;

/// The line that is the same but for spaces, that holds the text, or that differs little.
fn near_line<'t>(text: &'t str, first: &str) -> Option<(usize, &'t str)> {
    let lines = || text.lines().take(NEAR_LINES).enumerate().map(|(at, line)| (at + 1, line));
    let bare = |line: &str| line.split_whitespace().collect::<String>();
    let wanted = bare(first);
    if wanted.is_empty() {
        return None;
    }
    lines()
        .find(|(_, line)| bare(line) == wanted)
        .or_else(|| lines().find(|(_, line)| line.contains(first)))
        .or_else(|| {
            // A distance costs the product of the lengths: few lines, short ones, of about the same length.
            let wanted = first.trim();
            let alike = |line: &&str| {
                line.len() <= NEAR_LENGTH && line.len().abs_diff(wanted.len()) * 3 <= wanted.len()
            };
            let short = lines().map(|(_, line)| line.trim()).filter(alike).take(NEAR_CANDIDATES);
            if wanted.len() > NEAR_LENGTH {
                return None;
            }
            let near = near::nearest(wanted, short)?;
            lines().find(|(_, line)| line.trim() == near)
        })
}
