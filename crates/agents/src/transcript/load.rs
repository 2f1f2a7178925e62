//! From the bytes of a transcript to a history that can be sent. Pure; every loss is reported.

use super::facts::Facts;
use super::raw::{Raw, Repaired, repair};
use super::record::{End, Record, VERSION};
use claw_providers::event::StopReason;
use claw_providers::message::{Message, Role};
use claw_providers::usage::Usage;
use serde::Deserialize;
use serde_json::Value;
use std::fmt;

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
    /// What its records tell of a session.
    pub facts: Facts,
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
    let mut raw = Raw::default();
    let mut offset = 0u64;
    for (index, line_bytes) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let (line, start) = (index + 1, offset);
        offset += line_bytes.len() as u64;
        let body = line_bytes.trim_ascii();
        if body.is_empty() && line_bytes.ends_with(b"\n") {
            loaded.whole = offset;
            continue;
        }
        match parse(body, line)? {
            Some(record) => {
                loaded.unended = !line_bytes.ends_with(b"\n");
                loaded.take(record, &mut raw);
            }
            None if line_bytes.ends_with(b"\n") => {
                loaded.repairs.push(Repair::BadLine { line, offset: start });
            }
            None => {
                loaded.repairs.push(Repair::TornTail { offset: start, bytes: line_bytes.len() as u64 });
                break;
            }
        }
        loaded.whole = offset;
    }
    loaded.repair(raw, reads_only);
    Ok(loaded)
}

/// What tells whether a line can be read at all.
#[derive(Deserialize)]
struct Peek {
    v: Option<u64>,
}

fn parse(body: &[u8], line: usize) -> Result<Option<Record>, TranscriptError> {
    let Ok(Peek { v: Some(version) }) = serde_json::from_slice(body) else { return Ok(None) };
    if version > u64::from(VERSION) {
        return Err(TranscriptError::Newer { line, version });
    }
    Ok(serde_json::from_slice(body).ok())
}

impl Loaded {
    fn take(&mut self, record: Record, raw: &mut Raw) {
        if !matches!(record, Record::Meta { .. }) {
            self.end = None;
        }
        match record {
            Record::Prompt { text } => {
                if self.prompt.is_none() {
                    raw.messages.insert(0, Message::user(text.clone()));
                    self.prompt = Some(text);
                }
            }
            Record::Message { turn, message, stop } => {
                self.turns = self.turns.max(turn);
                self.last_stop = stop;
                raw.messages.push(message);
            }
            Record::Usage { usage, .. } => self.usage = self.usage.plus(&usage),
            Record::End(end) => self.end = Some(end),
            Record::Said { prompt, at: _, content } => {
                self.facts.last_prompt = self.facts.last_prompt.max(prompt);
                self.facts.title(&content);
                raw.say(prompt, content);
            }
            Record::Compaction { summary, kept, cut, .. } => {
                self.facts.compactions += 1;
                raw.compact(summary, kept, cut);
            }
            Record::Rewound { prompt } => raw.rewind(prompt),
            Record::Told { run, number, text } => {
                self.facts.told_ends.insert((run, number));
                raw.messages.push(Message::user(text));
            }
            Record::Session { .. }
            | Record::Team { .. }
            | Record::Named { .. }
            | Record::Snapshot { .. }
            | Record::Agent { .. }
            | Record::Repaired { .. }
            | Record::Closed { .. } => self.facts.take(record),
            Record::Meta { .. } | Record::Abandoned { .. } | Record::Permission { .. } => {}
        }
    }

    fn repair(&mut self, raw: Raw, reads_only: &dyn Fn(&str, &Value) -> bool) {
        let Repaired { history, firsts: _, open, orphans, stray } = repair(raw.messages, reads_only);
        self.facts.prompts = raw.marks;
        self.history = history;
        self.repairs.extend(orphans.into_iter().map(|tool| Repair::Orphan { tool }));
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
}

#[cfg(test)]
mod tests;
