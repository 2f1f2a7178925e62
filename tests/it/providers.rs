//! Services as they are in the wild, seen through `claw -p`: broken streams, odd chunks, limits, usage.

use claw_kit::{Claw, End, Gate, Output, Reply, Route, Sandbox, ScriptedProvider};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(20);

fn fixture(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/sse").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn ask(sandbox: &Sandbox, args: &[&str]) -> Claw {
    Claw::new(CLAW, sandbox).args(["-p", "the question"]).args(args).env("CLAW_RETRY_BASE_MS", "5")
}

fn answer(sandbox: &Sandbox) -> Output {
    ask(sandbox, &[]).run(BOUND)
}

fn json_answer(sandbox: &Sandbox) -> Value {
    ask(sandbox, &["--output-format", "json"]).run(BOUND).expect_code(0).json()
}

/// The start of an Anthropic stream up to the first block.
fn message_start() -> String {
    event(&json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
        "model": "m", "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 10, "output_tokens": 1}}}))
}

fn event(value: &Value) -> String {
    format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap_or_default())
}

fn block(index: usize, start: Value, deltas: &[Value]) -> String {
    let mut out = event(&json!({"type": "content_block_start", "index": index, "content_block": start}));
    for delta in deltas {
        out += &event(&json!({"type": "content_block_delta", "index": index, "delta": delta}));
    }
    out + &event(&json!({"type": "content_block_stop", "index": index}))
}

fn text_block(index: usize, text: &str) -> String {
    block(index, json!({"type": "text", "text": ""}), &[json!({"type": "text_delta", "text": text})])
}

fn tool_block(index: usize, id: &str, name: &str, arguments: &str) -> String {
    let delta = json!({"type": "input_json_delta", "partial_json": arguments});
    block(index, json!({"type": "tool_use", "id": id, "name": name, "input": {}}), &[delta])
}

fn message_end(stop: &str) -> String {
    let delta = json!({"stop_reason": stop, "stop_sequence": null});
    event(&json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}}))
        + &event(&json!({"type": "message_stop"}))
}

fn chunk(delta: Value, finish: Option<&str>) -> String {
    let choices = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
    format!(
        "data: {}\n\n",
        json!({"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": choices})
    )
}

/// A call that must never run, in a stream that breaks in several ways.
fn broken() -> Vec<(&'static str, Reply, bool)> {
    let touch = r#"{"command": "touch MUST_NOT_EXIST"}"#;
    let overloaded =
        event(&json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}));
    let open_tool = event(&json!({"type": "content_block_start", "index": 0,
        "content_block": {"type": "tool_use", "id": "t1", "name": "bash", "input": {}}}))
        + &event(&json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": &touch[..30]}}));
    let text = event(
        &json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
    ) + &event(
        &json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "PARTIAL-ONE "}}),
    );
    vec![
        ("an error after text", Reply::raw(message_start() + &text + &overloaded), true),
        ("an error inside a call", Reply::raw(message_start() + &open_tool + &overloaded), true),
        (
            "an end without message_stop behind a whole call",
            Reply::raw(message_start() + &tool_block(0, "t1", "bash", touch)).end(End::Close),
            false,
        ),
        ("an error as the first event", Reply::raw(overloaded.clone()), true),
        ("a cut connection", Reply::raw(message_start() + &text).end(End::Cut), false),
        (
            "a reset connection",
            Reply::raw(message_start() + &tool_block(0, "t1", "bash", touch)).end(End::Rst),
            false,
        ),
    ]
}

#[test]
fn a_broken_stream_is_no_answer_and_the_retry_stands_alone() {
    for (what, reply, is_overload) in broken() {
        let provider = ScriptedProvider::new([
            Route::reply(reply.clone()).times(1),
            Route::reply(Reply::text("SECOND-TRY-OK")),
        ]);
        let sandbox = Sandbox::anthropic(&provider);
        let output = answer(&sandbox).expect_code(0);
        assert_eq!(output.stdout, "SECOND-TRY-OK\n", "{what}: {output}");
        let requests = provider.requests();
        assert_eq!(
            (requests.len(), &requests[0].text),
            (2, &requests[1].text),
            "{what}: the retry is the same request"
        );
        assert!(!sandbox.has("MUST_NOT_EXIST"), "{what}");
        let provider = ScriptedProvider::always(reply);
        let sandbox = Sandbox::anthropic(&provider);
        let output = ask(&sandbox, &[]).env("CLAW_REQUEST_TRIES", "1").run(BOUND).expect_code(1);
        assert_eq!(provider.count(), 1, "{what}");
        assert!(!is_overload || output.stderr.contains("overloaded_error"), "{what}: {output}");
        assert!(!output.stdout.contains("PARTIAL-ONE") && !sandbox.has("MUST_NOT_EXIST"), "{what}: {output}");
    }
}

