//! From the bytes of a transcript to a history that can be sent. Pure; every loss is reported.

use super::record::{End, Record, VERSION};
use claw_providers::event::StopReason;
use claw_providers::message::{Block, Message, Role};
use claw_providers::usage::Usage;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;

/// The result of a call that was interrupted and may have run.
pub(crate) const INTERRUPTED: &str = "interrupted: state unknown, check before you repeat it";

/// A transcript that cannot be gone on from.
#[derive(Debug, thiserror::Error)]
pub enum TranscriptError {
    /// Written by a later version.
    #[error("line {line} is of version {version}, this claw reads {VERSION}; use a newer claw")]
    Newer {
        /// From 1.
        line: usize,
        /// Of the line.
        version: u64,
    },
}

/// What was put right at load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repair {
    /// The last line has no end: it is cut off.
    TornTail {
        /// Where it began.
        offset: u64,
        /// Bytes cut.
        bytes: u64,
    },
    /// A line that is no record, skipped.
    BadLine {
        /// From 1.
        line: usize,
        /// Where it begins.
        offset: u64,
    },
    /// A call without a result gets an error result.
    Orphan {
        /// The tool.
        tool: String,
    },
    /// A call without a result only reads: it is made again.
    Again {
        /// The tool.
        tool: String,
    },
    /// Results without a call, or a second result of one, dropped.
    StrayResults(usize),
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TornTail { offset, bytes } => {
                write!(f, "the last record was torn and is dropped ({bytes} bytes at offset {offset})")
            }
            Self::BadLine { line, offset } => {
                write!(f, "line {line} (offset {offset}) is no record and is skipped")
            }
            Self::Orphan { tool } => write!(f, "a call of `{tool}` had no result: it was interrupted"),
            Self::Again { tool } => {
                write!(f, "a call of `{tool}` had no result and only reads: it is made again")
            }
            Self::StrayResults(count) => write!(f, "{count} results without a call were dropped"),
        }
    }
}

/// What a transcript holds.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The first record, where it is whole.
    pub prompt: Option<String>,
    /// Fit to be sent, but for a last message of the model.
    pub history: Vec<Message>,
    /// The calls of that message: none has a result.
    pub open: Vec<OpenCall>,
    /// Turns of the conversation so far.
    pub turns: u32,
    /// Why the model stopped in the last message, where that is its own.
    pub last_stop: Option<StopReason>,
    /// Spent by all attempts.
    pub usage: Usage,
    /// The end, where the last record is one.
    pub end: Option<End>,
    /// What was put right.
    pub repairs: Vec<Repair>,
    /// Bytes that are whole; what follows is to be cut.
    pub whole: u64,
    /// The last record is whole, but its line has no end.
    pub(crate) unended: bool,
}

impl Loaded {
    /// Of a transcript that is new.
    pub(crate) fn nothing() -> Self {
        Self { usage: Usage::NOTHING, ..Self::default() }
    }
}

/// A call that an attempt did not live to see the end of.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenCall {
    /// Its id.
    pub id: String,
    /// The tool, as the model wrote it.
    pub name: String,
    /// Its input.
    pub input: Value,
    /// It can be made again without harm.
    pub reads_only: bool,
}

/// Reads a transcript. `reads_only` tells of a call whether it can be made again without harm.
pub fn load(bytes: &[u8], reads_only: &dyn Fn(&str, &Value) -> bool) -> Result<Loaded, TranscriptError> {
    let mut loaded = Loaded::nothing();
    let mut messages = Vec::new();
    let mut offset = 0u64;
    for (index, raw) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let (line, start) = (index + 1, offset);
        offset += raw.len() as u64;
        let body = raw.trim_ascii();
        if body.is_empty() && raw.ends_with(b"\n") {
            loaded.whole = offset;
            continue;
        }
        match parse(body, line)? {
            Some(record) => {
                loaded.unended = !raw.ends_with(b"\n");
                loaded.take(record, &mut messages);
            }
            None if raw.ends_with(b"\n") => loaded.repairs.push(Repair::BadLine { line, offset: start }),
            None => {
                loaded.repairs.push(Repair::TornTail { offset: start, bytes: raw.len() as u64 });
                break;
            }
        }
        loaded.whole = offset;
    }
    loaded.repair(messages, reads_only);
    Ok(loaded)
}

fn parse(body: &[u8], line: usize) -> Result<Option<Record>, TranscriptError> {
    let Ok(value) = serde_json::from_slice::<Value>(body) else { return Ok(None) };
    match value.get("v").and_then(Value::as_u64) {
        Some(version) if version > u64::from(VERSION) => Err(TranscriptError::Newer { line, version }),
        Some(_) => Ok(serde_json::from_value(value).ok()),
        None => Ok(None),
    }
}

