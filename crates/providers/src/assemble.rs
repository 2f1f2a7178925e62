//! Puts the events of one message together into content blocks.
//!
//! Owns what is whole and what is cut. Must not know any wire, nor who repeats a broken message.

use crate::event::{CutCall, CutReason, StopReason, StreamEvent, UsageReport};
use crate::message::Block;
use serde_json::Value;

/// More than this is no answer: 32 MiB of text, thinking and inputs together.
const LIMIT: usize = 32 * 1024 * 1024;

/// Collects one message.
#[derive(Debug, Default)]
pub struct Assembler {
    slots: Vec<Slot>,
    usage: UsageReport,
    stop: Option<StopReason>,
    whole: bool,
    error: Option<(String, String)>,
    size: usize,
}

#[derive(Debug)]
struct Slot {
    index: u32,
    closed: bool,
    piece: Piece,
}

#[derive(Debug)]
enum Piece {
    Text(String),
    Thinking { thinking: String, signature: String },
    Redacted(String),
    Call { id: String, name: String, json: String },
}

/// A whole message.
#[derive(Clone, Debug, PartialEq)]
pub struct Assembled {
    /// In order of appearance; texts without a character are left out.
    pub blocks: Vec<Block>,
    /// Calls that must not run.
    pub cut_calls: Vec<CutCall>,
    /// Why it ended.
    pub stop: StopReason,
}

/// A message that must not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotWhole {
    /// The service said so.
    #[error("{kind}: {message}")]
    Error {
        /// The service's type.
        kind: String,
        /// The service's words.
        message: String,
    },
    /// The stream ended without saying that the message is whole.
    #[error("the message has no end")]
    NoEnd,
    /// The message is larger than any answer may be.
    #[error("the message is longer than {} MiB", LIMIT >> 20)]
    TooLong,
}

impl Assembler {
    /// Takes the next event. What follows the message's end changes nothing.
    pub fn take(&mut self, event: &StreamEvent) {
        if self.whole || self.error.is_some() {
            return;
        }
        match event {
            StreamEvent::MessageStart { .. } => {}
            StreamEvent::BlockStop { index } => self.close(*index),
            StreamEvent::TextStart { index } => self.open(*index, Piece::Text(String::new())),
            StreamEvent::TextDelta { index, text } => self.text(*index, text),
            StreamEvent::ThinkingDelta { index, thinking } => self.thinking(*index, thinking, ""),
            StreamEvent::SignatureDelta { index, signature } => self.thinking(*index, "", signature),
            StreamEvent::RedactedThinking { index, data } => {
                self.size += data.len();
                self.open(*index, Piece::Redacted(data.clone()));
            }
            StreamEvent::ToolUseStart { index, id, name } => self.call(*index, id, name),
            StreamEvent::ToolInputDelta { index, json } => self.input(*index, json),
            StreamEvent::Usage(report) => self.usage(*report),
            StreamEvent::Stop(reason) => self.stop = Some(reason.clone()),
            StreamEvent::MessageStop => self.whole = true,
            StreamEvent::Error { kind, message } => self.error = Some((kind.clone(), message.clone())),
        }
    }

    /// Whether the message's end came.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// Whether the service reported an error.
    pub fn has_failed(&self) -> bool {
        self.error.is_some() || self.size > LIMIT
    }

