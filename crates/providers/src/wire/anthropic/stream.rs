//! Events of the Messages wire become [`StreamEvent`]s.
//!
//! Owns the spelling of the stream. Must not know how blocks are put together.

use crate::event::{StopReason, StreamEvent, UsageReport};
use crate::wire::{NotUnderstood, lenient};
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;

/// Translates one message.
#[derive(Debug, Default)]
pub struct MessagesDecoder {
    done: bool,
    stop_told: bool,
    /// Blocks of kinds that this version does not know: their deltas are left out.
    ignored: Vec<u32>,
    /// Calls whose whole input stood in their start: used when no delta comes.
    whole_inputs: Vec<(u32, String)>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "lenient::block_index")]
    index: Option<u32>,
    message: Option<Head>,
    content_block: Option<Block>,
    delta: Option<Delta>,
    #[serde(default, deserialize_with = "lenient::maybe")]
    usage: Option<WireUsage>,
    #[serde(default, deserialize_with = "lenient::error")]
    error: Option<Value>,
    // A whole message instead of a stream.
    #[serde(default, deserialize_with = "lenient::word")]
    id: Option<String>,
    #[serde(default, deserialize_with = "lenient::word")]
    model: Option<String>,
    content: Option<Vec<Block>>,
    #[serde(default, deserialize_with = "lenient::word")]
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default, deserialize_with = "lenient::word")]
    id: Option<String>,
    #[serde(default, deserialize_with = "lenient::word")]
    model: Option<String>,
    #[serde(default, deserialize_with = "lenient::maybe")]
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    data: Option<String>,
    #[serde(default, deserialize_with = "lenient::word")]
    id: Option<String>,
    #[serde(default, deserialize_with = "lenient::word")]
    name: Option<String>,
    input: Option<Value>,
}

#[derive(Deserialize)]
struct Delta {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    partial_json: Option<String>,
    #[serde(default, deserialize_with = "lenient::word")]
    stop_reason: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
struct WireUsage {
    #[serde(default, deserialize_with = "lenient::count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::count")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::count")]
    cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient::count")]
    cache_creation_input_tokens: Option<u64>,
}

impl From<WireUsage> for StreamEvent {
    fn from(usage: WireUsage) -> Self {
        Self::Usage(UsageReport {
            input: usage.input_tokens,
            output: usage.output_tokens,
            cache_read: usage.cache_read_input_tokens,
            cache_write: usage.cache_creation_input_tokens,
        })
    }
}

impl MessagesDecoder {
    /// One event; the `type` of the data counts, else the event's name.
    ///
    /// # Errors
    /// [`NotUnderstood`].
    pub fn event(
        &mut self,
        name: &[u8],
        data: &[u8],
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), NotUnderstood> {
        if self.done {
            return Ok(());
        }
        if data.trim_ascii() == b"[DONE]" {
            // A gateway's end mark: the message is whole if its stop reason came.
            if self.stop_told {
                self.stop(out);
            }
            return Ok(());
        }
        let mended;
        let event: Event<'_> = match serde_json::from_slice(data) {
            Ok(event) => event,
            Err(error) => {
                mended = lenient::mended(data).ok_or(error)?;
                serde_json::from_slice(&mended)?
            }
        };
        let kind = event.kind.as_deref().or_else(|| std::str::from_utf8(name).ok()).unwrap_or_default();
        let index = event.index.unwrap_or_default();
        match kind {
            "content_block_delta" => {
                if let Some(delta) = event.delta {
                    self.delta(index, delta, out);
                }
            }
            "content_block_start" => {
                if let Some(block) = event.content_block {
                    self.start(index, block, out);
                }
            }
            "content_block_stop" => self.block_stop(index, out),
            "message_start" => {
                let (id, model, usage) = event.message.map(|m| (m.id, m.model, m.usage)).unwrap_or_default();
                out.push(StreamEvent::MessageStart { id, model });
                out.extend(usage.map(StreamEvent::from));
            }
            "message_delta" => {
                out.extend(event.usage.map(StreamEvent::from));
                if let Some(word) = event.delta.and_then(|d| d.stop_reason) {
                    self.stop_told = true;
                    out.push(StreamEvent::Stop(stop_reason(word)));
                }
            }
            "message_stop" => self.stop(out),
            "message" => self.message(event, out),
            "error" => out.push(error(event.error.as_ref())),
            _ if event.error.is_some() => out.push(error(event.error.as_ref())),
            _ => {} // `ping`, and what later versions invent.
        }
        Ok(())
    }