impl Loaded {
    fn take(&mut self, record: Record, messages: &mut Vec<Message>) {
        if !matches!(record, Record::Meta { .. }) {
            self.end = None;
        }
        match record {
            Record::Prompt { text } => {
                if self.prompt.is_none() {
                    messages.insert(0, Message::user(text.clone()));
                    self.prompt = Some(text);
                }
            }
            Record::Message { turn, message, stop } => {
                self.turns = self.turns.max(turn);
                self.last_stop = stop;
                messages.push(message);
            }
            Record::Usage { usage, .. } => self.usage = self.usage.plus(&usage),
            Record::End(end) => self.end = Some(end),
            Record::Meta { .. } | Record::Abandoned { .. } | Record::Permission { .. } => {}
        }
    }

    fn repair(&mut self, messages: Vec<Message>, reads_only: &dyn Fn(&str, &Value) -> bool) {
        let messages = merged(messages);
        let mut stray = 0;
        let mut open: Vec<OpenCall> = Vec::new();
        for message in messages {
            match message.role {
                Role::User => {
                    let content = self.answered(&mut open, message.content, &mut stray);
                    self.push(Message { role: Role::User, content });
                }
                Role::Assistant => {
                    // Two messages of the model in a row were merged, so that nothing is open here.
                    open = calls(&message.content, reads_only);
                    self.push(message);
                }
            }
        }
        self.repairs.extend(open.iter().map(|call| match call.reads_only {
            true => Repair::Again { tool: call.name.clone() },
            false => Repair::Orphan { tool: call.name.clone() },
        }));
        self.open = open;
        if stray > 0 {
            self.repairs.push(Repair::StrayResults(stray));
        }
        if self.history.last().is_none_or(|last| last.role == Role::User) {
            self.last_stop = None;
        }
    }

    /// Dropped results may leave a message empty, and its neighbours alike.
    fn push(&mut self, message: Message) {
        if message.content.is_empty() {
            return;
        }
        match self.history.last_mut() {
            Some(last) if last.role == message.role => last.content.extend(message.content),
            // Only a lost prompt lets the model speak first.
            None if message.role == Role::Assistant => {
                self.history.push(Message::user("(the beginning of this conversation was lost)"));
                self.history.push(message);
            }
            Some(_) | None => self.history.push(message),
        }
    }

    /// One result for each open call, in their order, then everything else.
    fn answered(&mut self, open: &mut Vec<OpenCall>, content: Vec<Block>, stray: &mut usize) -> Vec<Block> {
        let mut results = HashMap::new();
        let mut rest = Vec::new();
        for block in content {
            match &block {
                Block::ToolResult { tool_use_id, .. } => {
                    let wanted = open.iter().any(|call| call.id == *tool_use_id);
                    if !wanted || results.contains_key(tool_use_id) {
                        *stray += 1;
                    } else {
                        results.insert(tool_use_id.clone(), block);
                    }
                }
                Block::ToolUse { .. } => *stray += 1,
                Block::Text { text } if text.trim().is_empty() => {}
                Block::Text { .. }
                | Block::Thinking { .. }
                | Block::RedactedThinking { .. }
                | Block::Image(_) => {
                    rest.push(block);
                }
            }
        }
        let mut ordered = Vec::with_capacity(open.len() + rest.len());
        for call in open.drain(..) {
            ordered.push(results.remove(&call.id).unwrap_or_else(|| {
                self.repairs.push(Repair::Orphan { tool: call.name.clone() });
                interrupted(&call)
            }));
        }
        ordered.extend(rest);
        ordered
    }
}

fn calls(content: &[Block], reads_only: &dyn Fn(&str, &Value) -> bool) -> Vec<OpenCall> {
    content
        .iter()
        .filter_map(|block| match block {
            Block::ToolUse { id, name, input } => Some(OpenCall {
                id: id.clone(),
                name: name.clone(),
                input: input.clone(),
                reads_only: reads_only(name, input),
            }),
            Block::Text { .. }
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::ToolResult { .. }
            | Block::Image(_) => None,
        })
        .collect()
}

/// Of a call whose message was followed by others: it is not made again, the model has gone on without it.
fn interrupted(call: &OpenCall) -> Block {
    Block::ToolResult {
        tool_use_id: call.id.clone(),
        content: INTERRUPTED.to_owned(),
        images: Vec::new(),
        is_error: true,
    }
}

fn merged(messages: Vec<Message>) -> Vec<Message> {
    let mut all: Vec<Message> = Vec::with_capacity(messages.len());
    for mut message in messages {
        // An empty text would be refused; thinking stays as it is, byte for byte.
        message.content.retain(|block| !block.as_text().is_some_and(|text| text.trim().is_empty()));
        match all.last_mut() {
            _ if message.content.is_empty() => {}
            Some(last) if last.role == message.role => last.content.extend(message.content),
            Some(_) | None => all.push(message),
        }
    }
    all
}

#[cfg(test)]
mod tests;