    /// Whether a block has begun: the service answers.
    pub fn has_begun(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Whether any block holds something.
    pub fn has_blocks(&self) -> bool {
        self.slots.iter().any(|slot| !slot.piece.is_empty())
    }

    /// Usage as told so far.
    pub fn reported(&self) -> UsageReport {
        self.usage
    }

    /// What has come so far; calls whose input does not parse hold `{}`.
    pub fn partial(&self, model: &str) -> Vec<Block> {
        self.slots
            .iter()
            .filter(|slot| !slot.piece.is_empty())
            .map(|slot| slot.piece.block(model).unwrap_or_else(|block| block))
            .collect()
    }

    /// The message, if it is whole.
    ///
    /// # Errors
    /// [`NotWhole`]: nothing of it may be used.
    pub fn finish(self, model: &str) -> Result<Assembled, NotWhole> {
        if let Some((kind, message)) = self.error {
            return Err(NotWhole::Error { kind, message });
        }
        if self.size > LIMIT {
            return Err(NotWhole::TooLong);
        }
        if !self.whole {
            return Err(NotWhole::NoEnd);
        }
        let is_cut = self.stop == Some(StopReason::MaxTokens);
        let last = self.slots.len().saturating_sub(1);
        let mut blocks = Vec::with_capacity(self.slots.len());
        let mut cut_calls = Vec::new();
        for (at, slot) in self.slots.iter().enumerate().filter(|(_, slot)| !slot.piece.is_empty()) {
            let is_unfilled = is_cut && at == last && slot.piece.is_call_without_input();
            let block = match slot.piece.block(model) {
                Ok(block) if !is_unfilled => block,
                Ok(block) | Err(block) => {
                    let why = if is_cut { CutReason::OutputLimit } else { CutReason::NotJson };
                    cut_calls.push(CutCall { block: blocks.len(), why });
                    block
                }
            };
            blocks.push(block);
        }
        Ok(Assembled { blocks, cut_calls, stop: self.stop.unwrap_or(StopReason::EndTurn) })
    }

    fn open(&mut self, index: u32, piece: Piece) {
        self.slots.push(Slot { index, closed: false, piece });
    }

    fn close(&mut self, index: u32) {
        if let Some(slot) = self.slots.iter_mut().rev().find(|slot| slot.index == index) {
            slot.closed = true;
        }
    }

    fn newest(&mut self, index: u32) -> Option<&mut Piece> {
        self.slots.iter_mut().rev().find(|slot| slot.index == index).map(|slot| &mut slot.piece)
    }

    fn text(&mut self, index: u32, piece: &str) {
        self.size += piece.len();
        if let Some(Piece::Text(text)) = self.newest(index) {
            text.push_str(piece);
        } else {
            self.open(index, Piece::Text(piece.to_owned()));
        }
    }

    fn thinking(&mut self, index: u32, more_thinking: &str, more_signature: &str) {
        self.size += more_thinking.len() + more_signature.len();
        if let Some(Piece::Thinking { thinking, signature }) = self.newest(index) {
            thinking.push_str(more_thinking);
            signature.push_str(more_signature);
        } else {
            let (thinking, signature) = (more_thinking.to_owned(), more_signature.to_owned());
            self.open(index, Piece::Thinking { thinking, signature });
        }
    }

    fn call(&mut self, index: u32, new_id: &str, new_name: &str) {
        let open = self.slots.iter_mut().rev().find(|slot| slot.index == index && !slot.closed);
        if let Some(Slot { piece: Piece::Call { id, name, .. }, .. }) = open {
            // Told again because its id or name came late.
            new_id.clone_into(id);
            new_name.clone_into(name);
        } else {
            let (id, name) = (new_id.to_owned(), new_name.to_owned());
            self.open(index, Piece::Call { id, name, json: String::new() });
        }
    }

    fn input(&mut self, index: u32, piece: &str) {
        self.size += piece.len();
        if let Some(Piece::Call { json, .. }) = self.newest(index) {
            json.push_str(piece);
        }
    }

    fn usage(&mut self, report: UsageReport) {
        let usage = &mut self.usage;
        usage.input = report.input.or(usage.input);
        usage.output = report.output.or(usage.output);
        usage.cache_read = report.cache_read.or(usage.cache_read);
        usage.cache_write = report.cache_write.or(usage.cache_write);
    }
}

impl Piece {
    fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Thinking { thinking, signature } => thinking.is_empty() && signature.is_empty(),
            Self::Redacted(_) | Self::Call { .. } => false,
        }
    }

    fn is_call_without_input(&self) -> bool {
        matches!(self, Self::Call { json, .. } if json.trim().is_empty())
    }

    /// The block; `Err` holds a call whose input is no object, with `{}` in its place.
    fn block(&self, model: &str) -> Result<Block, Block> {
        Ok(match self {
            Self::Text(text) => Block::Text { text: text.clone() },
            Self::Thinking { thinking, signature } => Block::Thinking {
                thinking: thinking.clone(),
                signature: Some(signature.clone()).filter(|s| !s.is_empty()),
                model: Some(model.to_owned()),
            },
            Self::Redacted(data) => {
                Block::RedactedThinking { data: data.clone(), model: Some(model.to_owned()) }
            }
            Self::Call { id, name, json } => {
                let call = |input| Block::ToolUse { id: id.clone(), name: name.clone(), input };
                return input_of(json).map(call).ok_or_else(|| call(Value::Object(serde_json::Map::new())));
            }
        })
    }
}

/// The input of a call: an object, nothing at all, or an object that the model wrote as a string.
fn input_of(json: &str) -> Option<Value> {
    if json.trim().is_empty() {
        return Some(Value::Object(serde_json::Map::new()));
    }
    match serde_json::from_str(json).ok()? {
        object @ Value::Object(_) => Some(object),
        Value::Null => Some(Value::Object(serde_json::Map::new())),
        Value::String(text) => serde_json::from_str(&text).ok().filter(Value::is_object),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    }
}

#[cfg(test)]
mod tests;