    fn stop(&mut self, out: &mut Vec<StreamEvent>) {
        self.done = true;
        out.push(StreamEvent::MessageStop);
    }

    fn start(&mut self, index: u32, block: Block, out: &mut Vec<StreamEvent>) {
        match block.kind.as_deref().unwrap_or("text") {
            "text" => {
                out.push(StreamEvent::TextStart { index });
                if let Some(text) = block.text.filter(|t| !t.is_empty()) {
                    out.push(StreamEvent::TextDelta { index, text });
                }
            }
            "thinking" => {
                out.push(StreamEvent::ThinkingDelta { index, thinking: block.thinking.unwrap_or_default() });
                if let Some(signature) = block.signature.filter(|s| !s.is_empty()) {
                    out.push(StreamEvent::SignatureDelta { index, signature });
                }
            }
            "redacted_thinking" => {
                out.push(StreamEvent::RedactedThinking { index, data: block.data.unwrap_or_default() });
            }
            "tool_use" => {
                out.push(StreamEvent::ToolUseStart {
                    index,
                    id: block.id.unwrap_or_default(),
                    name: block.name.unwrap_or_default(),
                });
                // `{}` is a placeholder; anything else is the input itself.
                if let Some(input) = block.input.filter(|i| i.as_object().is_some_and(|o| !o.is_empty())) {
                    self.whole_inputs.push((index, input.to_string()));
                }
            }
            _ => self.ignored.push(index),
        }
    }

    fn delta(&mut self, index: u32, delta: Delta, out: &mut Vec<StreamEvent>) {
        if self.ignored.contains(&index) {
            return;
        }
        match delta.kind.as_deref().unwrap_or_default() {
            "text_delta" => out.push(StreamEvent::TextDelta { index, text: delta.text.unwrap_or_default() }),
            "input_json_delta" => {
                let json = delta.partial_json.unwrap_or_default();
                if !json.is_empty() {
                    self.whole_inputs.retain(|(at, _)| *at != index);
                }
                out.push(StreamEvent::ToolInputDelta { index, json });
            }
            "thinking_delta" => {
                out.push(StreamEvent::ThinkingDelta { index, thinking: delta.thinking.unwrap_or_default() });
            }
            "signature_delta" => {
                out.push(StreamEvent::SignatureDelta {
                    index,
                    signature: delta.signature.unwrap_or_default(),
                });
            }
            _ => {} // Citations and what later versions invent.
        }
    }

    fn block_stop(&mut self, index: u32, out: &mut Vec<StreamEvent>) {
        if let Some(at) = self.ignored.iter().position(|i| *i == index) {
            self.ignored.swap_remove(at);
            return;
        }
        if let Some(at) = self.whole_inputs.iter().position(|(i, _)| *i == index) {
            let (index, json) = self.whole_inputs.swap_remove(at);
            out.push(StreamEvent::ToolInputDelta { index, json });
        }
        out.push(StreamEvent::BlockStop { index });
    }

    fn message(&mut self, event: Event<'_>, out: &mut Vec<StreamEvent>) {
        out.push(StreamEvent::MessageStart { id: event.id, model: event.model });
        for (index, block) in (0u32..).zip(event.content.unwrap_or_default()) {
            self.start(index, block, out);
            self.block_stop(index, out);
        }
        out.extend(event.usage.map(StreamEvent::from));
        if let Some(word) = event.stop_reason {
            out.push(StreamEvent::Stop(stop_reason(word)));
            self.stop(out);
        }
    }
}

fn error(error: Option<&Value>) -> StreamEvent {
    let text = |key: &str| error.and_then(|e| e.get(key)).and_then(Value::as_str).map(str::to_owned);
    StreamEvent::Error {
        kind: text("type").unwrap_or_else(|| "error".to_owned()),
        message: text("message")
            .or_else(|| error.and_then(Value::as_str).map(str::to_owned))
            .unwrap_or_else(|| "no message".to_owned()),
    }
}

fn stop_reason(word: String) -> StopReason {
    match word.as_str() {
        "end_turn" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
        "stop_sequence" => StopReason::StopSequence,
        "refusal" => StopReason::Refusal,
        "pause_turn" => StopReason::PauseTurn,
        _ => StopReason::Other(word),
    }
}
