//! Questions over standard input: one JSON object a line, in the shape that users of other programs write.

use crate::error::ExpectedError;
use crate::terminal::stdin_lines;
use claw_providers::message::{Block, Image};
use serde_json::Value;
use tokio::sync::mpsc;

/// Questions that may wait.
const QUEUE: usize = 16;

/// What comes in.
#[derive(Debug, PartialEq)]
pub(super) enum Incoming {
    /// A message of the user.
    Message(Vec<Block>),
    /// The running turn ends.
    Interrupt,
}

/// A line that is no message.
#[derive(Debug, thiserror::Error)]
#[error("line {line} of standard input is no message: {why}")]
pub(super) struct NoMessage {
    line: usize,
    why: String,
}

impl From<NoMessage> for ExpectedError {
    fn from(wrong: NoMessage) -> Self {
        Self::Usage {
            message: wrong.to_string(),
            hint: Some(
                r#"a line looks like {"type":"user","message":{"role":"user","content":"…"}}"#.to_owned(),
            ),
        }
    }
}

/// Reads until the end; the channel closes then.
pub(super) fn listen() -> mpsc::Receiver<Result<Incoming, ExpectedError>> {
    let (door, inbox) = mpsc::channel(QUEUE);
    let mut number = 0;
    stdin_lines(move |line| {
        number += 1;
        let told = match line {
            Ok(line) if line.trim().is_empty() => return true,
            Ok(line) => read(&line, number).map_err(ExpectedError::from),
            Err(error) => Err(error),
        };
        let goes_on = told.is_ok();
        match told {
            Ok(None) => true,
            Ok(Some(incoming)) => door.blocking_send(Ok(incoming)).is_ok() && goes_on,
            Err(error) => door.blocking_send(Err(error)).is_ok() && goes_on,
        }
    });
    inbox
}

/// `None`: a line of a kind that asks for nothing here.
fn read(line: &str, number: usize) -> Result<Option<Incoming>, NoMessage> {
    let wrong = |why: &str| NoMessage { line: number, why: why.to_owned() };
    let value: Value = serde_json::from_str(line).map_err(|error| wrong(&error.to_string()))?;
    match value.get("type").and_then(Value::as_str) {
        Some("user") => {
            let content = value.get("message").and_then(|message| message.get("content"));
            let blocks = match content {
                Some(Value::String(text)) => vec![Block::Text { text: text.clone() }],
                Some(Value::Array(parts)) => parts.iter().filter_map(block).collect(),
                Some(_) | None => return Err(wrong("`message.content` is missing")),
            };
            let is_blank = |block: &Block| block.as_text().is_some_and(|text| text.trim().is_empty());
            if blocks.iter().all(is_blank) {
                return Err(wrong("its content is empty"));
            }
            Ok(Some(Incoming::Message(blocks)))
        }
        Some("control_request") => {
            let asks = value.get("request").and_then(|request| request.get("subtype")?.as_str());
            Ok((asks == Some("interrupt")).then_some(Incoming::Interrupt))
        }
        Some("keep_alive" | "control_response") => Ok(None),
        Some(other) => Err(wrong(&format!("`{other}` is no type that is understood"))),
        None => Err(wrong("`type` is missing")),
    }
}

fn block(part: &Value) -> Option<Block> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    match part.get("type").and_then(Value::as_str)? {
        "text" => Some(Block::Text { text: text(part, "text")? }),
        "image" => {
            let source = part.get("source")?;
            Some(Block::Image(Image { media_type: text(source, "media_type")?, data: text(source, "data")? }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_texts_or_lists_of_blocks_and_everything_else_is_told_with_its_line() {
        let said = |line: &str| read(line, 3).map_err(|error| error.to_string());
        let hi = Incoming::Message(vec![Block::Text { text: "hi".into() }]);
        assert_eq!(said(r#"{"type":"user","message":{"role":"user","content":"hi"}}"#), Ok(Some(hi)));
        let list = r#"{"type":"user","message":{"content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"eA=="}}]}}"#;
        assert!(matches!(said(list), Ok(Some(Incoming::Message(blocks))) if blocks.len() == 2));
        let stop = r#"{"type":"control_request","request_id":"1","request":{"subtype":"interrupt"}}"#;
        assert_eq!(said(stop), Ok(Some(Incoming::Interrupt)));
        for bad in ["{", "[]", r#"{"type":"usr"}"#, r#"{"type":"user","message":{"content":" "}}"#] {
            assert!(said(bad).unwrap_err().contains("line 3"), "{bad}");
        }
    }
}
