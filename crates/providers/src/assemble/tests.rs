use super::*;
use crate::sse::{Frame, SseParser};
use crate::wire::{Decoder, Wire};
use proptest::prelude::*;
use serde_json::json;

/// Reads a stream in pieces of `size` bytes.
fn read(wire: Wire, bytes: &[u8], size: usize) -> Assembler {
    let (mut parser, mut decoder, mut assembler) =
        (SseParser::default(), Decoder::new(wire), Assembler::default());
    let mut out = Vec::new();
    let mut take = |frame: Frame<'_>| {
        if let Frame::Event { name, data } = frame {
            decoder.event(name, data, &mut out).unwrap();
        }
    };
    for chunk in bytes.chunks(size) {
        parser.push(chunk, &mut take).unwrap();
    }
    parser.finish(&mut take).unwrap();
    decoder.end(&mut out);
    out.iter().for_each(|event| assembler.take(event));
    assembler
}

fn anthropic(events: &[Value]) -> Vec<u8> {
    let text = |e: &Value| format!("event: {}\ndata: {e}\n\n", e["type"].as_str().unwrap());
    events.iter().map(text).collect::<String>().into_bytes()
}

fn chat(chunks: &[Value]) -> Vec<u8> {
    let text = |e: &Value| format!("data: {e}\n\n");
    (chunks.iter().map(text).collect::<String>() + "data: [DONE]\n\n").into_bytes()
}

