//! `claw -p`: one conversation, its three formats, and what happens where nobody can be asked.

use claw_kit::{Claw, Gate, Reply, Route, Sandbox, ScriptedProvider};
use serde_json::{Value, json};
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(20);

fn claw(sandbox: &Sandbox, args: &[&str]) -> Claw {
    Claw::new(CLAW, sandbox).args(args)
}

fn wants_to_write() -> ScriptedProvider {
    ScriptedProvider::new([
        Route::reply(Reply::tool("t1", "bash", json!({"command": "touch MUST_NOT_EXIST"}))).times(1),
        Route::reply(Reply::text("I could not.")),
    ])
}

#[test]
fn text_is_the_answer_and_a_line_end_and_nothing_else() {
    let provider = ScriptedProvider::new([
        Route::reply(Reply::text("I look.").with_tool("t1", "glob_search", json!({"pattern": "*"}))).times(1),
        Route::reply(Reply::text("first\n\nsecond ünïcode").in_pieces(4)),
    ]);
    let output = claw(&Sandbox::anthropic(&provider), &["-p", "x"]).run(BOUND).expect_code(0);
    assert_eq!(output.stdout, "first\n\nsecond ünïcode\n");
    assert!(!output.stderr.contains('\u{1b}'), "{output}");
    let again = claw(&Sandbox::openai(&provider), &["prompt", "x"]).run(BOUND).expect_code(0);
    assert_eq!(again.stdout, "first\n\nsecond ünïcode\n");
}

#[test]
fn json_is_one_document_whatever_happens() {
    for (reply, code, is_error) in [
        (Reply::text("fine"), 0, false),
        (
            Reply::error(
                400,
                &json!({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}),
            ),
            1,
            true,
        ),
    ] {
        let provider = ScriptedProvider::always(reply);
        let sandbox = Sandbox::anthropic(&provider);
        let output = claw(&sandbox, &["-p", "x", "--output-format", "json"]).run(BOUND).expect_code(code);
        let result = output.json();
        assert_eq!((&result["type"], &result["is_error"]), (&json!("result"), &json!(is_error)), "{output}");
        assert!(
            result["session_id"].is_string() && result["num_turns"].is_u64() && result["usage"].is_object(),
            "{output}"
        );
    }
}

