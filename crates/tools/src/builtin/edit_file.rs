//! `edit_file`: one text for another, within a file whose line ends, mark and mode stay.

use crate::cut;
use crate::error::ToolError;
use crate::files::kind;
use crate::files::text::TextFile;
use crate::files::write::{Stored, store};
use crate::input;
use crate::output::ToolOutput;
use crate::patch::hunks;
use crate::read_state::{Knowledge, ReadState, Seen, write_turn};
use crate::tool::{Effect, Tool, ToolContext};
use claw_kernel::redact::Redactor;
use claw_kernel::{near, tasks};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

const NAME: &str = "edit_file";
/// Bytes of a file that is edited.
const MOST_BYTES: u64 = 32 * 1024 * 1024;
/// Places named when a text is found several times.
const MOST_PLACES: usize = 10;
/// Lines looked at for a near one.
const NEAR_LINES: usize = 5_000;

/// Edits a file.
#[derive(Debug)]
pub struct EditFile;

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// The file, absolute or from the working folder.
    #[serde(alias = "file_path", alias = "filePath")]
    path: String,
    /// The text to replace, exactly as in the file and without line numbers; it must be found once.
    #[serde(alias = "oldString", alias = "old_str")]
    old_string: String,
    /// What takes its place.
    #[serde(alias = "newString", alias = "new_str")]
    new_string: String,
    /// Replace every place where it is found.
    #[serde(default, alias = "replaceAll")]
    replace_all: bool,
}

impl Tool for EditFile {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["edit", "str_replace"]
    }

    fn description(&self) -> String {
        "Replaces a text in a file by another. The old text must be found exactly once, or set replace_all."
            .to_owned()
    }

    fn input_schema(&self) -> Value {
        input::schema::<Input>()
    }

    fn effect(&self, ctx: &ToolContext, input: &Value) -> Result<Effect, ToolError> {
        let input: Input = input::parse(NAME, input)?;
        let path = ctx.folder.resolve(&input.path);
        // What is found or not says what is in the file: it reads, too.
        Ok(Effect { reads: vec![path.clone()], writes: vec![path], ..Effect::default() })
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
            let redactor = Arc::clone(&ctx.redactor);
            let shown = ctx.folder.shown(&path).into_owned();
            // Once begun it is brought to its end, turn included, also when the call is dropped.
            let work = tasks::blocking(NAME, move || {
                let _turn = turn;
                edit(&path, &input, &reads, &agent, &redactor).map(|done| done.output(&path, &shown, &input))
            });
            work.await.map_err(|error| ToolError::Panicked(error.to_string()))?
        })
    }
}

struct Edited {
    old: String,
    new: String,
    lines: Vec<usize>,
    stored: Stored,
}

fn edit(
    path: &Path,
    input: &Input,
    reads: &ReadState,
    agent: &Arc<str>,
    redactor: &Redactor,
) -> Result<Edited, ToolError> {
    let refused = |text: String| Err(ToolError::Refused(text));
    if input.old_string == input.new_string {
        return refused("old_string and new_string are the same: there is nothing to change".to_owned());
    }
    let (bytes, seen) = content(path)?;
    if let Knowledge::Changed { by } = reads.knowledge(path, agent, &seen) {
        let by = by.map_or_else(String::new, |by| format!(", by agent {by}"));
        return refused(format!(
            "{} changed since you read it{by}; read it again, then edit",
            path.display()
        ));
    }
    let file = TextFile::decode(&bytes)
        .map_err(|why| ToolError::Refused(format!("{} cannot be edited: {why}", path.display())))?;
    let new = if input.old_string.is_empty() {
        if !file.text().is_empty() {
            return refused("old_string is empty: give the text to replace, or use write_file".to_owned());
        }
        (file.with_text(&input.new_string), vec![1])
    } else {
        let found = file.find(&input.old_string);
        let lines = lines_of(file.text(), found.iter().map(|range| range.start));
        match found.len() {
            0 => return refused(not_found(path, file.text(), &input.old_string, redactor)),
            2.. if !input.replace_all => return refused(several(path, &lines)),
            _ => (file.replace(&found, &input.new_string), lines),
        }
    };
    let (new, lines) = new;
    let encoded = new.encode();
    let stored = store(path, &encoded)?;
    let meta = path.metadata().map_err(|source| ToolError::Io { path: path.to_owned(), source })?;
    reads.wrote(path, agent, Seen::whole(&meta, &encoded));
    Ok(Edited { old: file.text().to_owned(), new: new.text().to_owned(), lines, stored })
}

fn content(path: &Path) -> Result<(Vec<u8>, Seen), ToolError> {
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

impl Edited {
    fn output(&self, path: &Path, shown: &str, input: &Input) -> ToolOutput {
        let place = match self.lines.as_slice() {
            [line] => format!("line {line}"),
            lines => format!("{} places", lines.len()),
        };
        let data = json!({
            "type": "update",
            "filePath": path,
            "oldString": input.old_string,
            "newString": input.new_string,
            "replaceAll": input.replace_all,
            "structuredPatch": hunks(&self.old, &self.new),
        });
        let text = format!("edited {shown} at {place}{}", self.stored.note());
        ToolOutput { text, data, ..ToolOutput::default() }
    }
}

#[cfg(test)]
mod tests;
