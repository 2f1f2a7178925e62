//! Which service is asked, with which key, model and limits, and what a request looks like on its wire.

use claw_kit::{CANARY, Claw, Output, Reply, Request, Route, Sandbox, ScriptedProvider, run_program};
use serde_json::{Value, json};
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(20);

fn ask(sandbox: &Sandbox, args: &[&str]) -> Output {
    Claw::new(CLAW, sandbox).args(["-p", "hello"]).args(args).env("CLAW_RETRY_BASE_MS", "5").run(BOUND)
}

fn header<'a>(request: &'a Request, name: &str) -> &'a str {
    request.header(name).unwrap_or_default()
}

#[test]
fn aliases_are_taken_in_any_case_and_other_names_go_out_as_typed() {
    let provider = ScriptedProvider::always(Reply::text("ok"));
    let sandbox = Sandbox::anthropic(&provider);
    for (typed, sent, tokens) in [
        ("opus", "claude-opus-4-6", 32_000),
        (" Opus ", "claude-opus-4-6", 32_000),
        ("sonnet", "claude-sonnet-4-6", 64_000),
        ("HAIKU", "claude-haiku-4-5", 64_000),
        ("claude-of-tomorrow", "claude-of-tomorrow", 64_000),
        ("anthropic/claude-haiku-4-5", "claude-haiku-4-5", 64_000),
    ] {
        ask(&sandbox, &["--model", typed]).expect_code(0);
        let body = provider.last_request().body.clone();
        assert_eq!((&body["model"], &body["max_tokens"]), (&json!(sent), &json!(tokens)), "{typed}");
    }
    ask(&sandbox, &[]).expect_code(0);
    assert_eq!(provider.last_request().body["model"], "claude-opus-4-6");
    let chosen = Sandbox::anthropic(&provider).env("CLAW_MODEL", "haiku").env("ANTHROPIC_MODEL", "sonnet");
    ask(&chosen, &[]).expect_code(0);
    assert_eq!(provider.last_request().body["model"], "claude-haiku-4-5");
}

#[test]
fn keys_stand_in_the_header_of_their_service_only() {
    let provider = ScriptedProvider::always(Reply::text("ok"));
    ask(&Sandbox::anthropic(&provider), &[]).expect_code(0);
    let request = provider.last_request();
    assert_eq!((header(&request, "x-api-key"), header(&request, "authorization")), (CANARY, ""));
    assert_eq!(request.path, "/v1/messages");
    let token =
        Sandbox::anthropic(&provider).without_env("ANTHROPIC_API_KEY").env("ANTHROPIC_AUTH_TOKEN", CANARY);
    ask(&token, &[]).expect_code(0);
    let request = provider.last_request();
    assert_eq!(
        (header(&request, "x-api-key"), header(&request, "authorization")),
        ("", format!("Bearer {CANARY}").as_str())
    );
    ask(&Sandbox::openai(&provider), &["--model", "openai/gpt-4.1"]).expect_code(0);
    let request = provider.last_request();
    assert_eq!(header(&request, "authorization"), format!("Bearer {CANARY}"));
    assert_eq!(
        (request.path.as_str(), request.body["model"].as_str()),
        ("/v1/chat/completions", Some("gpt-4.1"))
    );
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let provider = ScriptedProvider::always(Reply::text("ok"));
    let sandbox = Sandbox::openai(&provider).env("ANTHROPIC_API_KEY", "").env("ANTHROPIC_AUTH_TOKEN", "");
    ask(&sandbox, &[]).expect_code(0);
    assert_eq!(provider.last_request().path, "/v1/chat/completions");
}

#[test]
fn a_local_server_needs_no_key_and_its_address_may_be_whole() {
    let provider = ScriptedProvider::always(Reply::text("ok"));
    for address in [
        provider.openai_url(),
        format!("{}/", provider.openai_url()),
        format!("{}/chat/completions", provider.openai_url()),
    ] {
        let sandbox = Sandbox::new().env("OPENAI_BASE_URL", &address);
        ask(&sandbox, &["--model", "openai/local"]).expect_code(0);
        let request = provider.last_request();
        assert_eq!(
            (request.path.as_str(), header(&request, "authorization")),
            ("/v1/chat/completions", ""),
            "{address}"
        );
    }
    let sandbox = Sandbox::new().env("XAI_BASE_URL", &provider.openai_url()).env("XAI_API_KEY", CANARY);
    ask(&sandbox, &["--model", "grok"]).expect_code(0);
    assert_eq!(provider.last_request().body["model"], "grok-3");
}

#[test]
fn a_model_whose_service_has_no_credentials_names_what_to_set() {
    let provider = ScriptedProvider::always(Reply::text("never"));
    for (sandbox, model, variable) in [
        (Sandbox::anthropic(&provider), "grok-3", "XAI_API_KEY"),
        (Sandbox::openai(&provider), "sonnet", "ANTHROPIC_API_KEY"),
        (Sandbox::anthropic(&provider), "openai/gpt-4.1", "OPENAI_API_KEY"),
    ] {
        let output = ask(&sandbox, &["--model", model]).expect_code(2);
        assert!(output.stderr.contains(variable), "{output}");
    }
    assert_eq!(provider.count(), 0);
}

