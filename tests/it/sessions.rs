//! Sessions on disk: going on, copies, damage, two processes, other formats, compaction, export.

use claw_kit::{Claw, Gate, Output, Reply, Route, Sandbox, ScriptedProvider};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(20);

fn claw(sandbox: &Sandbox, args: &[&str]) -> Claw {
    Claw::new(CLAW, sandbox).args(args)
}

fn asks(sandbox: &Sandbox, args: &[&str]) -> Output {
    claw(sandbox, &[args, &["--output-format", "json"]].concat()).run(BOUND)
}

/// The files of all sessions.
fn files(sandbox: &Sandbox) -> Vec<PathBuf> {
    let projects = sandbox.home().join(".claw/projects");
    let folders = std::fs::read_dir(projects).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.path()).into_iter().flatten().flatten());
    let mut files: Vec<PathBuf> =
        files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|e| e == "jsonl")).collect();
    files.sort();
    files
}

fn last_texts(provider: &ScriptedProvider) -> String {
    provider.last_request().messages().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn input(name: &str) -> Vec<u8> {
    match name {
        "orphan" => [
            r#"{"created_at_ms":1,"session_id":"session-1-0","type":"session_meta","updated_at_ms":1,"version":1}"#,
            r#"{"type":"message","message":{"role":"user","blocks":[{"type":"text","text":"FIRST-USER"}]}}"#,
            r#"{"type":"message","message":{"role":"assistant","blocks":[{"type":"text","text":"two calls"},{"type":"tool_use","id":"toolu_1","name":"bash","input":"{\"command\":\"touch MUST_NOT_EXIST\"}"},{"type":"tool_use","id":"toolu_2","name":"bash","input":"{\"command\":\"touch MUST_NOT_EXIST\"}"}]}}"#,
            r#"{"type":"message","message":{"role":"tool","blocks":[{"type":"tool_result","tool_use_id":"toolu_1","tool_name":"bash","output":"hi","is_error":false}]}}"#,
            "",
        ]
        .join("\n")
        .into_bytes(),
        other => panic!("{other}"),
    }
}

#[test]
fn a_session_goes_on_by_id_beginning_latest_and_continue() {
    let provider = ScriptedProvider::always(Reply::text("ANSWER"));
    let sandbox = Sandbox::anthropic(&provider);
    let first = asks(&sandbox, &["-p", "FIRST-WORD"]).expect_code(0).json();
    let id = first["session_id"].as_str().unwrap().to_owned();
    for args in [
        vec!["--resume", id.as_str(), "-p", "again"],
        vec!["--resume", &id[..13], "-p", "again"],
        vec!["--resume", "latest", "-p", "again"],
        vec!["--continue", "-p", "again"],
        vec!["-c", "-p", "again"],
    ] {
        let result = asks(&sandbox, &args).expect_code(0).json();
        assert_eq!(result["session_id"], first["session_id"], "{args:?}");
        let texts = last_texts(&provider);
        assert!(texts.contains("FIRST-WORD") && texts.contains("ANSWER"), "{args:?}: {texts}");
    }
    assert_eq!(files(&sandbox).len(), 1);
    let unknown = asks(&sandbox, &["--resume", "ffffffff", "-p", "x"]).expect_code(2);
    assert!(unknown.stderr.contains("no session"), "{unknown}");
}

#[test]
fn a_copy_goes_on_by_itself() {
    let provider = ScriptedProvider::always(Reply::text("ANSWER"));
    let sandbox = Sandbox::anthropic(&provider);
    let first = asks(&sandbox, &["-p", "FIRST-WORD"]).expect_code(0).json();
    let copy = asks(&sandbox, &["--continue", "--fork-session", "-p", "IN-THE-COPY"]).expect_code(0).json();
    assert_ne!(copy["session_id"], first["session_id"]);
    assert!(last_texts(&provider).contains("FIRST-WORD"));
    let id = first["session_id"].as_str().unwrap();
    asks(&sandbox, &["--resume", id, "-p", "more"]).expect_code(0);
    assert!(!last_texts(&provider).contains("IN-THE-COPY"));
}

#[test]
fn what_was_spent_before_counts_after_it_goes_on() {
    let provider = ScriptedProvider::always(Reply::text("ANSWER"));
    let sandbox = Sandbox::anthropic(&provider);
    let first = asks(&sandbox, &["-p", "one"]).expect_code(0).json();
    let second = asks(&sandbox, &["--continue", "-p", "two"]).expect_code(0).json();
    let of = |result: &Value, key: &str| result[key]["input_tokens"].as_u64().unwrap();
    assert_eq!(of(&second, "session_usage"), of(&first, "usage") + of(&second, "usage"));
    let cost = claw(&sandbox, &["--resume", "latest", "/cost", "--output-format", "json"]).run(BOUND);
    let cost = cost.expect_code(0).json();
    assert_eq!(cost["usage"]["input_tokens"], second["session_usage"]["input_tokens"]);
    assert_eq!(cost["total_cost_usd"], second["total_cost_usd"]);
}

#[test]
fn folders_and_files_are_private() {
    let provider = ScriptedProvider::new([
        Route::reply(Reply::tool("t1", "write_file", json!({"path": "a.txt", "content": "new"}))).times(1),
        Route::reply(Reply::text("done")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("a.txt", "old");
    claw(&sandbox, &["-p", "x"]).run(BOUND).expect_code(0);
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    for file in files(&sandbox) {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
        assert_eq!(mode(file.parent().unwrap()), 0o700);
        assert_eq!(mode(&file.with_extension("lock")), 0o600);
    }
    assert!(sandbox.files_with_canary().is_empty());
}

#[test]
fn an_orphaned_call_is_answered_once_and_never_run_again() {
    let provider = ScriptedProvider::always(Reply::text("went on"));
    let sandbox = Sandbox::anthropic(&provider);
    let path = sandbox.write("old.jsonl", input("orphan"));
    let path = path.to_str().unwrap();
    let first = asks(&sandbox, &["--resume", path, "-p", "go on"]).expect_code(0);
    assert!(first.stderr.contains("had no result"), "{first}");
    let texts = last_texts(&provider);
    assert!(texts.contains("interrupted: state unknown") && texts.contains("FIRST-USER"), "{texts}");
    assert!(!sandbox.has("MUST_NOT_EXIST"));
    let second = asks(&sandbox, &["--resume", path, "-p", "and again"]).expect_code(0);
    assert_eq!(first.json()["session_id"], second.json()["session_id"]);
    assert!(!second.stderr.contains("had no result"), "{second}");
    assert!(last_texts(&provider).contains("go on"));
}

#[test]
fn a_torn_end_a_nul_block_and_a_bad_line_cost_that_record_alone() {
    for damage in ["torn", "nul", "bad"] {
        let provider = ScriptedProvider::always(Reply::text("ANSWER-777"));
        let sandbox = Sandbox::anthropic(&provider);
        asks(&sandbox, &["-p", "FIRST-USER"]).expect_code(0);
        asks(&sandbox, &["-c", "-p", "SECOND-USER"]).expect_code(0);
        let file = files(&sandbox).remove(0);
        let text = std::fs::read_to_string(&file).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        let nul = "\0".repeat(417);
        match damage {
            "nul" => lines.insert(3, &nul),
            "bad" => lines.insert(3, r#"{"v":1,"type":"message","turn":1,"mess"#),
            _ => {}
        }
        let mut bytes = lines.join("\n").into_bytes();
        bytes.push(b'\n');
        if damage == "torn" {
            bytes.extend_from_slice(br#"{"v":1,"type":"message","turn":9,"mess"#);
        }
        claw_kit::replace_file(&file, bytes);
        let third = asks(&sandbox, &["-c", "-p", "THIRD-USER"]).expect_code(0);
        let texts = last_texts(&provider);
        for words in ["FIRST-USER", "SECOND-USER", "ANSWER-777", "THIRD-USER"] {
            assert!(texts.contains(words), "{damage}: {words} is missing in {texts}");
        }
        assert!(third.stderr.contains("offset"), "{damage}: {third}");
        let fourth = asks(&sandbox, &["-c", "-p", "FOURTH"]).expect_code(0);
        assert!(!fourth.stderr.contains("offset"), "{damage} is told once: {fourth}");
        assert!(last_texts(&provider).contains("THIRD-USER"));
    }
}

#[test]
fn a_second_process_is_refused_at_once_and_a_killed_one_leaves_nothing_behind() {
    let gate = Gate::closed();
    let provider = ScriptedProvider::new([
        Route::reply(Reply::text("first")).times(1),
        Route::reply(Reply::text("slow").gate_at(0, &gate)).times(1),
        Route::reply(Reply::text("later")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    asks(&sandbox, &["-p", "one"]).expect_code(0);
    let holder = claw(&sandbox, &["-c", "-p", "two"]).spawn();
    provider.wait_for_requests(2, BOUND);
    let refused = claw(&sandbox, &["-c", "-p", "three"]).run(BOUND).expect_code(6);
    assert!(refused.stderr.contains(&holder.pid().to_string()), "{refused}");
    assert!(refused.took < Duration::from_secs(2));
    assert_eq!(provider.count(), 2);
    holder.kill9();
    gate.open();
    asks(&sandbox, &["-c", "-p", "four"]).expect_code(0);
    for line in std::fs::read_to_string(files(&sandbox).remove(0)).unwrap().lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
}

#[test]
fn the_older_single_file_is_read_and_thinking_without_a_signature_is_never_sent() {
    let provider = ScriptedProvider::always(Reply::text("ok"));
    let sandbox = Sandbox::anthropic(&provider);
    let session = json!({"version": 1, "messages": [
        {"role": "user", "blocks": [{"type": "text", "text": "OLD-USER"}]},
        {"role": "assistant", "blocks": [
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "text", "text": "OLD-ANSWER"}], "usage": {"input_tokens": 5, "output_tokens": 7}},
    ]});
    sandbox.write(".claude/sessions/session-1700000000000.json", session.to_string());
    let result = asks(&sandbox, &["--resume", "session-1700000000000", "-p", "go on"]).expect_code(0).json();
    let texts = last_texts(&provider);
    assert!(
        texts.contains("OLD-USER") && texts.contains("OLD-ANSWER") && !texts.contains("thinking"),
        "{texts}"
    );
    assert!(result["session_usage"]["output_tokens"].as_u64().unwrap() > 7);
    sandbox.write("empty.json", r#"{"version":1,"messages":[]}"#);
    asks(&sandbox, &["--resume", "empty.json", "-p", "go"]).expect_code(0);
    let none = asks(&sandbox, &["--resume", "package.json", "-p", "go"]).expect_code(2);
    assert!(none.stderr.contains("package.json"), "{none}");
}

#[test]
fn sessions_are_listed_searched_named_exported_and_deleted() {
    let provider = ScriptedProvider::new([
        Route::reply(Reply::text("I look.").with_tool("t1", "glob_search", json!({"pattern": "*"}))).times(1),
        Route::reply(Reply::text("the NEEDLE is here")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    asks(&sandbox, &["-p", "where is it?"]).expect_code(0);
    claw(&sandbox, &["resume", "latest", "--rename", "hunt"]).run(BOUND).expect_code(0);
    let list = claw(&sandbox, &["resume", "--output-format", "json"]).run(BOUND).expect_code(0).json();
    assert_eq!((&list[0]["name"], &list[0]["title"]), (&json!("hunt"), &json!("where is it?")));
    let hits = claw(&sandbox, &["resume", "--search", "needle"]).run(BOUND).expect_code(0);
    assert!(hits.stdout.contains("NEEDLE"), "{hits}");
    let markdown = claw(&sandbox, &["export", "hunt"]).run(BOUND).expect_code(0).stdout;
    for words in ["# hunt", "## You", "where is it?", "**glob_search**", "NEEDLE"] {
        assert!(markdown.contains(words), "{words} is missing in\n{markdown}");
    }
    claw(&sandbox, &["export", "hunt", "out.json"]).run(BOUND).expect_code(0);
    let exported: Value = serde_json::from_str(&sandbox.read("out.json")).unwrap();
    assert_eq!(exported["messages"].as_array().map(Vec::len), Some(4));
    claw(&sandbox, &["resume", "hunt", "--delete"]).run(BOUND).expect_code(0);
    assert!(files(&sandbox).is_empty());
}

#[test]
fn status_and_cost_of_a_saved_session_need_no_model() {
    let provider = ScriptedProvider::always(Reply::text("ok"));
    let sandbox = Sandbox::anthropic(&provider);
    asks(&sandbox, &["-p", "x"]).expect_code(0);
    let said = claw(&sandbox, &["--resume", "latest", "/status", "/cost"]).run(BOUND).expect_code(0);
    assert!(said.stdout.contains("session id") && said.stdout.contains("input tokens"), "{said}");
    assert_eq!(provider.count(), 1);
}

#[test]
fn a_request_that_is_too_long_is_compacted_and_sent_again() {
    let overflow = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 250000 tokens > 200000 maximum"}});
    let provider = ScriptedProvider::new([
        Route::reply(Reply::text("an answer ".repeat(300))).times(4),
        Route::reply(Reply::error(400, &overflow)).times(1),
        Route::reply(Reply::text("- POINT-ONE")).times(1),
        Route::reply(Reply::text("FITS")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    for n in 0..4 {
        asks(&sandbox, &[if n == 0 { "-p" } else { "-cp" }, &format!("question {n}")]).expect_code(0);
    }
    let output = asks(&sandbox, &["-c", "-p", "LAST-QUESTION"]).expect_code(0);
    let result = output.json();
    assert_eq!((&result["result"], &result["compactions"]), (&json!("FITS"), &json!(1)), "{output}");
    assert!(output.stderr.contains("compacted"), "{output}");
    let texts = last_texts(&provider);
    assert!(
        texts.contains("POINT-ONE") && texts.contains("LAST-QUESTION") && !texts.contains("question 0\""),
        "{texts}"
    );
    asks(&sandbox, &["-c", "-p", "and on"]).expect_code(0);
    let texts = last_texts(&provider);
    assert!(texts.contains("POINT-ONE") && texts.contains("FITS"), "the summary is kept: {texts}");
}

#[test]
fn a_saved_session_is_compacted_by_hand_and_without_a_model_too() {
    let fault = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}});
    let provider = ScriptedProvider::new([
        Route::reply(Reply::text("an answer ".repeat(300))).times(4),
        Route::reply(Reply::error(400, &fault)).times(1),
        Route::reply(Reply::text("after")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    for n in 0..4 {
        asks(&sandbox, &[if n == 0 { "-p" } else { "-cp" }, &format!("question {n}")]).expect_code(0);
    }
    let said = claw(&sandbox, &["--resume", "latest", "/compact", "--output-format", "json"]).run(BOUND);
    let result = said.expect_code(0).json();
    assert!(result["removed_messages"].as_u64() >= Some(2), "{result}");
    assert!(result["post_tokens"].as_u64() < result["pre_tokens"].as_u64(), "{result}");
    assert!(result["without_model"].is_string(), "{result}");
    asks(&sandbox, &["-c", "-p", "go on"]).expect_code(0);
    let texts = last_texts(&provider);
    assert!(texts.contains("Newly compacted context") && texts.contains("question 0"), "{texts}");
}

#[test]
fn questions_stream_in_and_each_has_its_answer() {
    let provider =
        ScriptedProvider::new([Route::reply(Reply::text("ONE")).times(1), Route::reply(Reply::text("TWO"))]);
    let sandbox = Sandbox::anthropic(&provider);
    let message =
        |text: &str| json!({"type": "user", "message": {"role": "user", "content": text}}).to_string();
    let lines = format!("{}\n{}\n", message("first"), message("second"));
    let args = ["-p", "--input-format", "stream-json", "--output-format", "stream-json"];
    let output = claw(&sandbox, &args).stdin(lines.clone()).run(BOUND).expect_code(0);
    let results: Vec<Value> =
        output.json_lines().into_iter().filter(|line| line["type"] == "result").collect();
    let texts: Vec<&Value> = results.iter().map(|result| &result["result"]).collect();
    assert_eq!(texts, [&json!("ONE"), &json!("TWO")], "{output}");
    assert_eq!(files(&sandbox).len(), 1);
    let bad = claw(&sandbox, &args).stdin("{\"type\":\"usr\"}\n").run(BOUND).expect_code(2);
    assert!(bad.stderr.contains("line 1"), "{bad}");
}

#[test]
fn the_money_of_a_session_is_not_overdrawn() {
    let provider = ScriptedProvider::always(Reply::tool("t%N%", "glob_search", json!({"pattern": "*"})));
    let sandbox = Sandbox::anthropic(&provider);
    let output = asks(&sandbox, &["-p", "x", "--max-usd", "0.000001"]).expect_code(3);
    assert_eq!(output.json()["subtype"], "error_max_budget_usd", "{output}");
    assert_eq!(provider.count(), 0);
}

#[test]
fn the_system_prompt_is_shown_with_memory_and_the_wanted_date() {
    let sandbox = Sandbox::new();
    sandbox.write("CLAUDE.md", "USE-TABS\n@docs/more.md\n");
    sandbox.write("docs/more.md", "IMPORTED-RULE\n");
    sandbox.write("CLAUDE.local.md", "LOCAL-RULE\n");
    sandbox.write(".claude/rules/a.md", "RULE-A\n");
    sandbox.write_home(".claude/CLAUDE.md", "OF-THE-USER\n");
    let output = claw(&sandbox, &["system-prompt", "--date", "2031-02-03"]).run(BOUND).expect_code(0);
    for words in ["USE-TABS", "IMPORTED-RULE", "LOCAL-RULE", "RULE-A", "OF-THE-USER", "2031-02-03"] {
        assert!(output.stdout.contains(words), "{words} is missing in\n{}", output.stdout);
    }
}

#[test]
fn an_image_that_the_question_names_is_sent_with_it() {
    let provider = ScriptedProvider::always(Reply::text("a picture"));
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("shot.png", b"\x89PNG\r\n\x1a\nrest");
    claw(&sandbox, &["-p", "what is in shot.png?"]).run(BOUND).expect_code(0);
    let texts = last_texts(&provider);
    assert!(texts.contains("image/png") && texts.contains("\"type\":\"image\""), "{texts}");
}
