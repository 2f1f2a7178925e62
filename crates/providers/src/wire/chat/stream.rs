//! Chunks of the chat completions wire become [`StreamEvent`]s.
//!
//! Owns the spelling of the stream and its many variants. Must not know how blocks are put together.

use crate::event::{StopReason, StreamEvent, UsageReport};
use crate::wire::NotUnderstood;
use crate::wire::chat::calls::{Calls, Piece, Place};
use crate::wire::lenient;
use serde::Deserialize;
use serde_json::Value;

/// Translates one message. The message ends with `[DONE]` or with the stream, once its finish reason came.
#[derive(Debug, Default)]
pub struct ChatDecoder {
    started: bool,
    done: bool,
    finish: Option<String>,
    calls: Calls,
    /// Block index of each call.
    call_blocks: Vec<u32>,
    open: Open,
    next_block: u32,
}

/// The text or thinking block that grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Open {
    #[default]
    Nothing,
    Text(u32),
    Thinking(u32),
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default, deserialize_with = "lenient::word")]
    id: Option<String>,
    #[serde(default, deserialize_with = "lenient::word")]
    model: Option<String>,
    choices: Option<Vec<Choice>>,
    #[serde(default, deserialize_with = "lenient::maybe")]
    usage: Option<WireUsage>,
    #[serde(default, deserialize_with = "lenient::error")]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default, deserialize_with = "lenient::index")]
    index: Option<i64>,
    delta: Option<Delta>,
    /// In a whole message instead of a stream.
    message: Option<Delta>,
    #[serde(default, deserialize_with = "lenient::word")]
    finish_reason: Option<String>,
    #[serde(default, deserialize_with = "lenient::maybe")]
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<Value>,
    reasoning_content: Option<Value>,
    reasoning: Option<Value>,
    refusal: Option<Value>,
    tool_calls: Option<Vec<Option<ToolCall>>>,
    /// The only call of a message, as it was spelled before there could be several.
    function_call: Option<Function>,
}

#[derive(Deserialize)]
struct ToolCall {
    #[serde(default, deserialize_with = "lenient::index")]
    index: Option<i64>,
    id: Option<Value>,
    function: Option<Function>,
}

#[derive(Deserialize)]
struct Function {
    #[serde(default, deserialize_with = "lenient::word")]
    name: Option<String>,
    arguments: Option<Value>,
}

#[derive(Clone, Copy, Deserialize)]
struct WireUsage {
    #[serde(default, deserialize_with = "lenient::count")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::count")]
    completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::maybe")]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default, deserialize_with = "lenient::count")]
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Clone, Copy, Deserialize)]
struct PromptDetails {
    #[serde(default, deserialize_with = "lenient::count")]
    cached_tokens: Option<u64>,
}

impl From<WireUsage> for StreamEvent {
    fn from(usage: WireUsage) -> Self {
        let cached =
            usage.prompt_tokens_details.and_then(|d| d.cached_tokens).or(usage.prompt_cache_hit_tokens);
        Self::Usage(UsageReport {
            input: usage.prompt_tokens.map(|all| all.saturating_sub(cached.unwrap_or_default())),
            output: usage.completion_tokens,
            cache_read: cached,
            cache_write: None,
        })
    }
}

impl ChatDecoder {
    /// One event's data.
    ///
    /// # Errors
    /// [`NotUnderstood`].
    pub fn event(&mut self, data: &[u8], out: &mut Vec<StreamEvent>) -> Result<(), NotUnderstood> {
        if self.done {
            return Ok(());
        }
        if data.trim_ascii() == b"[DONE]" {
            self.finish(out);
            return Ok(());
        }
        let chunk: Chunk = match serde_json::from_slice(data) {
            Ok(chunk) => chunk,
            Err(error) => serde_json::from_slice(&lenient::mended(data).ok_or(error)?)?,
        };
        if let Some(error) = chunk.error {
            out.push(error_event(&error));
            return Ok(());
        }
        if !std::mem::replace(&mut self.started, true) {
            out.push(StreamEvent::MessageStart { id: chunk.id, model: chunk.model });
        }
        for choice in chunk.choices.unwrap_or_default() {
            if choice.index.unwrap_or_default() == 0 {
                self.choice(choice, out);
            }
        }
        out.extend(chunk.usage.map(StreamEvent::from));
        Ok(())
    }

    /// The stream ended: a finish reason makes the message whole even without `[DONE]`.
    pub fn end(&mut self, out: &mut Vec<StreamEvent>) {
        if !self.done && self.finish.is_some() {
            self.finish(out);
        }
    }

    fn choice(&mut self, choice: Choice, out: &mut Vec<StreamEvent>) {
        if let Some(delta) = choice.delta.or(choice.message) {
            self.delta(delta, out);
        }
        out.extend(choice.usage.map(StreamEvent::from));
        if let Some(word) = choice.finish_reason.filter(|w| !w.is_empty()) {
            self.finish = Some(word);
        }
    }