#[test]
fn breakpoints_of_the_cache_stand_at_system_tools_and_the_moving_end() {
    let provider = ScriptedProvider::new([
        Route::reply(Reply::tool("t1", "glob_search", json!({"pattern": "*"}))).times(2),
        Route::reply(Reply::text("ok")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    ask(&sandbox, &[]).expect_code(0);
    for request in provider.requests() {
        let marks = request.text.matches("cache_control").count();
        assert!((2..=4).contains(&marks), "{marks} breakpoints");
        let last = request.messages().last().map(ToString::to_string).unwrap_or_default();
        assert!(last.contains("cache_control"), "{last}");
        assert!(request.body["system"].to_string().contains("cache_control"));
    }
    let requests = provider.requests();
    assert_eq!(
        requests[0].body["system"], requests[2].body["system"],
        "the prefix stays the same, byte for byte"
    );
    assert_eq!(requests[0].body["tools"], requests[2].body["tools"]);
}

#[test]
fn an_answer_without_a_block_is_asked_once_more_without_a_stream() {
    for openai in [false, true] {
        let provider = ScriptedProvider::new([Route::answer(|request| {
            if request.body["stream"] == true { Reply::empty() } else { Reply::text("whole") }
        })]);
        let sandbox = if openai { Sandbox::openai(&provider) } else { Sandbox::anthropic(&provider) };
        let output = ask(&sandbox, &[]).expect_code(0);
        assert_eq!((output.stdout.as_str(), provider.count()), ("whole\n", 2), "{output}");
    }
}

#[test]
fn a_compressed_answer_is_read() {
    let sandbox = Sandbox::new();
    let text = format!(
        "data: {}\n\ndata: {}\n\ndata: [DONE]\n\n",
        json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": "unpacked"}, "finish_reason": null}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
    );
    let path = sandbox.write("body", text);
    assert!(run_program(&sandbox.project(), "gzip", &["-k", &path.to_string_lossy()]).is_some());
    let reply = Reply::file(sandbox.project().join("body.gz")).header("content-encoding", "gzip");
    let provider = ScriptedProvider::always(reply);
    assert_eq!(ask(&Sandbox::openai(&provider), &[]).expect_code(0).stdout, "unpacked\n");
}

#[test]
fn a_line_without_end_is_refused_at_a_limit() {
    let provider = ScriptedProvider::always(Reply::raw([b"data: ".to_vec(), vec![b'x'; 80 << 20]].concat()));
    let sandbox = Sandbox::anthropic(&provider);
    let output =
        Claw::new(CLAW, &sandbox).args(["-p", "x"]).env("CLAW_REQUEST_TRIES", "1").run(BOUND).expect_code(1);
    assert!(
        output.stdout.is_empty() && output.stderr.len() < 4_000,
        "{} bytes of errors",
        output.stderr.len()
    );
}

#[test]
fn an_unknown_model_falls_back_where_a_list_is_given() {
    let missing =
        json!({"type": "error", "error": {"type": "not_found_error", "message": "model: claude-nowhere"}});
    let provider = ScriptedProvider::new([
        Route::reply(Reply::error(404, &missing)).contains("claude-nowhere"),
        Route::reply(Reply::text("from the second")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write(
        "wf.toml",
        "schema = 1\n[workflow]\nname = \"fall\"\n[node.a]\nagent = \"Explore\"\nmodel = [\"claude-nowhere\", \"sonnet\"]\nprompt = \"x\"\n",
    );
    let output = Claw::new(CLAW, &sandbox).args(["run", "wf.toml"]).run(BOUND).expect_code(0);
    assert_eq!((output.stdout.as_str(), provider.count()), ("from the second\n", 2));
}

#[test]
fn agents_of_the_file_have_their_prompt_their_tools_and_no_more() {
    let provider = ScriptedProvider::always(Reply::text("ok"));
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write(
        "wf.toml",
        r#"
schema = 1
[workflow]
name = "own"
[agents.reader]
description = "reads"
prompt = "YOU-READ-ALOUD"
tools = ["Read", "Bash", "Grep"]
deny_tools = ["bash"]
model = "haiku"
[node.a]
agent = "Reader"
prompt = "x"
deny_tools = ["grep_search"]
system_append = "AND-SLOWLY"
"#,
    );
    Claw::new(CLAW, &sandbox).args(["run", "wf.toml"]).run(BOUND).expect_code(0);
    let request = provider.last_request();
    let system = request.body["system"].to_string();
    assert!(system.contains("YOU-READ-ALOUD") && system.contains("AND-SLOWLY"), "{system}");
    assert_eq!(
        (request.tool_names(), &request.body["model"]),
        (vec!["read_file"], &Value::from("claude-haiku-4-5"))
    );
}
