//! The messages as the records give them, and how they become a history that can be sent. Pure.

use super::load::OpenCall;
use claw_providers::message::{Block, Message, Role};
use serde_json::Value;
use std::collections::HashMap;

/// The result of a call that was interrupted and may have run.
pub(crate) const INTERRUPTED: &str = "interrupted: state unknown, check before you repeat it";

/// Where a prompt stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// From 1.
    pub prompt: u32,
    /// What was said.
    pub content: Vec<Block>,
    /// Place among the messages as they were written.
    pub(crate) at: usize,
}

/// Messages in the order of the records; neighbours of one role are not merged yet.
#[derive(Debug, Default)]
pub(super) struct Raw {
    pub(super) messages: Vec<Message>,
    pub(super) marks: Vec<Mark>,
}

impl Raw {
    pub(super) fn say(&mut self, prompt: u32, content: Vec<Block>) {
        self.marks.push(Mark { prompt, content: content.clone(), at: self.messages.len() });
        self.messages.push(Message { role: Role::User, content });
    }

    /// A prompt that is not there any more (it lies before a summary) changes nothing.
    pub(super) fn rewind(&mut self, prompt: u32) {
        if let Some(place) = self.marks.iter().position(|mark| mark.prompt == prompt) {
            self.messages.truncate(self.marks[place].at);
            self.marks.truncate(place);
        }
    }

    /// The conversation counted its messages as they are sent: so they are counted here.
    pub(super) fn compact(&mut self, summary: String, kept: usize, cut: Option<usize>) {
        let Repaired { mut history, firsts, .. } = repair(std::mem::take(&mut self.messages), &|_, _| false);
        let start = history.len().saturating_sub(kept);
        let mut tail = history.split_off(start);
        if let Some(most) = cut {
            tail.iter_mut().for_each(|message| cut_results(message, most));
        }
        let firsts = &firsts[start..];
        self.marks.retain_mut(|mark| match firsts.iter().position(|first| *first == mark.at) {
            Some(place) => {
                mark.at = place + 1;
                true
            }
            None => false,
        });
        self.messages.push(Message::user(summary));
        self.messages.extend(tail);
    }
}

/// Cuts the results in a message to so many bytes each; images go.
pub fn cut_results(message: &mut Message, most: usize) {
    for block in &mut message.content {
        if let Block::ToolResult { content, images, .. } = block {
            if content.len() > most {
                let cut = content.len() - content.floor_char_boundary(most);
                content.truncate(content.len() - cut);
                content.push_str(&format!("\n[{cut} bytes cut to make room]"));
            }
            images.clear();
        }
    }
}

/// A history that can be sent, but for a last message of the model with open calls.
#[derive(Debug, Default)]
pub(super) struct Repaired {
    pub(super) history: Vec<Message>,
    /// For each message of it the place of its first part among the raw ones.
    pub(super) firsts: Vec<usize>,
    /// Calls of the last message.
    pub(super) open: Vec<OpenCall>,
    /// Tools of the calls that got an error result.
    pub(super) orphans: Vec<String>,
    /// Results without a call.
    pub(super) stray: usize,
}

/// Puts roles, calls and results in order.
pub(super) fn repair(messages: Vec<Message>, reads_only: &dyn Fn(&str, &Value) -> bool) -> Repaired {
    let mut out = Repaired::default();
    let mut open: Vec<OpenCall> = Vec::new();
    for (first, message) in merged(messages) {
        match message.role {
            Role::User => {
                let content = out.answered(&mut open, message.content);
                out.push(first, Message { role: Role::User, content });
            }
            Role::Assistant => {
                // Two messages of the model in a row were merged, so that nothing is open here.
                open = calls(&message.content, reads_only);
                out.push(first, message);
            }
        }
    }
    out.open = open;
    out
}

impl Repaired {
    /// Dropped results may leave a message empty, and its neighbours alike.
    fn push(&mut self, first: usize, message: Message) {
        if message.content.is_empty() {
            return;
        }
        match self.history.last_mut() {
            Some(last) if last.role == message.role => last.content.extend(message.content),
            // Only a lost prompt lets the model speak first.
            None if message.role == Role::Assistant => {
                self.history.push(Message::user("(the beginning of this conversation was lost)"));
                self.history.push(message);
                self.firsts.extend([first, first]);
            }
            Some(_) | None => {
                self.history.push(message);
                self.firsts.push(first);
            }
        }
    }

    /// One result for each open call, in their order, then everything else.
    fn answered(&mut self, open: &mut Vec<OpenCall>, content: Vec<Block>) -> Vec<Block> {
        let mut results = HashMap::new();
        let mut rest = Vec::new();
        for block in content {
            match &block {
                Block::ToolResult { tool_use_id, .. } => {
                    let wanted = open.iter().any(|call| call.id == *tool_use_id);
                    if !wanted || results.contains_key(tool_use_id) {
                        self.stray += 1;
                    } else {
                        results.insert(tool_use_id.clone(), block);
                    }
                }
                Block::ToolUse { .. } => self.stray += 1,
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
                self.orphans.push(call.name.clone());
                interrupted(&call.id)
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
pub(crate) fn interrupted(id: &str) -> Block {
    Block::ToolResult {
        tool_use_id: id.to_owned(),
        content: INTERRUPTED.to_owned(),
        images: Vec::new(),
        is_error: true,
    }
}

fn merged(messages: Vec<Message>) -> Vec<(usize, Message)> {
    let mut all: Vec<(usize, Message)> = Vec::with_capacity(messages.len());
    for (place, mut message) in messages.into_iter().enumerate() {
        // An empty text would be refused; thinking stays as it is, byte for byte.
        message.content.retain(|block| !block.as_text().is_some_and(|text| text.trim().is_empty()));
        match all.last_mut() {
            _ if message.content.is_empty() => {}
            Some((_, last)) if last.role == message.role => last.content.extend(message.content),
            Some(_) | None => all.push((place, message)),
        }
    }
    all
}
