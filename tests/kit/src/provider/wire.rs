//! The two wires: a script becomes a stream of events or a whole message. Knows the public formats only.

use super::reply::{Script, ToolCall};
use serde::Serialize as _;
use serde_json::{Value, json};

/// Which service a request speaks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI-compatible chat completions.
    OpenAi,
}

impl Wire {
    /// The wire that a path belongs to.
    pub(crate) fn of(path: &str) -> Self {
        if path.contains("messages") { Self::Anthropic } else { Self::OpenAi }
    }
}

/// JSON with a space after comma and colon: the form that playlists match against.
pub(crate) fn dumps(value: &Value) -> String {
    struct Spaced;
    impl serde_json::ser::Formatter for Spaced {
        fn begin_array_value<W: ?Sized + std::io::Write>(
            &mut self,
            w: &mut W,
            first: bool,
        ) -> std::io::Result<()> {
            if first { Ok(()) } else { w.write_all(b", ") }
        }
        fn begin_object_key<W: ?Sized + std::io::Write>(
            &mut self,
            w: &mut W,
            first: bool,
        ) -> std::io::Result<()> {
            if first { Ok(()) } else { w.write_all(b", ") }
        }
        fn begin_object_value<W: ?Sized + std::io::Write>(&mut self, w: &mut W) -> std::io::Result<()> {
            w.write_all(b": ")
        }
    }
    let mut out = Vec::new();
    let mut to = serde_json::Serializer::with_formatter(&mut out, Spaced);
    value.serialize(&mut to).expect("JSON can be written");
    String::from_utf8(out).expect("JSON is UTF-8")
}

/// A script as a stream of this wire. `usage_chunk`: whether an OpenAI stream ends with its token counts.
pub(crate) fn stream(wire: Wire, script: &Script, usage_chunk: bool) -> Vec<u8> {
    match wire {
        Wire::Anthropic => anthropic_stream(script),
        Wire::OpenAi => openai_stream(script, usage_chunk),
    }
    .into_bytes()
}

/// A script as one whole message of this wire.
pub(crate) fn message(wire: Wire, script: &Script) -> Vec<u8> {
    let value = match wire {
        Wire::Anthropic => json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "mock",
            "content": anthropic_blocks(script), "stop_reason": anthropic_stop(script), "stop_sequence": null,
            "usage": merged(anthropic_usage(script), json!({"output_tokens": script.out.unwrap_or(5)})),
        }),
        Wire::OpenAi => json!({
            "id": "c1", "object": "chat.completion", "model": "mock", "usage": openai_usage(script),
            "choices": [{"index": 0, "message": openai_message(script), "finish_reason": openai_stop(script)}],
        }),
    };
    dumps(&value).into_bytes()
}

fn merged(mut base: Value, over: Value) -> Value {
    if let (Value::Object(base), Value::Object(over)) = (&mut base, over) {
        base.extend(over);
    }
    base
}

/// The text in about as many parts as the script asks for, never inside a character.
fn parts(script: &Script) -> Vec<String> {
    let chars: Vec<char> = script.text.as_deref().unwrap_or_default().chars().collect();
    let size = chars.len().div_ceil(script.pieces.max(1)).max(1);
    chars.chunks(size).map(|part| part.iter().collect()).collect()
}

fn anthropic_usage(script: &Script) -> Value {
    merged(json!({"input_tokens": 10, "output_tokens": 1}), script.usage.clone().unwrap_or(Value::Null))
}

fn anthropic_stop(script: &Script) -> String {
    let usual = if script.tools.is_empty() { "end_turn" } else { "tool_use" };
    script.stop.clone().unwrap_or_else(|| usual.to_owned())
}

fn anthropic_blocks(script: &Script) -> Vec<Value> {
    let thinking = script.thinking.iter().map(
        |(thinking, signature)| json!({"type": "thinking", "thinking": thinking, "signature": signature}),
    );
    let text = script.text.iter().filter(|t| !t.is_empty()).map(|t| json!({"type": "text", "text": t}));
    let tools = script
        .tools
        .iter()
        .map(|t| json!({"type": "tool_use", "id": t.id, "name": t.name, "input": t.input}));
    thinking.chain(text).chain(tools).collect()
}