#[test]
fn a_withdrawn_text_is_marked_so_in_the_stream_and_stays_out_of_the_history() {
    let (_, reply, _) = broken().swap_remove(0);
    let provider = ScriptedProvider::new([
        Route::reply(reply).times(1),
        Route::reply(Reply::tool("t1", "glob_search", json!({"pattern": "*"}))).times(1),
        Route::reply(Reply::text("fine")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    let lines = ask(&sandbox, &["--output-format", "stream-json", "--include-partial-messages"])
        .run(BOUND)
        .expect_code(0)
        .json_lines();
    let at = |text: &str| lines.iter().position(|line| line.to_string().contains(text));
    let (partial, withdrawn) = (at("PARTIAL-ONE"), at("withdrawn"));
    assert!(partial.is_some() && withdrawn > partial, "{partial:?} {withdrawn:?}: {lines:#?}");
    let last = provider.last_request();
    assert!(!last.text.contains("PARTIAL-ONE"), "{}", last.text);
    assert_eq!(last.messages().iter().filter(|message| message["role"] == "assistant").count(), 1);
}

#[test]
fn an_openai_stream_that_breaks_is_no_answer_either() {
    let provider = ScriptedProvider::new([
        Route::reply(Reply::raw(fixture("broken/error_chunk.chat.sse"))).times(1),
        Route::reply(Reply::text("SECOND-TRY-OK")),
    ]);
    let output = answer(&Sandbox::openai(&provider)).expect_code(0);
    assert_eq!((output.stdout.as_str(), provider.count()), ("SECOND-TRY-OK\n", 2));
}

fn results(request: &claw_kit::Request) -> Vec<(String, bool, String)> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut found = Vec::new();
    for message in request.messages() {
        if message["role"] == "tool" {
            found.push((word(&message["tool_call_id"]), false, message["content"].to_string()));
        }
        for block in
            message["content"].as_array().into_iter().flatten().filter(|b| b["type"] == "tool_result")
        {
            let error = block["is_error"].as_bool().unwrap_or(false);
            found.push((word(&block["tool_use_id"]), error, block["content"].to_string()));
        }
    }
    found
}

#[test]
fn a_call_that_was_cut_at_the_output_limit_never_runs() {
    let whole_then_cut = message_start()
        + &tool_block(0, "whole", "write_file", r#"{"path": "one.txt", "content": "complete"}"#)
        + &tool_block(1, "cut", "write_file", r#"{"path": "two.txt", "content": "half of the fi"#)
        + &message_end("max_tokens");
    let empty = message_start()
        + &block(0, json!({"type": "tool_use", "id": "cut", "name": "bash", "input": {}}), &[])
        + &message_end("max_tokens");
    let lies = chunk(json!({"role": "assistant", "content": null}), None)
        + &chunk(
            json!({"tool_calls": [{"index": 0, "id": "cut", "type": "function",
                "function": {"name": "write_file", "arguments": r#"{"path": "two.txt", "content": "half"#}}]}),
            None,
        )
        + &chunk(json!({}), Some("tool_calls"))
        + "data: [DONE]\n\n";
    for (body, openai, count) in [(whole_then_cut, false, 2), (empty, false, 1), (lies, true, 1)] {
        let provider = ScriptedProvider::new([
            Route::reply(Reply::raw(body)).times(1),
            Route::reply(Reply::text("I see")),
        ]);
        let sandbox = if openai { Sandbox::openai(&provider) } else { Sandbox::anthropic(&provider) };
        assert_eq!(answer(&sandbox).expect_code(0).stdout, "I see\n");
        assert!(!sandbox.has("two.txt"));
        let results = results(&provider.last_request());
        assert_eq!(results.len(), count, "{results:?}");
        let (id, error, text) = &results[count - 1];
        assert!(id == "cut" && (openai || *error), "{results:?}");
        assert!(text.contains("cut") && text.contains("limit") || openai && text.contains("JSON"), "{text}");
    }
}

#[test]
fn the_same_cut_three_times_ends_the_turn() {
    let cut = message_start()
        + &tool_block(0, "cut%N%", "write_file", r#"{"path": "two.txt", "content": "half of the fi"#)
        + &message_end("max_tokens");
    let provider = ScriptedProvider::always(Reply::raw(cut));
    let sandbox = Sandbox::anthropic(&provider);
    let output = answer(&sandbox).expect_code(3);
    assert_eq!(provider.count(), 3, "{output}");
    assert!(output.stderr.contains("limit") && !sandbox.has("two.txt"), "{output}");
}

const SCRIPTS: &str = "naïve café Zürich 日本語 🦀🧪 👩‍👩‍👧 e\u{301} עברית — end";

#[test]
fn characters_survive_any_cut_between_network_pieces() {
    let call = json!({"path": "u.txt", "content": SCRIPTS}).to_string();
    let body = message_start()
        + &text_block(0, SCRIPTS)
        + &tool_block(1, "t1", "write_file", &call)
        + &message_end("tool_use");
    let inside: Vec<usize> = (0..body.len()).filter(|at| !body.is_char_boundary(*at)).collect();
    assert!(inside.len() > 40);
    for reply in [Reply::raw(body.clone()).split_at(inside), Reply::raw(body.clone()).in_chunks_of(1)] {
        let provider = ScriptedProvider::new([
            Route::reply(reply).times(1),
            Route::reply(Reply::text(SCRIPTS).in_chunks_of(1)),
        ]);
        let sandbox = Sandbox::anthropic(&provider);
        assert_eq!(answer(&sandbox).expect_code(0).stdout, format!("{SCRIPTS}\n"));
        assert_eq!(sandbox.read("u.txt"), SCRIPTS);
        let second = provider.last_request();
        assert!(second.text.contains(SCRIPTS) && !second.text.contains('\u{fffd}'));
    }
}

#[test]
fn parallel_calls_are_two_whatever_their_indexes_say() {
    for name in [
        "all_index_zero.chat.sse",
        "no_index.chat.sse",
        "interleaved.chat.sse",
        "skipping_indexes.chat.sse",
        "interleaved.anthropic.sse",
    ] {
        let provider = ScriptedProvider::new([
            Route::reply(Reply::raw(fixture(&format!("parallel/{name}")))).times(1),
            Route::reply(Reply::text("read both")),
        ]);
        let openai = name.contains("chat");
        let sandbox = if openai { Sandbox::openai(&provider) } else { Sandbox::anthropic(&provider) };
        sandbox.write("a", "CONTENT-OF-A");
        sandbox.write("b", "CONTENT-OF-B");
        assert_eq!(answer(&sandbox).expect_code(0).stdout, "read both\n", "{name}");
        let results = results(&provider.last_request());
        let prefix = if openai { "call" } else { "toolu" };
        let ids: Vec<&str> = results.iter().map(|(id, ..)| id.as_str()).collect();
        assert_eq!(ids, [format!("{prefix}_a"), format!("{prefix}_b")], "{name}");
        assert!(
            results[0].2.contains("CONTENT-OF-A") && results[1].2.contains("CONTENT-OF-B"),
            "{name}: {results:?}"
        );
    }
}

#[test]
fn every_legal_form_of_a_stream_says_the_same_whole_and_byte_by_byte() {
    let forms = [
        "comments_and_empty_data.anthropic.sse",
        "no_space_after_colon.anthropic.sse",
        "crlf.anthropic.sse",
        "lone_cr.anthropic.sse",
        "mixed_ends.anthropic.sse",
        "byte_order_mark.anthropic.sse",
        "data_on_several_lines.anthropic.sse",
        "id_retry_and_unknown_fields.anthropic.sse",
        "no_done_no_last_blank_line.chat.sse",
    ];
    for name in forms {
        let body = fixture(&format!("forms/{name}"));
        let after_cr: Vec<usize> =
            body.bytes().enumerate().filter(|(_, b)| *b == b'\r').map(|(at, _)| at + 1).collect();
        for reply in [
            Reply::raw(body.clone()),
            Reply::raw(body.clone()).in_chunks_of(1),
            Reply::raw(body.clone()).split_at(after_cr),
        ] {
            let provider = ScriptedProvider::always(reply.end(End::Close));
            let sandbox = if name.contains("chat") {
                Sandbox::openai(&provider)
            } else {
                Sandbox::anthropic(&provider)
            };
            let output = answer(&sandbox).expect_code(0);
            assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("plain\n", ""), "{name}");
            assert_eq!(provider.count(), 1, "{name}");
        }
    }
}

#[test]
fn done_inside_a_text_is_text() {
    let provider = ScriptedProvider::always(Reply::text("alpha [DONE] beta").in_pieces(3));
    for sandbox in [Sandbox::anthropic(&provider), Sandbox::openai(&provider)] {
        assert_eq!(answer(&sandbox).expect_code(0).stdout, "alpha [DONE] beta\n");
    }
}

#[test]
fn a_stall_behind_keep_alives_is_found_and_asked_again() {
    let body = message_start()
        + &event(
            &json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        )
        + &event(
            &json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "BEFORE-STALL"}}),
        );
    let stall = Reply::raw(body).heartbeat(event(&json!({"type": "ping"})), Duration::from_millis(100), 600);
    let provider =
        ScriptedProvider::new([Route::reply(stall).times(1), Route::reply(Reply::text("AFTER-RETRY"))]);
    let sandbox = Sandbox::anthropic(&provider);
    let output = ask(&sandbox, &[]).env("CLAW_STREAM_IDLE_MS", "800").run(BOUND).expect_code(0);
    assert_eq!(output.stdout, "AFTER-RETRY\n", "{output}");
    let requests = provider.requests();
    let after = requests[1].at - requests[0].at;
    assert!(after > Duration::from_millis(750) && after < Duration::from_secs(3), "{after:?}");
    assert!(output.stderr.contains("no data from anthropic for"), "{output}");
}

#[test]
fn a_slow_first_token_behind_comments_is_no_stall() {
    let slow = Reply::raw(": processing\n\n")
        .heartbeat(": processing\n\n", Duration::from_millis(100), 16)
        .after(message_start() + &text_block(0, "SLOW-BUT-FINE") + &message_end("end_turn"));
    let provider =
        ScriptedProvider::new([Route::reply(slow).times(1), Route::reply(Reply::text("WRONG-A-RETRY"))]);
    let sandbox = Sandbox::anthropic(&provider);
    let output = ask(&sandbox, &[])
        .env("CLAW_STREAM_IDLE_MS", "400")
        .env("CLAW_FIRST_TOKEN_MS", "15000")
        .run(BOUND)
        .expect_code(0);
    assert_eq!((output.stdout.as_str(), provider.count()), ("SLOW-BUT-FINE\n", 1));
}

#[test]
fn odd_chunks_are_no_trouble_and_usage_counts_once() {
    let usage = json!({"prompt_tokens": 611, "completion_tokens": 13, "total_tokens": 624, "prompt_tokens_details": {"cached_tokens": 512}});
    let body = format!("data: {}\n\n", json!({"id": "c1", "choices": [], "prompt_filter_results": []}))
        + &chunk(json!({"role": "assistant", "content": null, "tool_calls": null, "refusal": null}), None)
        + &chunk(Value::Null, None)
        + &chunk(json!({"content": "hello"}), None)
        + &chunk(json!({"content": ""}), Some("stop"))
        + &format!("data: {}\n\n", json!({"id": "c1", "usage": usage}))
        + &format!("data: {}\n\n", json!({"id": "c1", "choices": [], "usage": usage}))
        + "data: [DONE]\n\n";
    let provider = ScriptedProvider::always(Reply::raw(body));
    let sandbox = Sandbox::openai(&provider);
    let output = ask(&sandbox, &["--output-format", "json"]).run(BOUND).expect_code(0);
    assert_eq!(output.stderr, "");
    let result = output.json();
    assert_eq!(result["result"], "hello");
    let usage = &result["usage"];
    assert_eq!(
        (&usage["input_tokens"], &usage["cache_read_input_tokens"], &usage["output_tokens"]),
        (&json!(99), &json!(512), &json!(13)),
        "{usage}"
    );
}

#[test]
fn thinking_goes_back_byte_for_byte_and_in_order() {
    let body = message_start()
        + &block(
            0,
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            &[
                json!({"type": "signature_delta", "signature": "EqQBCkgIBxABGAIiQL+/"}),
                json!({"type": "signature_delta", "signature": "==with / + ="}),
            ],
        )
        + &block(1, json!({"type": "redacted_thinking", "data": "ZW5jcnlwdGVk"}), &[])
        + &text_block(2, "I will look.")
        + &block(
            3,
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            &[
                json!({"type": "thinking_delta", "thinking": "second — thought\n"}),
                json!({"type": "signature_delta", "signature": "c2Vjb25k"}),
            ],
        )
        + &block(
            4,
            json!({"type": "tool_use", "id": "toolu_t", "name": "read_file", "input": {}}),
            &[
                json!({"type": "input_json_delta", "partial_json": ""}),
                json!({"type": "input_json_delta", "partial_json": "{\"path\": \"a.txt\"}"}),
            ],
        )
        + &message_end("tool_use");
    let provider =
        ScriptedProvider::new([Route::reply(Reply::raw(body)).times(1), Route::reply(Reply::text("ok"))]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("a.txt", "a");
    answer(&sandbox).expect_code(0);
    let request = provider.last_request();
    let mut blocks = request.messages()[1]["content"].as_array().cloned().unwrap_or_default();
    for block in &mut blocks {
        block.as_object_mut().map(|fields| fields.remove("cache_control"));
    }
    let expected = json!([
        {"type": "thinking", "thinking": "", "signature": "EqQBCkgIBxABGAIiQL+/==with / + ="},
        {"type": "redacted_thinking", "data": "ZW5jcnlwdGVk"},
        {"type": "text", "text": "I will look."},
        {"type": "thinking", "thinking": "second — thought\n", "signature": "c2Vjb25k"},
        {"type": "tool_use", "id": "toolu_t", "name": "read_file", "input": {"path": "a.txt"}},
    ]);
    assert_eq!(Value::Array(blocks), expected);
}

#[test]
fn repeated_and_empty_tool_ids_run_each_call_once_with_its_own_result() {
    let say =
        |word: &str| json!({"command": format!("echo {0} >> side.txt; echo {1}", word.to_lowercase(), word)});
    let replies = [
        Reply::tool("call_0", "bash", say("ONE")).with_tool("call_0", "bash", say("TWO")),
        Reply::tool("call_0", "bash", say("THREE")),
        Reply::tool("", "bash", say("FOUR")),
        Reply::text("DONE"),
    ];
    for openai in [false, true] {
        let provider = ScriptedProvider::queue(replies.clone());
        let sandbox = if openai { Sandbox::openai(&provider) } else { Sandbox::anthropic(&provider) };
        assert_eq!(answer(&sandbox).expect_code(0).stdout, "DONE\n");
        let mut said: Vec<String> = sandbox.read("side.txt").lines().map(str::to_owned).collect();
        said[..2].sort();
        assert_eq!(said, ["one", "two", "three", "four"]);
        let results = results(&provider.last_request());
        let texts: Vec<bool> = results
            .iter()
            .zip(["ONE", "TWO", "THREE", "FOUR"])
            .map(|((_, _, text), word)| text.contains(word))
            .collect();
        assert_eq!((texts.as_slice(), provider.count()), (&[true; 4][..], 4), "{results:?}");
    }
}

#[test]
fn cumulative_usage_counts_once_on_both_forms() {
    let start = event(
        &json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant",
        "model": "m", "content": [], "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 27,
        "cache_creation_input_tokens": 1500, "cache_read_input_tokens": 20000, "output_tokens": 1}}}),
    );
    let delta = |usage: Value, stop: Value| {
        event(&json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": usage}))
    };
    let whole = |output: u64| json!({"input_tokens": 27, "cache_creation_input_tokens": 1500, "cache_read_input_tokens": 20000, "output_tokens": output});
    let stop = event(&json!({"type": "message_stop"}));
    let cumulative = start.clone()
        + &text_block(0, "hi")
        + &delta(whole(20), Value::Null)
        + &delta(whole(47), json!("end_turn"))
        + &stop;
    let output_only =
        start + &text_block(0, "hi") + &delta(json!({"output_tokens": 47}), json!("end_turn")) + &stop;
    for body in [cumulative, output_only] {
        let provider = ScriptedProvider::always(Reply::raw(body));
        let sandbox = Sandbox::anthropic(&provider);
        let result =
            ask(&sandbox, &["--output-format", "json", "--model", "sonnet"]).run(BOUND).expect_code(0).json();
        let usage = &result["usage"];
        let counts =
            ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"]
                .map(|key| usage[key].as_u64().unwrap_or_default());
        assert_eq!(counts, [27, 1500, 20000, 47], "{usage}");
        // Four rates, per million tokens: 3, 3.75, 0.30, 15.
        let expected = (27.0 * 3.0 + 1500.0 * 3.75 + 20000.0 * 0.3 + 47.0 * 15.0) / 1e6;
        let cost = result["total_cost_usd"].as_f64().unwrap_or_default();
        assert!((cost - expected).abs() < 1e-9, "{cost} for {expected}");
    }
}

#[test]
fn an_unknown_price_is_unknown_and_not_nothing() {
    let provider = ScriptedProvider::always(Reply::text("hi"));
    let sandbox = Sandbox::openai(&provider);
    let result = ask(&sandbox, &["--output-format", "json", "--model", "openai/some-local-model"])
        .run(BOUND)
        .expect_code(0)
        .json();
    assert!(result["total_cost_usd"].is_null(), "{result}");
}

fn limited(headers: &[(&str, &str)]) -> Reply {
    let body = json!({"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}});
    headers.iter().fold(Reply::error(429, &body), |reply, (name, value)| reply.header(name, value))
}

/// From the first to the second request.
fn gap(headers: &[(&str, &str)]) -> (Duration, Output) {
    let provider =
        ScriptedProvider::new([Route::reply(limited(headers)).times(1), Route::reply(Reply::text("OK"))]);
    let sandbox = Sandbox::anthropic(&provider);
    let output = Claw::new(CLAW, &sandbox)
        .args(["-p", "x"])
        .env("CLAW_RETRY_BASE_MS", "300")
        .run(BOUND)
        .expect_code(0);
    assert_eq!((output.stdout.as_str(), provider.count()), ("OK\n", 2));
    let requests = provider.requests();
    (requests[1].at - requests[0].at, output)
}

#[test]
fn what_a_service_asks_for_is_kept_in_seconds_and_milliseconds() {
    let (seconds, output) = gap(&[("retry-after", "1")]);
    assert!(seconds >= Duration::from_millis(1000) && seconds < Duration::from_secs(4), "{seconds:?}");
    assert!(output.stderr.contains("rate limited"), "{output}");
    let (millis, _) = gap(&[("retry-after-ms", "700"), ("retry-after", "15")]);
    assert!(millis >= Duration::from_millis(700) && millis < Duration::from_secs(4), "{millis:?}");
}

#[test]
fn a_nonsense_wait_is_the_usual_backoff_and_never_at_once() {
    for value in ["-5", "Wed, 21 Oct 2015 07:28:00 GMT", "soon, please", "NaN"] {
        let (gap, _) = gap(&[("retry-after", value)]);
        assert!(gap >= Duration::from_millis(20) && gap < Duration::from_secs(3), "{value}: {gap:?}");
    }
}

#[test]
fn a_wait_of_hours_stops_with_the_time_instead_of_sleeping() {
    let provider = ScriptedProvider::always(limited(&[("retry-after", "10800")]));
    let sandbox = Sandbox::anthropic(&provider);
    let output = answer(&sandbox);
    assert!(output.code == Some(1) || output.code == Some(4), "{output}");
    assert!(output.took < Duration::from_secs(5) && provider.count() == 1, "{output}");
    assert!(["3h", "3 h", "10800"].iter().any(|time| output.stderr.contains(time)), "{output}");
}

#[test]
fn a_quota_error_is_asked_once() {
    let body = json!({"error": {"type": "insufficient_quota", "code": "insufficient_quota", "message": "You exceeded your current quota"}});
    let provider = ScriptedProvider::always(Reply::error(429, &body));
    let output = answer(&Sandbox::openai(&provider));
    assert_ne!(output.code, Some(0));
    assert!(provider.count() == 1 && output.stderr.contains("quota"), "{output}");
}

#[test]
fn ten_agents_share_one_pause_and_start_again_spread_out() {
    let gate = Gate::closed();
    let provider = ScriptedProvider::new([
        Route::reply(limited(&[("retry-after", "1")]).gate(&gate)).times(10),
        Route::reply(Reply::text("OK")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write(
        "wf.toml",
        "schema = 1\n[workflow]\nname = \"ten\"\n[node.look]\nagent = \"Explore\"\nprompt = \"{{ item }}\"\neach = { range = 10 }\n",
    );
    let running = Claw::new(CLAW, &sandbox).args(["run", "wf.toml"]).spawn();
    gate.wait_for_waiting(10, BOUND);
    gate.open();
    let output = running.wait(BOUND).expect_code(0);
    let requests = provider.requests();
    assert_eq!(requests.len(), 20, "one pause for all: {output}");
    let first = requests[9].at;
    let again: Vec<Duration> = requests[10..].iter().map(|request| request.at - first).collect();
    assert!(again.iter().all(|at| *at >= Duration::from_millis(990)), "{again:?}");
    let spread = again[9] - again[0];
    assert!(spread >= Duration::from_millis(50), "all at once: {spread:?}");
    assert!(output.stderr.contains("rate limit"), "{output}");
}

#[test]
fn refusals_are_not_tried_again_and_say_who_what_and_which_request() {
    for status in [400, 401, 403, 404, 413, 422] {
        let body = json!({"type": "error", "error": {"type": "some_error", "message": "the reason"}});
        let provider = ScriptedProvider::always(Reply::error(status, &body).header("request-id", "req_42"));
        let sandbox = Sandbox::anthropic(&provider);
        let output = answer(&sandbox);
        assert_ne!(output.code, Some(0), "{output}");
        assert_eq!(provider.count(), 1, "{status}: {output}");
        for part in [&status.to_string(), "anthropic", "the reason", "req_42"] {
            assert!(output.stderr.contains(part), "{part}: {output}");
        }
        assert!(!output.stderr.contains(claw_kit::CANARY), "{output}");
    }
}

#[test]
fn faults_of_the_service_are_tried_six_times_and_the_last_is_told() {
    let body = json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}});
    for status in [408, 409, 500, 502, 503, 504, 529] {
        let provider = ScriptedProvider::always(Reply::error(status, &body));
        let output = answer(&Sandbox::anthropic(&provider)).expect_code(1);
        assert_eq!(provider.count(), 6, "{status}: {output}");
        assert!(output.stderr.contains("failed after 6 attempts"), "{output}");
    }
}

#[test]
fn a_key_does_not_follow_a_redirect_to_another_host() {
    let other = ScriptedProvider::always(Reply::text("stolen"));
    let provider = ScriptedProvider::always(
        Reply::raw("").status(307).header("location", &format!("{}/v1/messages", other.anthropic_url())),
    );
    let output = answer(&Sandbox::anthropic(&provider));
    assert_ne!(output.code, Some(0), "{output}");
    let told =
        other.requests().iter().any(|request| format!("{:?}", request.headers).contains(claw_kit::CANARY));
    assert!(!told, "the key was sent to another host");
}

#[test]
fn an_answer_of_html_is_an_error_and_no_text() {
    let page =
        Reply::raw("<html><body>Welcome to the portal</body></html>").header("content-type", "text/html");
    for sandbox in [Sandbox::anthropic as fn(&ScriptedProvider) -> Sandbox, Sandbox::openai] {
        let provider = ScriptedProvider::always(page.clone());
        let output = ask(&sandbox(&provider), &[]).env("CLAW_REQUEST_TRIES", "2").run(BOUND).expect_code(1);
        assert!(output.stdout.is_empty() && !output.stderr.contains("panicked"), "{output}");
    }
}

#[test]
fn a_whole_json_answer_of_a_gateway_that_ignores_stream_is_understood() {
    let anthropic = json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "whole"}], "usage": {"input_tokens": 1, "output_tokens": 1}});
    let openai = json!({"id": "c", "object": "chat.completion", "model": "m", "choices": [{"index": 0,
        "message": {"role": "assistant", "content": "whole"}, "finish_reason": "stop"}]});
    for (body, is_openai) in [(anthropic, false), (openai, true)] {
        let provider =
            ScriptedProvider::always(Reply::raw(body.to_string()).header("content-type", "application/json"));
        let sandbox = if is_openai { Sandbox::openai(&provider) } else { Sandbox::anthropic(&provider) };
        assert_eq!(json_answer(&sandbox)["result"], "whole");
    }
}

#[test]
fn a_provider_that_is_not_there_is_told_with_its_address() {
    let address = {
        let provider = ScriptedProvider::always(Reply::text("x"));
        provider.anthropic_url()
    };
    let sandbox =
        Sandbox::new().env("ANTHROPIC_BASE_URL", &address).env("ANTHROPIC_API_KEY", claw_kit::CANARY);
    let output = answer(&sandbox).expect_code(1);
    assert!(output.stderr.contains(address.trim_start_matches("http://")), "{output}");
}

#[test]
fn a_fallback_model_takes_over_and_it_is_said() {
    let busy = json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}});
    let provider = ScriptedProvider::new([
        Route::reply(Reply::error(529, &busy)).contains("claude-haiku"),
        Route::reply(Reply::text("from the second")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write(
        "wf.toml",
        "schema = 1\n[workflow]\nname = \"fall\"\n[node.a]\nagent = \"Explore\"\nmodel = [\"haiku\", \"sonnet\"]\nprompt = \"x\"\n",
    );
    let output = Claw::new(CLAW, &sandbox)
        .args(["run", "wf.toml"])
        .env("CLAW_RETRY_BASE_MS", "5")
        .run(BOUND)
        .expect_code(0);
    assert_eq!(output.stdout, "from the second\n");
    assert!(output.stderr.contains("sonnet"), "{output}");
}

#[test]
fn cut_anywhere_a_stream_runs_no_tool_and_the_retry_is_the_answer() {
    let touch = r#"{"command": "touch MUST_NOT_EXIST; echo 日本語🦀"}"#;
    let body = message_start()
        + &text_block(0, "é日🦀")
        + &tool_block(1, "t1", "bash", touch)
        + &message_end("tool_use");
    let stop = body.find("event: message_stop").unwrap_or_default();
    let points: usize = std::env::var("CLAW_CUT_POINTS").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    for point in 0..points {
        let at = stop * (point + 1) / points - 1;
        let bytes = body.as_bytes()[..at].to_vec();
        let provider = ScriptedProvider::new([
            Route::reply(Reply::raw(bytes).end(if point % 2 == 0 { End::Cut } else { End::Close })).times(1),
            Route::reply(Reply::text("SECOND-TRY-OK")),
        ]);
        let sandbox = Sandbox::anthropic(&provider);
        let output = answer(&sandbox).expect_code(0);
        assert_eq!(
            (output.stdout.as_str(), provider.count()),
            ("SECOND-TRY-OK\n", 2),
            "cut at {at}: {output}"
        );
        assert!(!sandbox.has("MUST_NOT_EXIST"), "cut at {at}");
    }
}

#[test]
fn events_that_nobody_knows_are_passed_over_and_broken_ones_are_a_fault() {
    let unknown = "event: news\ndata: {\"type\": \"news\", \"x\": [1]}\n\n";
    let twice = message_end("end_turn") + &event(&json!({"type": "message_stop"}));
    let good = message_start() + unknown + &text_block(0, "fine") + &twice;
    let provider = ScriptedProvider::always(Reply::raw(good));
    let output = answer(&Sandbox::anthropic(&provider)).expect_code(0);
    assert_eq!((output.stdout.as_str(), provider.count()), ("fine\n", 1));
    let broken = message_start() + "event: content_block_start\ndata: {\"type\": \"content_block_sta\n\n";
    let provider = ScriptedProvider::new([
        Route::reply(Reply::raw(broken)).times(1),
        Route::reply(Reply::text("SECOND-TRY-OK")),
    ]);
    let output = answer(&Sandbox::anthropic(&provider)).expect_code(0);
    assert_eq!((output.stdout.as_str(), provider.count()), ("SECOND-TRY-OK\n", 2), "{output}");
}

#[test]
fn at_a_third_of_faults_every_agent_still_ends_and_few_requests_are_more() {
    let busy = json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}});
    let count = std::sync::atomic::AtomicUsize::new(0);
    let provider = ScriptedProvider::new([Route::answer(move |_| {
        match count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) % 10 {
            0 => Reply::error(529, &busy),
            3 => Reply::raw(message_start()).end(End::Cut),
            6 => Reply::error(503, &busy),
            _ => Reply::text("fine"),
        }
    })]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write(
        "wf.toml",
        "schema = 1\n[workflow]\nname = \"faults\"\n[node.look]\nagent = \"Explore\"\nprompt = \"{{ item }}\"\neach = { range = 60 }\n",
    );
    let output = Claw::new(CLAW, &sandbox)
        .args(["run", "wf.toml"])
        .env("CLAW_RETRY_BASE_MS", "5")
        .run(BOUND)
        .expect_code(0);
    assert!(provider.count() <= 96, "{} requests for 60 answers: {output}", provider.count());
}
