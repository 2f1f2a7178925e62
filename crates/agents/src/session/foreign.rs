//! Sessions that claw did not write: the single JSON file, its later line form, and the transcripts of Claude Code.
//! Pure; whatever a file holds, nothing but messages and counts is taken from it.

use claw_providers::message::{Block, Image, Message, Role};
use claw_providers::usage::Usage;
use serde_json::Value;

/// What such a file holds.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Foreign {
    pub(super) messages: Vec<Message>,
    pub(super) usage: Option<Usage>,
    /// The model of its last answer.
    pub(super) model: Option<String>,
    /// What could not be read, for people.
    pub(super) lost: Vec<String>,
}

/// Reads one. `None`: it is none of these.
pub(super) fn read(bytes: &[u8]) -> Option<Foreign> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if let Ok(whole) = serde_json::from_slice::<Value>(bytes)
        && let Some(messages) = whole.get("messages").and_then(Value::as_array)
    {
        let mut foreign = Foreign::default();
        messages.iter().for_each(|message| foreign.message(message));
        return Some(foreign);
    }
    lines(bytes)
}

fn lines(bytes: &[u8]) -> Option<Foreign> {
    let mut foreign = Foreign::default();
    let (mut offset, mut known) = (0, false);
    for (index, raw) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let start = offset;
        offset += raw.len();
        if raw.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice::<Value>(raw) {
            Ok(line) if line.is_object() => known |= foreign.line(&line),
            Ok(_) | Err(_) if !raw.ends_with(b"\n") => foreign.lost.push(format!(
                "the last record was torn and is dropped ({} bytes at offset {start})",
                raw.len()
            )),
            Ok(_) | Err(_) => {
                foreign.lost.push(format!("line {} (offset {start}) is no record and is skipped", index + 1))
            }
        }
    }
    known.then_some(foreign)
}

impl Foreign {
    /// Whether the line is of a kind that is known.
    fn line(&mut self, line: &Value) -> bool {
        let is = |key: &str| line.get(key).and_then(Value::as_bool) == Some(true);
        match line.get("type").and_then(Value::as_str) {
            Some("session_meta") => true,
            Some("message") => {
                line.get("message").into_iter().for_each(|message| self.message(message));
                true
            }
            Some("user" | "assistant") if is("isSidechain") => true,
            Some("user" | "assistant") => {
                line.get("message").into_iter().for_each(|message| self.message(message));
                true
            }
            Some("summary" | "system" | "file-history-snapshot" | "queue-operation" | "progress") => true,
            Some(_) | None => false,
        }
    }

    fn message(&mut self, message: &Value) {
        let role = match message.get("role").and_then(Value::as_str) {
            Some("user" | "tool") => Role::User,
            Some("assistant") => Role::Assistant,
            Some(_) | None => return,
        };
        let model = message.get("model").and_then(Value::as_str).map(str::to_owned);
        let content = message.get("content").or_else(|| message.get("blocks"));
        let content = match content {
            Some(Value::String(text)) => vec![Block::Text { text: text.clone() }],
            Some(Value::Array(blocks)) => {
                blocks.iter().filter_map(|value| block(value, model.as_deref())).collect()
            }
            Some(_) | None => Vec::new(),
        };
        if let Some(usage) = message.get("usage").filter(|_| role == Role::Assistant) {
            self.count(usage);
        }
        self.model = model.or_else(|| self.model.take());
        if !content.is_empty() {
            self.messages.push(Message { role, content });
        }
    }

    fn count(&mut self, usage: &Value) {
        let of = |key: &str| usage.get(key).and_then(Value::as_u64).unwrap_or(0);
        let one = Usage {
            input: of("input_tokens"),
            output: of("output_tokens"),
            cache_read: of("cache_read_input_tokens"),
            cache_write: of("cache_creation_input_tokens"),
            usd: None,
            unknown: 0,
        };
        let before = self.usage.unwrap_or(Usage::NOTHING);
        self.usage = Some(Usage { usd: None, ..before.plus(&one) });
    }
}