    fn delta(&mut self, delta: Delta, out: &mut Vec<StreamEvent>) {
        let reasoning = delta.reasoning_content.or(delta.reasoning).map(text_of);
        if let Some(thinking) = reasoning.filter(|t| !t.is_empty()) {
            let index = self.thinking_block(out);
            out.push(StreamEvent::ThinkingDelta { index, thinking });
        }
        for text in [delta.content, delta.refusal].into_iter().flatten().map(text_of) {
            if !text.is_empty() {
                let index = self.text_block(out);
                out.push(StreamEvent::TextDelta { index, text });
            }
        }
        let calls: Vec<ToolCall> = delta.tool_calls.into_iter().flatten().flatten().collect();
        // Some services send both spellings of the same call.
        let old = delta.function_call.filter(|_| calls.is_empty());
        let old = old.map(|function| ToolCall { index: Some(0), id: None, function: Some(function) });
        for call in calls.into_iter().chain(old) {
            self.call(call, out);
        }
    }

    fn call(&mut self, call: ToolCall, out: &mut Vec<StreamEvent>) {
        let id = call.id.map(text_of).unwrap_or_default();
        let (name, arguments) =
            call.function.map(|f| (f.name.unwrap_or_default(), f.arguments)).unwrap_or_default();
        let json = arguments.map(arguments_of).unwrap_or_default();
        let piece = Piece { index: call.index, id: &id, name: &name, arguments: &json };
        let place = self.calls.place(&piece);
        let (Place::New(at) | Place::Of(at) | Place::Names(at)) = place;
        if matches!(place, Place::New(_)) {
            self.close(out);
            let block = self.new_block();
            self.call_blocks.push(block);
        }
        let Some(&index) = self.call_blocks.get(at) else { return };
        if !matches!(place, Place::Of(_)) {
            let (id, name) = self.calls.name_of(at).unwrap_or_default();
            out.push(StreamEvent::ToolUseStart { index, id: id.to_owned(), name: name.to_owned() });
        }
        if !json.is_empty() {
            out.push(StreamEvent::ToolInputDelta { index, json });
        }
    }

    fn new_block(&mut self) -> u32 {
        let index = self.next_block;
        self.next_block += 1;
        index
    }

    fn text_block(&mut self, out: &mut Vec<StreamEvent>) -> u32 {
        if let Open::Text(index) = self.open {
            return index;
        }
        self.close(out);
        let index = self.new_block();
        self.open = Open::Text(index);
        out.push(StreamEvent::TextStart { index });
        index
    }

    fn thinking_block(&mut self, out: &mut Vec<StreamEvent>) -> u32 {
        if let Open::Thinking(index) = self.open {
            return index;
        }
        self.close(out);
        let index = self.new_block();
        self.open = Open::Thinking(index);
        index
    }

    fn close(&mut self, out: &mut Vec<StreamEvent>) {
        match std::mem::take(&mut self.open) {
            Open::Nothing => {}
            Open::Text(index) | Open::Thinking(index) => out.push(StreamEvent::BlockStop { index }),
        }
    }

    fn finish(&mut self, out: &mut Vec<StreamEvent>) {
        self.done = true;
        self.close(out);
        out.extend(self.call_blocks.iter().map(|index| StreamEvent::BlockStop { index: *index }));
        let has_calls = !self.calls.is_empty();
        let reason = match self.finish.take().as_deref() {
            Some("stop") | None if has_calls => StopReason::ToolUse,
            Some("stop" | "eos" | "end_turn") | None => StopReason::EndTurn,
            Some("tool_calls" | "function_call" | "tool_use") => StopReason::ToolUse,
            Some("length" | "max_tokens") => StopReason::MaxTokens,
            Some("content_filter") => StopReason::Refusal,
            Some(other) => StopReason::Other(other.to_owned()),
        };
        out.push(StreamEvent::Stop(reason));
        out.push(StreamEvent::MessageStop);
    }
}

/// Text that may come as a string, as parts, or not at all.
fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Array(parts) => parts
            .into_iter()
            .map(|mut part| part.get_mut("text").map(Value::take).map(text_of).unwrap_or_default())
            .collect(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Object(_) => String::new(),
    }
}

/// Arguments are a JSON text; some servers send the object itself.
fn arguments_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        Value::Object(_) | Value::Array(_) | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn error_event(error: &Value) -> StreamEvent {
    let text =
        |key: &str| error.get(key).filter(|v| !v.is_null()).cloned().map(text_of).filter(|t| !t.is_empty());
    StreamEvent::Error {
        kind: text("type").or_else(|| text("code")).unwrap_or_else(|| "error".to_owned()),
        message: text("message")
            .or_else(|| error.as_str().map(str::to_owned))
            .unwrap_or_else(|| "no message".to_owned()),
    }
}
