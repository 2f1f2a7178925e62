//! Tokens of messages before any service has counted them.

use claw_providers::message::{Block, Message};
use std::borrow::Borrow;

/// Bytes of text in a token, roughly, in every language that models are good at.
const BYTES_IN_A_TOKEN: u64 = 4;
/// Tokens of an image, whatever its size.
const IMAGE: u64 = 1_600;

/// Of one message.
pub fn tokens_of(message: &Message) -> u64 {
    message.content.iter().map(of_block).sum::<u64>() + 4
}

/// Of several.
pub fn tokens_of_all<M: Borrow<Message>>(messages: &[M]) -> u64 {
    messages.iter().map(|message| tokens_of(message.borrow())).sum()
}

fn of_block(block: &Block) -> u64 {
    let bytes = match block {
        Block::Text { text } => text.len(),
        Block::Thinking { thinking, .. } => thinking.len(),
        Block::RedactedThinking { data, .. } => data.len(),
        Block::ToolUse { id, name, input } => id.len() + name.len() + input.to_string().len(),
        Block::ToolResult { content, images, .. } => {
            return content.len() as u64 / BYTES_IN_A_TOKEN + images.len() as u64 * IMAGE;
        }
        Block::Image(_) => return IMAGE,
    };
    bytes as u64 / BYTES_IN_A_TOKEN
}