fn anthropic_stream(script: &Script) -> String {
    fn event(out: &mut String, value: &Value) {
        let name = value["type"].as_str().expect("an event has a type");
        out.push_str(&format!("event: {name}\ndata: {}\n\n", dumps(value)));
    }
    let mut out = String::new();
    event(
        &mut out,
        &json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
            "model": "mock", "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": anthropic_usage(script)}}),
    );
    for (index, (start, deltas)) in anthropic_deltas(script).into_iter().enumerate() {
        event(&mut out, &json!({"type": "content_block_start", "index": index, "content_block": start}));
        for delta in deltas {
            event(&mut out, &json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        event(&mut out, &json!({"type": "content_block_stop", "index": index}));
    }
    event(
        &mut out,
        &json!({"type": "message_delta",
            "delta": {"stop_reason": anthropic_stop(script), "stop_sequence": null},
            "usage": {"output_tokens": script.out.unwrap_or(5)}}),
    );
    event(&mut out, &json!({"type": "message_stop"}));
    out
}

/// Each block: how it starts, and its deltas.
fn anthropic_deltas(script: &Script) -> Vec<(Value, Vec<Value>)> {
    let mut blocks = Vec::new();
    if let Some((thinking, signature)) = &script.thinking {
        blocks.push((
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            vec![
                json!({"type": "thinking_delta", "thinking": thinking}),
                json!({"type": "signature_delta", "signature": signature}),
            ],
        ));
    }
    if script.text.as_ref().is_some_and(|t| !t.is_empty()) {
        let deltas = parts(script).into_iter().map(|part| json!({"type": "text_delta", "text": part}));
        blocks.push((json!({"type": "text", "text": ""}), deltas.collect()));
    }
    for ToolCall { id, name, input } in &script.tools {
        blocks.push((
            json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
            vec![json!({"type": "input_json_delta", "partial_json": dumps(input)})],
        ));
    }
    blocks
}

fn openai_stop(script: &Script) -> String {
    let usual = if script.tools.is_empty() { "stop" } else { "tool_calls" };
    match script.stop.as_deref() {
        None => usual,
        Some("end_turn" | "stop_sequence") => "stop",
        Some("max_tokens") => "length",
        Some("tool_use") => "tool_calls",
        Some(other) => other,
    }
    .to_owned()
}

fn openai_usage(script: &Script) -> Value {
    let count = |key: &str| script.usage.as_ref().and_then(|u| u[key].as_u64());
    let cached = count("cache_read_input_tokens").unwrap_or(0);
    let prompt = count("input_tokens").unwrap_or(10) + cached;
    let completion = script.out.unwrap_or(5);
    json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached}})
}

fn openai_call(call: &ToolCall) -> Value {
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": dumps(&call.input)}})
}

fn openai_message(script: &Script) -> Value {
    let mut message = json!({"role": "assistant", "content": script.text});
    if let Some((thinking, _)) = &script.thinking {
        message["reasoning_content"] = json!(thinking);
    }
    if !script.tools.is_empty() {
        message["tool_calls"] = script.tools.iter().map(openai_call).collect();
    }
    message
}

fn openai_stream(script: &Script, usage_chunk: bool) -> String {
    let chunk = |delta: Value, finish: Option<String>| {
        let choice = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
        let value =
            json!({"id": "c1", "object": "chat.completion.chunk", "model": "mock", "choices": choice});
        format!("data: {}\n\n", dumps(&value))
    };
    let mut parts = parts(script).into_iter();
    let mut out = String::new();
    if let Some((thinking, _)) = &script.thinking {
        out += &chunk(json!({"role": "assistant", "reasoning_content": thinking}), None);
    }
    out += &chunk(json!({"role": "assistant", "content": parts.next().unwrap_or_default()}), None);
    for part in parts {
        out += &chunk(json!({"content": part}), None);
    }
    for (index, call) in script.tools.iter().enumerate() {
        let call = merged(json!({"index": index}), openai_call(call));
        out += &chunk(json!({"tool_calls": [call]}), None);
    }
    out += &chunk(json!({}), Some(openai_stop(script)));
    if usage_chunk {
        let value = json!({"id": "c1", "object": "chat.completion.chunk", "model": "mock", "choices": [],
            "usage": openai_usage(script)});
        out += &format!("data: {}\n\n", dumps(&value));
    }
    out + "data: [DONE]\n\n"
}