fn delta(delta: Value) -> Value {
    json!({"id": "c1", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn finish(word: &str) -> Value {
    json!({"id": "c1", "choices": [{"index": 0, "delta": {}, "finish_reason": word}]})
}

fn call(index: Option<u32>, id: Option<&str>, arguments: &str) -> Value {
    let mut call = json!({"function": {"arguments": arguments}});
    if let Some(index) = index {
        call["index"] = json!(index);
    }
    if let Some(id) = id {
        call["id"] = json!(id);
        call["type"] = json!("function");
        call["function"]["name"] = json!("read_file");
    }
    delta(json!({"tool_calls": [call]}))
}

fn whole(wire: Wire, bytes: &[u8]) -> Assembled {
    let one = read(wire, bytes, 1).finish("m").unwrap();
    let all = read(wire, bytes, usize::MAX).finish("m").unwrap();
    assert_eq!(one, all, "chunking changed the message");
    all
}

fn start(index: u32, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn piece(index: u32, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn json_piece(index: u32, text: &str) -> Value {
    piece(index, json!({"type": "input_json_delta", "partial_json": text}))
}

fn stop(index: u32) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn end(reason: &str) -> [Value; 2] {
    [
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ]
}

fn tool(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "write_file", "input": {}})
}

fn read_calls() -> Vec<Block> {
    ["a", "b"]
        .map(|n| Block::ToolUse {
            id: format!("call_{n}"),
            name: "read_file".into(),
            input: json!({"path": format!("{n}.txt")}),
        })
        .into()
}

#[test]
fn parallel_calls_are_told_apart_however_they_are_indexed() {
    let (a, b) = (r#"{"path":"a.txt"}"#, r#"{"path":"b.txt"}"#);
    let (head, tail_a, tail_b) = ("{\"path\":", "\"a.txt\"}", "\"b.txt\"}");
    let streams: [(&str, Vec<Value>); 5] = [
        ("zero only", vec![call(Some(0), Some("call_a"), a), call(Some(0), Some("call_b"), b)]),
        ("skipping", vec![call(Some(1), Some("call_a"), a), call(Some(7), Some("call_b"), b)]),
        (
            "missing",
            vec![
                call(None, Some("call_a"), head),
                call(None, None, tail_a),
                call(None, Some("call_b"), head),
                call(None, None, tail_b),
            ],
        ),
        (
            "interleaved",
            vec![
                call(Some(0), Some("call_a"), ""),
                call(Some(1), Some("call_b"), ""),
                call(Some(1), None, head),
                call(Some(0), None, head),
                call(Some(0), None, tail_a),
                call(Some(1), None, tail_b),
            ],
        ),
        (
            "id with every piece",
            vec![
                call(Some(0), Some("call_a"), head),
                call(Some(0), Some("call_a"), tail_a),
                call(Some(1), Some("call_b"), head),
                call(Some(1), Some("call_b"), tail_b),
            ],
        ),
    ];
    for (name, mut chunks) in streams {
        chunks.push(finish("tool_calls"));
        let message = whole(Wire::Chat, &chat(&chunks));
        assert_eq!(message.blocks, read_calls(), "{name}");
        assert_eq!((message.stop, message.cut_calls), (StopReason::ToolUse, vec![]), "{name}");
    }
}

#[test]
fn calls_of_the_messages_wire_may_interleave() {
    let [end_a, end_b] = end("tool_use");
    let message = whole(
        Wire::Anthropic,
        &anthropic(&[
            start(0, tool("x")),
            start(1, tool("y")),
            json_piece(1, "{\"p\""),
            json_piece(0, "{\"q\""),
            json_piece(0, ":1}"),
            stop(0),
            json_piece(1, ":2}"),
            stop(1),
            end_a,
            end_b,
        ]),
    );
    let inputs: Vec<_> = message
        .blocks
        .iter()
        .map(|b| match b {
            Block::ToolUse { id, input, .. } => (id.as_str(), input.clone()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(inputs, [("x", json!({"q": 1})), ("y", json!({"p": 2}))]);
}

#[test]
fn an_output_limit_inside_a_call_cuts_that_call_only() {
    let [end_a, end_b] = end("max_tokens");
    let message = whole(
        Wire::Anthropic,
        &anthropic(&[
            start(0, tool("ok")),
            json_piece(0, r#"{"path":"one.txt"}"#),
            stop(0),
            start(1, tool("cut")),
            json_piece(1, r#"{"path":"two.txt","content":"half of"#),
            stop(1),
            end_a,
            end_b,
        ]),
    );
    assert_eq!(message.cut_calls, [CutCall { block: 1, why: CutReason::OutputLimit }]);
    assert!(matches!(&message.blocks[1], Block::ToolUse { input, .. } if *input == json!({})));
}

#[test]
fn an_output_limit_before_any_input_cuts_the_call() {
    let [end_a, end_b] = end("max_tokens");
    let message = whole(Wire::Anthropic, &anthropic(&[start(0, tool("cut")), stop(0), end_a, end_b]));
    assert_eq!(message.cut_calls, [CutCall { block: 0, why: CutReason::OutputLimit }]);
    let [end_a, end_b] = end("tool_use");
    let message = whole(Wire::Anthropic, &anthropic(&[start(0, tool("empty")), stop(0), end_a, end_b]));
    assert_eq!(message.cut_calls, [], "a tool without input is called with an empty object");
}

#[test]
fn a_stop_word_that_lies_does_not_make_half_a_call_whole() {
    let message =
        whole(Wire::Chat, &chat(&[call(Some(0), Some("c"), r#"{"path":"two"#), finish("tool_calls")]));
    assert_eq!(message.cut_calls, [CutCall { block: 0, why: CutReason::NotJson }]);
    let message = whole(Wire::Chat, &chat(&[call(Some(0), Some("c"), "[1]"), finish("tool_calls")]));
    assert_eq!(message.cut_calls, [CutCall { block: 0, why: CutReason::NotJson }]);
    let message = whole(Wire::Chat, &chat(&[call(Some(0), Some("c"), r#"{"p"#), finish("length")]));
    assert_eq!(message.cut_calls, [CutCall { block: 0, why: CutReason::OutputLimit }]);
}

#[test]
fn characters_survive_every_cut() {
    let [end_a, end_b] = end("tool_use");
    let text = "aé漢🦀z";
    let bytes = anthropic(&[
        start(0, json!({"type": "text", "text": ""})),
        piece(0, json!({"type": "text_delta", "text": text})),
        stop(0),
        start(1, tool("u")),
        json_piece(1, &json!({"content": text}).to_string()),
        stop(1),
        end_a,
        end_b,
    ]);
    for size in 1..16 {
        let message = read(Wire::Anthropic, &bytes, size).finish("m").unwrap();
        assert_eq!(message.blocks[0].as_text(), Some(text));
        assert!(matches!(&message.blocks[1], Block::ToolUse { input, .. } if input["content"] == text));
    }
}

#[test]
fn odd_chunks_give_their_text_and_usage_once() {
    let usage = json!({"prompt_tokens": 611, "completion_tokens": 13, "prompt_tokens_details": {"cached_tokens": 512}});
    let bytes = chat(&[
        json!({"id": "c1", "choices": [], "prompt_filter_results": []}),
        json!({"id": "c1", "choices": [{"index": 0, "delta": {"content": null, "tool_calls": null}, "finish_reason": null}], "usage": null}),
        json!({"id": "c1", "choices": [{"index": 0, "delta": null, "finish_reason": null}]}),
        json!({"id": "c1", "choices": null}),
        delta(json!({"content": "hello"})),
        json!({"id": "c1", "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "stop"}]}),
        json!({"id": "c1", "usage": usage}),
        json!({"id": "c1", "choices": [], "usage": usage}),
    ]);
    let reader = read(Wire::Chat, &bytes, 7);
    let told = UsageReport { input: Some(99), output: Some(13), cache_read: Some(512), cache_write: None };
    assert_eq!(reader.reported(), told);
    assert_eq!(reader.finish("m").unwrap().blocks, [Block::Text { text: "hello".into() }]);
}

#[test]
fn usage_is_cumulative_and_a_field_left_out_keeps_its_value() {
    let head = json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 27,
        "cache_creation_input_tokens": 1500, "cache_read_input_tokens": 20000, "output_tokens": 1}}});
    let full = json!({"type": "message_delta", "delta": {"stop_reason": null}, "usage": {"input_tokens": 27,
        "cache_creation_input_tokens": 1500, "cache_read_input_tokens": 20000, "output_tokens": 20}});
    let last = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 47}});
    let told =
        UsageReport { input: Some(27), output: Some(47), cache_read: Some(20_000), cache_write: Some(1_500) };
    for events in [vec![head.clone(), full, last.clone()], vec![head, last]] {
        assert_eq!(read(Wire::Anthropic, &anthropic(&events), 64).reported(), told);
    }
}

#[test]
fn thinking_keeps_its_signature_byte_for_byte_and_its_place() {
    let [end_a, end_b] = end("tool_use");
    let signature = |text: &str| piece(0, json!({"type": "signature_delta", "signature": text}));
    let message = whole(
        Wire::Anthropic,
        &anthropic(&[
            start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
            signature("Eq/+"),
            signature("==sig with / + ="),
            stop(0),
            start(1, json!({"type": "redacted_thinking", "data": "ZW5j"})),
            stop(1),
            start(2, json!({"type": "text", "text": ""})),
            piece(2, json!({"type": "text_delta", "text": "t"})),
            stop(2),
            start(3, tool("u")),
            json_piece(3, ""),
            stop(3),
            end_a,
            end_b,
        ]),
    );
    let thinking = Block::Thinking {
        thinking: String::new(),
        signature: Some("Eq/+==sig with / + =".into()),
        model: Some("m".into()),
    };
    let redacted = Block::RedactedThinking { data: "ZW5j".into(), model: Some("m".into()) };
    assert_eq!(message.blocks[..3], [thinking, redacted, Block::Text { text: "t".into() }]);
    assert_eq!(message.blocks.len(), 4);
}

#[test]
fn reasoning_of_the_chat_wire_is_thinking() {
    let bytes =
        chat(&[delta(json!({"reasoning_content": "hm"})), delta(json!({"content": "yes"})), finish("stop")]);
    let message = whole(Wire::Chat, &bytes);
    assert!(
        matches!(&message.blocks[0], Block::Thinking { thinking, signature: None, .. } if thinking == "hm")
    );
    assert_eq!(message.blocks[1].as_text(), Some("yes"));
}

#[test]
fn an_error_or_a_missing_end_leaves_nothing_whole() {
    let text = || {
        vec![
            start(0, json!({"type": "text", "text": ""})),
            piece(0, json!({"type": "text_delta", "text": "PART"})),
        ]
    };
    let mut failed = text();
    failed.push(json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}));
    failed.extend(end("end_turn"));
    let reader = read(Wire::Anthropic, &anthropic(&failed), 5);
    assert_eq!(reader.partial("m"), [Block::Text { text: "PART".into() }]);
    let error = NotWhole::Error { kind: "overloaded_error".into(), message: "Overloaded".into() };
    assert_eq!(reader.finish("m"), Err(error));
    assert_eq!(read(Wire::Anthropic, &anthropic(&text()), 5).finish("m"), Err(NotWhole::NoEnd));
    let mut cut = text();
    cut.push(end("end_turn")[0].clone());
    assert_eq!(read(Wire::Anthropic, &anthropic(&cut), 5).finish("m"), Err(NotWhole::NoEnd));
    let chunk = format!("data: {}\n\n", delta(json!({"content": "PART"})));
    assert_eq!(read(Wire::Chat, chunk.as_bytes(), 5).finish("m"), Err(NotWhole::NoEnd));
    let error = format!("{chunk}data: {}\n\n", json!({"error": {"message": "bad", "code": 503}}));
    let kind = NotWhole::Error { kind: "503".into(), message: "bad".into() };
    assert_eq!(read(Wire::Chat, error.as_bytes(), 5).finish("m"), Err(kind));
}

#[test]
fn done_is_accepted_on_both_wires_and_may_be_missing_on_one() {
    let mut bytes =
        anthropic(&[start(0, json!({"type": "text", "text": "hi"})), stop(0), end("end_turn")[0].clone()]);
    bytes.extend_from_slice(b"data: [DONE]\n\n");
    assert_eq!(whole(Wire::Anthropic, &bytes).blocks[0].as_text(), Some("hi"));
    let bytes = format!("data: {}\n\ndata: {}", delta(json!({"content": "hi"})), finish("stop"));
    assert_eq!(whole(Wire::Chat, bytes.as_bytes()).blocks[0].as_text(), Some("hi"));
}

#[test]
fn what_follows_the_end_and_what_nobody_knows_changes_nothing() {
    let [end_a, end_b] = end("brand_new_word");
    let message = whole(
        Wire::Anthropic,
        &anthropic(&[
            json!({"type": "ping"}),
            json!({"type": "brand_new_event", "index": 9}),
            start(0, json!({"type": "server_tool_use", "id": "s", "name": "web", "input": {}})),
            json_piece(0, "{\"x\":1}"),
            stop(0),
            start(1, json!({"type": "text", "text": ""})),
            piece(1, json!({"type": "citations_delta", "citation": {}})),
            piece(1, json!({"type": "text_delta", "text": "hi"})),
            stop(1),
            end_a,
            end_b.clone(),
            end_b,
            piece(1, json!({"type": "text_delta", "text": " again"})),
        ]),
    );
    assert_eq!(message.blocks, [Block::Text { text: "hi".into() }]);
    assert_eq!(message.stop, StopReason::Other("brand_new_word".into()));
}

#[test]
fn a_whole_message_gives_what_its_stream_gives() {
    let decode = |wire, json: Value| {
        let (mut out, mut assembler) = (Vec::new(), Assembler::default());
        Decoder::new(wire).whole(json.to_string().as_bytes(), &mut out).unwrap();
        out.iter().for_each(|event| assembler.take(event));
        (assembler.reported(), assembler.finish("m").unwrap())
    };
    let (usage, message) = decode(
        Wire::Anthropic,
        json!({"type": "message", "id": "x", "model": "m", "role": "assistant", "stop_reason": "tool_use",
            "content": [{"type": "text", "text": "hi"}, {"type": "tool_use", "id": "t", "name": "n", "input": {"a": 1}}],
            "usage": {"input_tokens": 3, "output_tokens": 4}}),
    );
    assert_eq!((usage.input, usage.output), (Some(3), Some(4)));
    let expected = [
        Block::Text { text: "hi".into() },
        Block::ToolUse { id: "t".into(), name: "n".into(), input: json!({"a": 1}) },
    ];
    assert_eq!(message.blocks, expected);
    let (usage, message) = decode(
        Wire::Chat,
        json!({"id": "x", "object": "chat.completion", "model": "m", "usage": {"prompt_tokens": 3, "completion_tokens": 4},
            "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": "hi",
                "tool_calls": [{"id": "t", "type": "function", "function": {"name": "n", "arguments": "{\"a\":1}"}}]}}]}),
    );
    assert_eq!((usage.input, usage.output), (Some(3), Some(4)));
    assert_eq!(message.blocks, expected);
}

fn decoded(wire: Wire, events: &[&str]) -> (UsageReport, Assembled) {
    let (mut decoder, mut out, mut assembler) = (Decoder::new(wire), Vec::new(), Assembler::default());
    for event in events {
        decoder.event(b"", event.as_bytes(), &mut out).unwrap();
    }
    decoder.end(&mut out);
    out.iter().for_each(|event| assembler.take(event));
    (assembler.reported(), assembler.finish("m").unwrap())
}

#[test]
fn odd_numbers_and_words_do_not_cost_the_answer() {
    let (usage, message) = decoded(
        Wire::Chat,
        &[
            r#"{"id":7,"model":1,"error":false,"choices":[{"index":"0","delta":{"reasoning_content":[{"text":"hm"}]}}]}"#,
            r#"{"error":null,"usage":"none","choices":[{"index":0.0,"delta":{"content":"a\ud83d"},"finish_reason":false}]}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":"0","id":5,"function":{"name":"n","arguments":"{}"}}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":12.0,"completion_tokens":"4","prompt_tokens_details":[]}}"#,
            "[DONE]",
        ],
    );
    assert_eq!((usage.input, usage.output), (Some(12), Some(4)));
    assert_eq!(message.stop, StopReason::ToolUse);
    assert_eq!(message.blocks[1], Block::Text { text: "a\u{fffd}".into() });
    assert_eq!(message.blocks[2], Block::ToolUse { id: "5".into(), name: "n".into(), input: json!({}) });
    let (usage, message) = decoded(
        Wire::Anthropic,
        &[
            r#"{"type":"message_start","error":false,"message":{"id":3,"model":"m","usage":{"input_tokens":-1,"output_tokens":1.0}}}"#,
            r#"{"type":"content_block_start","index":"0","content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_delta","index":0.0,"delta":{"type":"text_delta","text":"\ud83dhi"}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":"9"}}"#,
            r#"{"type":"message_stop"}"#,
        ],
    );
    assert_eq!((usage.input, usage.output), (None, Some(9)));
    assert_eq!(message.blocks, [Block::Text { text: "\u{fffd}hi".into() }]);
}

#[test]
fn a_call_in_the_old_spelling_is_a_call() {
    let (_, message) = decoded(
        Wire::Chat,
        &[
            r#"{"choices":[{"index":0,"delta":{"function_call":{"name":"n","arguments":"{\"a\""}}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"function_call":{"arguments":":1}"}}}]}"#,
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"function_call"}]}"#,
        ],
    );
    assert_eq!(message.stop, StopReason::ToolUse);
    let [Block::ToolUse { name, input, .. }] = &message.blocks[..] else { panic!("{:?}", message.blocks) };
    assert_eq!((name.as_str(), input), ("n", &json!({"a": 1})));
}

#[test]
fn ids_stay_as_the_service_gave_them_even_when_it_repeats_them() {
    let bytes =
        chat(&[call(Some(0), Some("call_0"), "{}"), call(Some(1), Some("call_0"), "{}"), finish("stop")]);
    let message = whole(Wire::Chat, &bytes);
    assert_eq!(message.blocks.len(), 2);
    assert!(message.blocks.iter().all(|b| matches!(b, Block::ToolUse { id, .. } if id == "call_0")));
    assert_eq!(message.stop, StopReason::ToolUse);
}

#[test]
fn an_answer_without_end_is_refused_at_its_limit() {
    let mut assembler = Assembler::default();
    let text = "x".repeat(1 << 20);
    for _ in 0..33 {
        assembler.take(&StreamEvent::TextDelta { index: 0, text: text.clone() });
    }
    assert!(assembler.has_failed());
    assembler.take(&StreamEvent::MessageStop);
    assert_eq!(assembler.finish("m"), Err(NotWhole::TooLong));
}

proptest! {
    #[test]
    fn cut_anywhere_no_call_is_whole(at in 0usize..600) {
        let [end_a, end_b] = end("tool_use");
        let bytes = anthropic(&[start(0, tool("x")), json_piece(0, r#"{"command":"rm é"}"#), stop(0), end_a, end_b]);
        let cut = &bytes[..at.min(bytes.len() - 3)];
        let (mut parser, mut decoder, mut assembler) =
            (SseParser::default(), Decoder::new(Wire::Anthropic), Assembler::default());
        let mut out = Vec::new();
        let mut broken = false;
        let mut take = |frame: Frame<'_>| {
            if let Frame::Event { name, data } = frame {
                broken |= decoder.event(name, data, &mut out).is_err();
            }
        };
        parser.push(cut, &mut take).unwrap();
        parser.finish(&mut take).unwrap();
        out.iter().for_each(|event| assembler.take(event));
        prop_assert!(broken || assembler.finish("m").is_err());
    }
}