#[test]
fn a_stream_is_one_object_a_line_and_ends_with_the_result() {
    let provider = ScriptedProvider::new([
        Route::reply(Reply::tool("t1", "read_file", json!({"path": "a.txt"}))).times(1),
        Route::reply(Reply::text("read it")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("a.txt", "CONTENT\n");
    let output = claw(&sandbox, &["-p", "x", "--output-format", "stream-json"]).run(BOUND).expect_code(0);
    let lines = output.json_lines();
    let kinds: Vec<&str> = lines.iter().filter_map(|line| line["type"].as_str()).collect();
    assert_eq!(kinds, ["system", "assistant", "user", "assistant", "result"], "{output}");
    assert_eq!(lines[4]["result"], "read it");
    let sessions: Vec<&Value> = lines.iter().map(|line| &line["session_id"]).collect();
    assert!(sessions.iter().all(|id| id.is_string() && *id == sessions[0]), "{sessions:?}");
}

#[test]
fn a_call_that_nobody_can_allow_is_denied_soon_and_listed() {
    for silent_pipe in [true, false] {
        let provider = wants_to_write();
        let sandbox = Sandbox::anthropic(&provider);
        let start = claw(&sandbox, &["-p", "x", "--permission-mode", "prompt", "--output-format", "json"]);
        let output =
            if silent_pipe { start.open_stdin().run(BOUND) } else { start.run(BOUND) }.expect_code(0);
        assert!(output.took < Duration::from_secs(5), "{output}");
        let result = output.json();
        let denials = result["permission_denials"].as_array().cloned().unwrap_or_default();
        assert_eq!(denials.len(), 1, "{output}");
        let denial = denials[0].to_string();
        assert!(denial.contains("bash") && denial.contains("--permission-mode"), "{output}");
        assert!(!sandbox.has("MUST_NOT_EXIST"));
        let told = provider.last_request();
        let last = told.messages().last().map(ToString::to_string).unwrap_or_default();
        assert!(last.contains("\"is_error\":true"), "{last}");
    }
}

#[test]
fn a_workflow_node_that_nobody_can_allow_is_denied_and_listed_too() {
    let provider = wants_to_write();
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", "schema = 1\n[workflow]\nname = \"one\"\n[node.a]\nprompt = \"make it\"\n");
    let output =
        claw(&sandbox, &["run", "wf.toml", "--permission-mode", "prompt", "--output-format", "json"])
            .open_stdin()
            .run(BOUND)
            .expect_code(0);
    let result = output.json();
    assert_eq!(result["permission_denials"].as_array().map(Vec::len), Some(1), "{output}");
    assert_eq!(result["permission_denials"][0]["step"], "a", "{output}");
    assert!(!sandbox.has("MUST_NOT_EXIST"));
}

#[test]
fn the_turn_limit_ends_it_with_exit_3_and_says_so() {
    let provider = ScriptedProvider::always(Reply::tool("t%N%", "glob_search", json!({"pattern": "*"})));
    let sandbox = Sandbox::anthropic(&provider);
    let output = claw(&sandbox, &["-p", "x", "--max-turns", "3"]).run(BOUND).expect_code(3);
    assert_eq!(provider.count(), 3);
    assert!(output.stderr.contains('3') && output.stderr.contains("turns"), "{output}");
}

#[test]
fn tools_that_are_not_allowed_are_neither_offered_nor_run() {
    let provider = ScriptedProvider::new([
        Route::reply(Reply::tool("t1", "Bash", json!({"command": "touch MUST_NOT_EXIST"}))).times(1),
        Route::reply(Reply::text("ok")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    claw(&sandbox, &["-p", "x", "--allowedTools", "Read,Grep"]).run(BOUND).expect_code(0);
    let mut offered: Vec<String> =
        provider.requests()[0].tool_names().into_iter().map(str::to_owned).collect();
    offered.sort();
    assert_eq!(offered, ["grep_search", "read_file"]);
    assert!(!sandbox.has("MUST_NOT_EXIST"));
    claw(&sandbox, &["-p", "x", "--disallowedTools", "bash"]).run(BOUND).expect_code(0);
    assert!(!provider.last_request().tool_names().contains(&"bash"));
}

#[test]
fn the_system_prompt_may_be_lengthened_and_names_the_folder() {
    let provider = ScriptedProvider::always(Reply::text("ok"));
    let sandbox = Sandbox::anthropic(&provider);
    claw(&sandbox, &["-p", "x", "--append-system-prompt", "SPEAK-LATIN"]).run(BOUND).expect_code(0);
    let system = provider.last_request().body["system"].to_string();
    assert!(
        system.contains("SPEAK-LATIN") && system.contains(&*sandbox.project().to_string_lossy()),
        "{system}"
    );
}

#[test]
fn the_answer_appears_while_it_comes() {
    let gate = Gate::closed();
    let provider = ScriptedProvider::always(
        Reply::text(format!("EARLY {} LATE", "word ".repeat(200))).in_pieces(100).gate_at(1500, &gate),
    );
    let sandbox = Sandbox::anthropic(&provider);
    let running =
        claw(&sandbox, &["-p", "x", "--output-format", "stream-json", "--include-partial-messages"]).spawn();
    running.wait_for_stdout("EARLY", BOUND);
    assert!(!running.stdout().contains("LATE"));
    gate.open();
    running.wait(BOUND).expect_code(0);
}

#[test]
fn read_only_changes_nothing_and_says_so_to_the_model() {
    let provider =
        ScriptedProvider::new([
            Route::reply(
                Reply::tool("t1", "bash", json!({"command": "touch MUST_NOT_EXIST && echo touched"}))
                    .with_tool("t2", "write_file", json!({"path": "MUST_NOT_EXIST", "content": "x"})),
            )
            .times(1),
            Route::reply(Reply::text("I could not.")),
        ]);
    let sandbox = Sandbox::anthropic(&provider);
    claw(&sandbox, &["-p", "x", "--permission-mode", "read-only"]).run(BOUND).expect_code(0);
    assert!(!sandbox.has("MUST_NOT_EXIST"));
    let last = provider.last_request().messages().last().cloned().unwrap_or_default();
    let results = last["content"].as_array().cloned().unwrap_or_default();
    assert!(results.len() >= 2 && !last.to_string().contains("touched\\n"), "{last}");
    assert!(results.iter().all(|result| result["is_error"] == true), "{last}");
}
