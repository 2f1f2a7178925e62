//! `read_file`: numbered lines of a text file, or an image.

use super::image;
use super::notebook::Notebook;
use crate::cut;
use crate::error::ToolError;
use crate::files::kind;
use crate::files::text::NotText;
use crate::input;
use crate::output::ToolOutput;
use crate::read_state::Seen;
use crate::tool::{Effect, Tool, ToolContext};
use claw_kernel::cancel::CancelToken;
use claw_kernel::redact::Redactor;
use claw_kernel::tasks;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

const NAME: &str = "read_file";
/// Bytes that are read as a whole.
const MOST_BYTES: u64 = 10 * 1024 * 1024;
const DEFAULT_LINES: usize = 2_000;
/// Characters of one line.
const MOST_LINE: usize = 2_000;
/// Bytes of one line that are held while it is read.
const HELD_LINE: usize = 4 * MOST_LINE;
/// Bytes of all lines together.
const MOST_TEXT: usize = 120_000;

/// Reads a file.
#[derive(Debug)]
pub struct ReadFile;

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// The file, absolute or from the working folder.
    #[serde(alias = "file_path", alias = "filePath", alias = "notebook_path", alias = "notebookPath")]
    path: String,
    /// First line, from 1.
    #[serde(default)]
    offset: Option<usize>,
    /// Lines at most; 2000 if left out.
    #[serde(default)]
    limit: Option<usize>,
}

impl Tool for ReadFile {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["read", "view", "notebook_read"]
    }

    fn description(&self) -> String {
        "Reads a text file with line numbers, an image, or a notebook as cells. Long files come in parts: go on with offset. Folders are listed \
         with glob_search."
            .to_owned()
    }

    fn input_schema(&self) -> Value {
        input::schema::<Input>()
    }

    fn effect(&self, ctx: &ToolContext, input: &Value) -> Result<Effect, ToolError> {
        let input: Input = input::parse(NAME, input)?;
        Ok(Effect { reads: vec![ctx.folder.resolve(&input.path)], ..Effect::default() })
    }

    fn call<'a>(
        &'a self,
        ctx: &'a ToolContext,
        judged: &'a Effect,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let input: Input = input::parse(NAME, &input)?;
            let path = judged.read(NAME)?.to_owned();
            let (from, cancel, redactor) = (path.clone(), ctx.cancel.clone(), Arc::clone(&ctx.redactor));
            let wanted = Wanted::of(&input, redactor);
            let work = tasks::blocking(NAME, move || read(&from, &wanted, &cancel));
            let done = tokio::select! {
                done = work => done.map_err(|error| ToolError::Panicked(error.to_string()))??,
                () = ctx.cancel.cancelled() => return Err(ToolError::Cancelled),
            };
            ctx.reads.saw(&path, done.seen);
            Ok(done.output)
        })
    }
}

struct Done {
    output: ToolOutput,
    seen: Seen,
}

fn read(path: &Path, wanted: &Wanted, cancel: &CancelToken) -> Result<Done, ToolError> {
    let (mut file, meta) = kind::open_regular(path)?;
    if meta.len() > MOST_BYTES {
        if wanted.is_open {
            let size = meta.len() / (1024 * 1024);
            let text = format!(
                "{} has {size} MiB; read a part with offset and limit, or use grep_search",
                path.display()
            );
            return Err(ToolError::Refused(text));
        }
        let lines = wanted.lines_of(BufReader::new(file), path, cancel)?;
        return Ok(Done { output: lines.output(path, wanted, None), seen: Seen::part(&meta) });
    }
    let bytes = all(&mut file, &meta, path)?;
    let seen = Seen::whole(&meta, &bytes);
    if let Some(kind) = image::kind_of(&bytes) {
        return Ok(Done { output: image::output(path, kind, &bytes)?, seen });
    }
    let text = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes);
    if let Some(cells) = notebook(path, text, wanted) {
        return Ok(Done { output: cells, seen });
    }
    if let Some(what) = binary(text) {
        return Err(ToolError::Refused(format!("{} is not shown: it is {what}", path.display())));
    }
    let total = text.split_inclusive(|byte| *byte == b'\n').count();
    let lines = wanted.lines_of(text, path, cancel)?;
    Ok(Done { output: lines.output(path, wanted, Some(total)), seen })
}

/// Images of a notebook that are shown.
const MOST_IMAGES: usize = 5;

/// The cells, where nobody asked for certain lines and it is a notebook.
fn notebook(path: &Path, text: &[u8], wanted: &Wanted) -> Option<ToolOutput> {
    if path.extension()? != "ipynb" || !wanted.is_open || wanted.first > 1 {
        return None;
    }
    let notebook = Notebook::parse(std::str::from_utf8(text).ok()?).ok()?;
    let clean = wanted.redactor.apply(&notebook.shown()).into_owned();
    let images = notebook.images(MOST_IMAGES);
    let data = json!({"file": {"filePath": path, "type": "notebook", "cells": notebook.cells().len()}});
    Some(ToolOutput { text: cut::head(&clean, MOST_TEXT), data, images, ..ToolOutput::default() })
}

fn all(file: &mut File, meta: &Metadata, path: &Path) -> Result<Vec<u8>, ToolError> {
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or(0));
    let source = file.take(MOST_BYTES + 1).read_to_end(&mut bytes);
    match source {
        Ok(read) if read as u64 <= MOST_BYTES => Ok(bytes),
        Ok(_) => Err(ToolError::Refused(format!("{} grew beyond 10 MiB while it was read", path.display()))),
        Err(source) => Err(ToolError::Io { path: path.to_owned(), source }),
    }
}

