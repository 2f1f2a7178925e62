//! The messages of a conversation, always fit to be sent.
//!
//! Owns the order: roles alternate, no message is empty, every call is answered at once. Pure.

use claw_providers::message::{Block, Message, Role};
use std::collections::HashSet;
use std::sync::Arc;

/// Messages in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    messages: Vec<Arc<Message>>,
    ids: HashSet<Box<str>>,
}

impl History {
    /// From messages that a transcript's repair has put right.
    pub(crate) fn from_repaired(messages: Vec<Message>) -> Self {
        let ids = messages.iter().flat_map(|m| &m.content).filter_map(call_id).map(Box::from).collect();
        Self { messages: messages.into_iter().map(Arc::new).collect(), ids }
    }

    pub(crate) fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    pub(crate) fn last(&self) -> Option<&Message> {
        self.messages.last().map(Arc::as_ref)
    }

    /// Adds to the end; a neighbour of the same role takes the blocks in.
    pub(crate) fn push(&mut self, message: Message) {
        self.ids.extend(message.content.iter().filter_map(call_id).map(Box::<str>::from));
        match self.messages.last_mut() {
            Some(last) if last.role == message.role => Arc::make_mut(last).content.extend(message.content),
            Some(_) | None => self.messages.push(Arc::new(message)),
        }
    }

    /// The service's id where it is new, else one of claw's own: unique within the conversation.
    pub(crate) fn unique_id(&self, service: &str, taken: &HashSet<String>, turn: u32, index: u32) -> String {
        let is_new = |id: &str| !self.ids.contains(id) && !taken.contains(id);
        if !service.trim().is_empty() && is_new(service) {
            return service.to_owned();
        }
        let mut id = format!("call_{turn}_{index}");
        while !is_new(&id) {
            id.push('x');
        }
        id
    }

    /// The last text that the model wrote.
    pub(crate) fn last_text(&self) -> Option<String> {
        let said = self.messages.iter().rev().filter(|m| m.role == Role::Assistant);
        said.map(|m| m.text()).find(|text| !text.trim().is_empty())
    }
}

fn call_id(block: &Block) -> Option<&str> {
    match block {
        Block::ToolUse { id, .. } => Some(id),
        Block::Text { .. }
        | Block::Thinking { .. }
        | Block::RedactedThinking { .. }
        | Block::ToolResult { .. }
        | Block::Image(_) => None,
    }
}

/// What is wrong with a list of messages; `None` when every service would take it. For tests.
#[cfg(test)]
pub(crate) fn fault(messages: &[Arc<Message>]) -> Option<String> {
    let mut ids = HashSet::new();
    for (at, message) in messages.iter().enumerate() {
        if message.content.is_empty() {
            return Some(format!("message {at} is empty"));
        }
        if message.content.iter().any(|b| b.as_text().is_some_and(|t| t.trim().is_empty())) {
            return Some(format!("message {at} holds an empty text"));
        }
        let expected = if at % 2 == 0 { Role::User } else { Role::Assistant };
        if message.role != expected {
            return Some(format!("message {at} has the wrong role"));
        }
        let calls: Vec<&str> = match at.checked_sub(1) {
            Some(before) => messages[before].content.iter().filter_map(call_id).collect(),
            None => Vec::new(),
        };
        let results: Vec<&str> = message
            .content
            .iter()
            .filter_map(|b| match b {
                Block::ToolResult { tool_use_id, .. } => Some(tool_use_id.as_str()),
                _ => None,
            })
            .collect();
        if calls != results {
            return Some(format!("message {at}: calls {calls:?}, results {results:?}"));
        }
        for id in message.content.iter().filter_map(call_id) {
            if id.is_empty() || !ids.insert(id) {
                return Some(format!("call id {id:?} is empty or repeated"));
            }
        }
    }
    match messages.last() {
        Some(last) if last.content.iter().any(|b| call_id(b).is_some()) => {
            Some("the last call is open".into())
        }
        Some(_) | None => None,
    }
}