fn block(value: &Value, model: Option<&str>) -> Option<Block> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    match value.get("type").and_then(Value::as_str)? {
        "text" => Some(Block::Text { text: text("text")? }),
        "thinking" => Some(Block::Thinking {
            thinking: text("thinking").unwrap_or_default(),
            signature: text("signature").filter(|signature| !signature.is_empty()),
            model: model.map(str::to_owned),
        }),
        "redacted_thinking" => {
            Some(Block::RedactedThinking { data: text("data")?, model: model.map(str::to_owned) })
        }
        "tool_use" => Some(Block::ToolUse { id: text("id")?, name: text("name")?, input: input(value) }),
        "tool_result" => Some(result(value, text("tool_use_id")?)),
        "image" => image(value).map(Block::Image),
        _ => None,
    }
}

/// An object, or the JSON text of one.
fn input(value: &Value) -> Value {
    let input = match value.get("input") {
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
        Some(other) => other.clone(),
        None => Value::Null,
    };
    if input.is_object() { input } else { Value::Object(serde_json::Map::new()) }
}

fn result(value: &Value, tool_use_id: String) -> Block {
    let said = value.get("content").or_else(|| value.get("output"));
    let (content, images) = match said {
        Some(Value::String(text)) => (text.clone(), Vec::new()),
        Some(Value::Array(parts)) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
            (texts.join("\n"), parts.iter().filter_map(image).collect())
        }
        Some(_) | None => (String::new(), Vec::new()),
    };
    let content =
        if content.trim().is_empty() && images.is_empty() { "(no output)".to_owned() } else { content };
    let is_error = value.get("is_error").and_then(Value::as_bool).unwrap_or(false);
    Block::ToolResult { tool_use_id, content, images, is_error }
}

fn image(value: &Value) -> Option<Image> {
    let source = value.get("source")?;
    let text = |key: &str| source.get(key).and_then(Value::as_str).map(str::to_owned);
    Some(Image { media_type: text("media_type")?, data: text("data")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_single_file_is_read_with_inputs_as_text_and_results_of_role_tool() {
        let text = r#"{"version":1,"messages":[
            {"role":"user","blocks":[{"type":"text","text":"go"}]},
            {"role":"assistant","blocks":[{"type":"tool_use","id":"t","name":"bash","input":"{\"command\":\"ls\"}"}],"usage":{"input_tokens":3,"output_tokens":4}},
            {"role":"tool","blocks":[{"type":"tool_result","tool_use_id":"t","tool_name":"bash","output":"hi","is_error":false}]}]}"#;
        let foreign = read(text.as_bytes()).unwrap();
        assert_eq!(foreign.messages.len(), 3);
        let Block::ToolUse { input, .. } = &foreign.messages[1].content[0] else { panic!() };
        assert_eq!(input["command"], "ls");
        assert_eq!(foreign.messages[2].role, Role::User);
        assert_eq!(foreign.usage.map(|usage| (usage.input, usage.output, usage.usd)), Some((3, 4, None)));
        assert_eq!(read(br#"{"version":1,"messages":[]}"#), Some(Foreign::default()));
        assert_eq!(read(br#"{"name":"package"}"#), None);
    }

    #[test]
    fn a_transcript_of_claude_code_is_read_without_its_side_chains() {
        let text = r#"{"type":"summary","summary":"x","leafUuid":"u"}
{"type":"user","isSidechain":false,"message":{"role":"user","content":"hello"},"uuid":"a","sessionId":"s"}
{"type":"user","isSidechain":true,"message":{"role":"user","content":"of a child"},"uuid":"b"}
{"type":"assistant","message":{"id":"m","role":"assistant","model":"claude-x","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"}]}}
{"type":"assistant","message":{"id":"m","role":"assistant","model":"claude-x","content":[{"type":"text","text":"hi"}]}}
not json
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":[{"type":"text","text":"r"}]}]}}
{"type":"user","mess"#;
        let foreign = read(text.as_bytes()).unwrap();
        let texts: Vec<String> = foreign.messages.iter().map(Message::text).collect();
        assert_eq!(texts, ["hello", "", "hi", ""]);
        assert_eq!(foreign.model.as_deref(), Some("claude-x"));
        assert_eq!(foreign.lost.len(), 2, "{:?}", foreign.lost);
        let Block::Thinking { signature, model, .. } = &foreign.messages[1].content[0] else { panic!() };
        assert_eq!((signature.as_deref(), model.as_deref()), (Some("c2ln"), Some("claude-x")));
    }
}