/// What bytes are that are no text.
fn binary(bytes: &[u8]) -> Option<String> {
    let magics: [(&[u8], &str); 6] = [
        (
            b"%PDF-",
            "a PDF, whose text is not read here; turn it into text with bash (pdftotext) where that is installed",
        ),
        (b"\x7fELF", "a program (ELF)"),
        (b"PK\x03\x04", "a ZIP archive or an office document"),
        (b"\x1f\x8b", "gzip data"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"\xFF\xFE", "UTF-16 text; convert it to UTF-8 first"),
    ];
    if let Some((_, what)) = magics.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Some((*what).to_owned());
    }
    let zero = bytes.iter().position(|byte| *byte == 0)?;
    Some(NotText::Binary(zero).to_string().replacen("it is ", "", 1))
}

struct Wanted {
    first: usize,
    limit: usize,
    /// Nobody named a limit.
    is_open: bool,
    redactor: Arc<Redactor>,
}

#[derive(Default)]
struct Lines {
    text: String,
    shown: usize,
    /// Lines that were passed over or shown.
    passed: usize,
    /// The text was full before the limit was reached.
    full: bool,
}

impl Wanted {
    fn of(input: &Input, redactor: Arc<Redactor>) -> Self {
        Self {
            first: input.offset.unwrap_or(1).max(1),
            limit: input.limit.unwrap_or(DEFAULT_LINES).max(1),
            is_open: input.limit.is_none(),
            redactor,
        }
    }

    fn lines_of(
        &self,
        mut source: impl BufRead,
        path: &Path,
        cancel: &CancelToken,
    ) -> Result<Lines, ToolError> {
        let mut lines = Lines::default();
        let mut line = Vec::new();
        loop {
            if lines.shown == self.limit || lines.full {
                return Ok(lines);
            }
            let held = if lines.passed + 1 < self.first { 0 } else { HELD_LINE };
            let length = bounded_line(&mut source, &mut line, held, cancel)
                .map_err(|source| ToolError::Io { path: path.to_owned(), source })?;
            match length {
                None => return Ok(lines),
                Some(_) if line.contains(&0) => {
                    return Err(ToolError::Refused(format!("{} is not shown: it is binary", path.display())));
                }
                Some(length) => lines.push(self, &line, length),
            }
        }
    }
}

impl Lines {
    fn push(&mut self, wanted: &Wanted, held: &[u8], length: u64) {
        self.passed += 1;
        if self.passed < wanted.first {
            return;
        }
        let missing = length.saturating_sub(held.len() as u64);
        let text = String::from_utf8_lossy(held);
        // Before the cut, which would leave a part of a secret that nobody knows again.
        let text = wanted.redactor.apply(text.trim_end_matches(['\n', '\r']));
        let text = text.as_ref();
        let shown = if missing > 0 {
            let start = cut::plain(text, MOST_LINE);
            format!("{start}[… {} bytes cut]", length - start.len() as u64)
        } else {
            cut::head(text, MOST_LINE)
        };
        self.shown += 1;
        self.text.push_str(&format!("{:>6}\t{shown}\n", self.passed));
        self.full = self.text.len() >= MOST_TEXT;
    }

    fn output(self, path: &Path, wanted: &Wanted, total: Option<usize>) -> ToolOutput {
        let more = match total {
            Some(0) => "[the file is empty]".to_owned(),
            Some(total) if self.shown == 0 => {
                format!("[the file has {total} lines; line {} is past its end]", wanted.first)
            }
            Some(total) if self.passed < total => {
                format!("[{total} lines in all; go on with offset {}]", self.passed + 1)
            }
            Some(_) => String::new(),
            None if self.shown == 0 => {
                format!("[the file has {} lines; line {} is past its end]", self.passed, wanted.first)
            }
            None => format!("[there may be more; go on with offset {}]", self.passed + 1),
        };
        let data = json!({"file": {
            "filePath": path,
            "content": self.text,
            "startLine": wanted.first,
            "numLines": self.shown,
            "totalLines": total,
        }});
        let text = format!("{}{more}", self.text).trim_end_matches('\n').to_owned();
        ToolOutput { text, data, ..ToolOutput::default() }
    }
}

/// Reads a line and keeps its first `held` bytes; gives its whole length, none at the end.
fn bounded_line(
    source: &mut impl BufRead,
    line: &mut Vec<u8>,
    held: usize,
    cancel: &CancelToken,
) -> io::Result<Option<u64>> {
    line.clear();
    let mut length = 0u64;
    loop {
        if cancel.is_cancelled() {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "cancelled"));
        }
        let chunk = source.fill_buf()?;
        if chunk.is_empty() {
            return Ok((length > 0).then_some(length));
        }
        let end = chunk.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let part = &chunk[..end.unwrap_or(chunk.len())];
        let room = held.saturating_sub(line.len()).min(part.len());
        line.extend_from_slice(&part[..room]);
        length += part.len() as u64;
        let used = part.len();
        let binary = held > 0 && line.contains(&0);
        source.consume(used);
        if end.is_some() || binary {
            return Ok(Some(length));
        }
    }
}

#[cfg(test)]
mod tests;
