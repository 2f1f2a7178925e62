//! Hooks, seen from outside: what they see, what they stop, and what is left of them.

use claw_kit::{
    Claw, Gate, Output, Reply, Request, Route, Sandbox, ScriptedProvider, Signal, processes_with, wait_until,
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(20);

fn with_hooks(provider: &ScriptedProvider, hooks: &Value) -> Sandbox {
    let sandbox = Sandbox::anthropic(provider);
    sandbox.write_home(".claw/settings.json", json!({ "hooks": hooks }).to_string());
    sandbox
}

fn print(sandbox: &Sandbox, more: &[&str]) -> Output {
    Claw::new(CLAW, sandbox).args(["-p", "GO", "--output-format", "json"]).args(more).run(BOUND)
}

fn calls(tool: &str, input: Value) -> ScriptedProvider {
    ScriptedProvider::new([
        Route::reply(Reply::tool("t1", tool, input)).times(1),
        Route::reply(Reply::text("done")),
    ])
}

/// The text of the last result that the model was given.
fn result(provider: &ScriptedProvider) -> (String, bool) {
    let request = provider.last_request();
    let mut blocks = request.messages().iter().filter_map(|message| message["content"].as_array()).flatten();
    let last = blocks.rfind(|block| block["type"] == "tool_result").cloned().unwrap_or_default();
    let text = match &last["content"] {
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        other => other.as_str().unwrap_or_default().to_owned(),
    };
    (text, last["is_error"] == true)
}

fn command(line: &str) -> Value {
    json!([{"matcher": "*", "hooks": [{"type": "command", "command": line}]}])
}

const GUARD: &str = r#"input=$(cat); printf '%s\n' "$input" >> "$HOME/hooks.log"; case "$input" in *marker*) echo "no markers" >&2; exit 2;; esac"#;

#[test]
fn a_denial_holds_for_the_lead_a_node_a_child_and_a_grandchild() {
    let marker = |request: &Request| {
        if request.text.contains("tool_result") {
            None
        } else {
            Some(Reply::tool("m", "bash", json!({"command": "echo marker; touch MUST_NOT_EXIST"})))
        }
    };
    let provider = ScriptedProvider::new([Route::answer(move |request| {
        let task = request.messages().first().map(Value::to_string).unwrap_or_default();
        let child = |name: &str| {
            let input =
                json!({"description": "d", "prompt": format!("{name} look"), "subagent_type": "nest"});
            Reply::tool("m", "bash", json!({"command": "echo marker; touch MUST_NOT_EXIST"}))
                .with_tool("c", "agent", input)
        };
        let is_first = !request.text.contains("tool_result");
        match () {
            () if task.contains("NODE-GO") && is_first => child("KID"),
            () if task.contains("KID look") && is_first => child("LAST"),
            () => marker(request).unwrap_or_else(|| Reply::text("tried")),
        }
    })]);
    let sandbox = with_hooks(&provider, &json!({"PreToolUse": command(GUARD)}));
    print(&sandbox, &[]).expect_code(0);
    sandbox.write("wf.toml", "schema = 1\n[workflow]\nname = \"w\"\n[limits]\ndepth = 4\n[node.lead]\nspawn = true\nprompt = \"NODE-GO\"\n[agents.nest]\ndescription = \"d\"\nprompt = \"p\"\n");
    Claw::new(CLAW, &sandbox).args(["run", "wf.toml"]).run(BOUND).expect_code(0);
    let log = std::fs::read_to_string(sandbox.home().join("hooks.log")).unwrap();
    let seen: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let marked: Vec<&Value> =
        seen.iter().filter(|one| one["tool_input_json"].as_str().unwrap().contains("echo marker")).collect();
    assert_eq!(marked.len(), 4, "{log}");
    let mut agents: Vec<&str> = marked.iter().filter_map(|one| one["agent_id"].as_str()).collect();
    agents.sort_unstable();
    agents.dedup();
    assert_eq!(agents.len(), 4, "{log}");
    assert!(!sandbox.has("MUST_NOT_EXIST"));
    for request in provider.requests_with("tool_result") {
        assert!(request.text.contains("no markers"), "{}", request.text);
    }
}

#[test]
fn a_denied_agent_starts_nothing_and_the_parent_hears_why() {
    let input = json!({"description": "d", "prompt": "KID look", "subagent_type": "Explore"});
    let provider = calls("agent", input);
    let hook =
        r#"grep -q '"subagent_type":"Explore"' && { echo '{"decision":"block","reason":"no explorers"}'; }"#;
    let sandbox = with_hooks(
        &provider,
        &json!({"PreToolUse": [{"matcher": "Task|Agent", "hooks": [{"type": "command", "command": hook}]}]}),
    );
    sandbox.write(
        "wf.toml",
        "schema = 1\n[workflow]\nname = \"w\"\n[node.lead]\nspawn = true\nprompt = \"NODE-GO\"\n",
    );
    Claw::new(CLAW, &sandbox).args(["run", "wf.toml"]).run(BOUND).expect_code(0);
    assert_eq!(result(&provider), ("no explorers".to_owned(), true));
    assert_eq!(provider.count(), 2);
    assert_eq!(sandbox.newest_run().statuses().len(), 1);
}

#[test]
fn an_answer_that_nobody_understands_denies_and_names_the_hook() {
    let cases: [(&str, &str); 8] = [
        (
            "✅ shell ready\\n{\"hookSpecificOutput\":{\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"R-A\"}}\\n",
            "R-A",
        ),
        ("{\"decision\":\"block\",\"reason\":\"R-B one\\ntwo\"}", "hook output invalid"),
        ("\\357\\273\\277{\"decision\":\"block\",\"reason\":\"R-C\"}", "R-C"),
        ("{\"decision\":\"block\",\"reason\":\"R-D \\377\\376\"}", "hook output invalid"),
        (
            "{\"hookSpecificOutput\":{\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"R-E",
            "hook output invalid",
        ),
        ("{\"hookSpecificOutput\":{\"permissionDecision\":\"denied\"}}", "hook output invalid"),
        ("{\"systemMessage\":\"note\"}\\n{\"decision\":\"block\",\"reason\":\"R-G\"}\\n", "R-G"),
        ("{\"session_id\":\"s\",\"tool_name\":\"bash\"}", ""),
    ];
    for (at, (out, wanted)) in cases.into_iter().enumerate() {
        let provider = calls("bash", json!({"command": "touch MAY_EXIST; echo RAN"}));
        let sandbox = with_hooks(&provider, &json!({"PreToolUse": ["guard.sh"]}));
        sandbox.write("guard.sh", format!("printf '{out}'\n"));
        let output = print(&sandbox, &[]).expect_code(0);
        let (text, is_error) = result(&provider);
        if wanted.is_empty() {
            assert!(sandbox.has("MAY_EXIST") && !is_error, "{text}");
            assert!(output.stderr.contains("guard.sh"), "{output}");
            continue;
        }
        assert!(is_error && text.contains(wanted) && !text.contains("RAN"), "{at}: {text}");
        assert!(!wanted.starts_with("hook") || text.contains("guard.sh"), "{at}: {text}");
        assert!(!sandbox.has("MAY_EXIST"), "{at}");
    }
}

#[test]
fn a_rewritten_input_is_judged_again_and_feedback_follows_the_result() {
    let rewrite = |to: &str| json!({"hookSpecificOutput": {"updatedInput": {"path": to, "content": "new"}, "additionalContext": "moved"}});
    for (to, is_error) in
        [("inside.txt", false), ("/etc/claw-outside.txt", true), (".claw/settings.json", true)]
    {
        let provider = calls("write_file", json!({"path": "typed.txt", "content": "old"}));
        let line = format!("echo '{}'", rewrite(to));
        let sandbox = with_hooks(
            &provider,
            &json!({"PreToolUse": command(&line), "PostToolUse": command("echo checked")}),
        );
        print(&sandbox, &[]).expect_code(0);
        let (text, failed) = result(&provider);
        assert_eq!(failed, is_error, "{text}");
        assert!(!sandbox.has("typed.txt") && !std::path::Path::new("/etc/claw-outside.txt").exists());
        let end = if is_error { "\n\nHook feedback:\nmoved" } else { "\n\nHook feedback:\nmoved\nchecked" };
        assert!(text.ends_with(end), "{text}");
        assert_eq!(sandbox.has("inside.txt"), !is_error);
    }
}

#[test]
fn a_post_hook_that_denies_keeps_the_output_and_failures_have_their_own_event() {
    let hooks = json!({
        "PostToolUse": command("cat >> $HOME/post.log; echo 'not clean' >&2; exit 2"),
        "PostToolUseFailure": command("cat >> $HOME/failure.log; echo seen"),
    });
    let provider = calls("bash", json!({"command": "echo WORK"}));
    let sandbox = with_hooks(&provider, &hooks);
    print(&sandbox, &[]).expect_code(0);
    let (text, is_error) = result(&provider);
    assert!(
        is_error && text.contains("WORK") && text.ends_with("\n\nHook feedback (denied):\nnot clean"),
        "{text}"
    );
    assert!(!sandbox.home().join("failure.log").exists());
    let provider = calls("read_file", json!({"path": "absent.txt"}));
    let sandbox = with_hooks(&provider, &hooks);
    print(&sandbox, &[]).expect_code(0);
    let (text, is_error) = result(&provider);
    assert!(is_error && text.ends_with("\n\nHook feedback:\nseen"), "{text}");
    let told: Value =
        serde_json::from_str(&std::fs::read_to_string(sandbox.home().join("failure.log")).unwrap()).unwrap();
    assert!(told["tool_error"].is_string() && told["tool_output"].is_null(), "{told}");
    assert!(!sandbox.home().join("post.log").exists());
}

#[test]
fn an_allow_answers_the_question_and_goes_past_no_denial() {
    let allow = command(r#"echo '{"hookSpecificOutput":{"permissionDecision":"allow"}}'"#);
    for (event, mode, runs) in [("PreToolUse", "prompt", true), ("PreToolUse", "read-only", false)] {
        let provider = calls("write_file", json!({"path": "made.txt", "content": "x"}));
        let sandbox = with_hooks(&provider, &json!({ event: allow }));
        print(&sandbox, &["--permission-mode", mode]).expect_code(0);
        assert_eq!(sandbox.has("made.txt"), runs, "{event} {mode}: {:?}", result(&provider));
    }
    let request =
        command(r#"cat >> $HOME/asked.log; echo '{"hookSpecificOutput":{"decision":{"behavior":"allow"}}}'"#);
    let provider = calls("write_file", json!({"path": "made.txt", "content": "x"}));
    let sandbox = with_hooks(&provider, &json!({"PermissionRequest": request}));
    print(&sandbox, &["--permission-mode", "prompt"]).expect_code(0);
    assert!(sandbox.has("made.txt") && sandbox.home().join("asked.log").exists());
}

#[test]
fn prompts_are_seen_added_to_and_stopped_and_an_end_can_be_refused() {
    let hooks = json!({
        "SessionStart": command("cat >> $HOME/events.log; echo 'the build is broken'"),
        "UserPromptSubmit": command("cat >> $HOME/events.log; echo 'it is Tuesday'"),
        "Stop": command(r#"input=$(cat); printf '%s\n' "$input" >> $HOME/events.log; case "$input" in *'"stop_hook_active":false'*) echo '{"decision":"block","reason":"test it first"}';; esac"#),
        "SessionEnd": command("cat >> $HOME/events.log"),
    });
    let provider = ScriptedProvider::new([
        Route::reply(Reply::text("done")).times(1),
        Route::reply(Reply::text("tested")),
    ]);
    let sandbox = with_hooks(&provider, &hooks);
    let output = print(&sandbox, &[]).expect_code(0);
    assert_eq!(output.json()["result"], "tested");
    let first = provider.requests()[0].text.clone();
    assert!(first.contains("the build is broken") && first.contains("it is Tuesday"), "{first}");
    assert!(provider.last_request().text.contains("test it first"));
    let log = std::fs::read_to_string(sandbox.home().join("events.log")).unwrap();
    let events: Vec<String> = log
        .lines()
        .filter_map(|line| {
            Some(serde_json::from_str::<Value>(line).ok()?["hook_event_name"].as_str()?.to_owned())
        })
        .collect();
    assert_eq!(events, ["SessionStart", "UserPromptSubmit", "Stop", "Stop", "SessionEnd"], "{log}");
    let sandbox =
        with_hooks(&provider, &json!({"UserPromptSubmit": command("echo 'not that word' >&2; exit 2")}));
    let asked = provider.count();
    let output = print(&sandbox, &[]).expect_code(1);
    assert!(output.stdout.contains("not that word"), "{output}");
    assert_eq!(provider.count(), asked);
}

#[test]
fn a_large_input_reaches_the_guard_whatever_it_does_with_it() {
    let big = "x".repeat(300_000);
    for (hook, runs) in [
        ("exit 0", true),
        ("echo 'no thanks' >&2; exit 2", false),
        ("wc -c | { read n; [ $n -gt 300000 ] && exit 0; exit 2; }", true),
        ("head -c 1048576 /dev/zero | tr '\\0' y", true),
    ] {
        let provider = calls("write_file", json!({"path": "big.txt", "content": big}));
        let sandbox = with_hooks(&provider, &json!({"PreToolUse": command(hook)}));
        let output = print(&sandbox, &[]).expect_code(0);
        let (text, is_error) = result(&provider);
        assert_eq!((sandbox.has("big.txt"), is_error), (runs, !runs), "{hook}: {output}");
        assert!(runs || text.contains("no thanks"), "{text}");
        assert!(!output.stderr.contains("EPIPE") && !output.stderr.contains("Broken pipe"), "{output}");
    }
}

#[test]
fn a_signal_while_a_hook_runs_ends_its_whole_group_soon() {
    let hook = "trap '' TERM INT HUP; setsid sleep 30201 & sleep 30202 & touch $HOME/ready; while :; do sleep 0.3; done";
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let provider = calls("bash", json!({"command": "touch MUST_NOT_EXIST"}));
        let sandbox = with_hooks(&provider, &json!({"PreToolUse": command(hook)}));
        let running = Claw::new(CLAW, &sandbox).args(["-p", "GO"]).spawn();
        let ready = sandbox.home().join("ready");
        wait_until("the hook runs", BOUND, || ready.exists());
        let began = Instant::now();
        running.signal(signal);
        let output = running.wait(BOUND);
        assert!(began.elapsed() < Duration::from_millis(2_600), "{:?} {output}", began.elapsed());
        assert_eq!(processes_with("sleep 30201") + processes_with("sleep 30202"), 0, "{output}");
        assert!(!sandbox.has("MUST_NOT_EXIST"));
    }
}

#[test]
fn no_hook_sees_a_key_and_one_that_fails_open_is_told() {
    let hook = "env > $HOME/env.txt; echo broken; exit 1";
    let provider = calls("bash", json!({"command": "touch MADE"}));
    let sandbox = with_hooks(&provider, &json!({"PreToolUse": command(hook)}));
    print(&sandbox, &[]).expect_code(0);
    let (text, is_error) = result(&provider);
    assert!(is_error && text.contains("status 1: broken") && !sandbox.has("MADE"), "{text}");
    let env = std::fs::read_to_string(sandbox.home().join("env.txt")).unwrap();
    assert!(!env.contains("canary") && env.contains("CLAUDE_PROJECT_DIR="), "{env}");
    let provider = calls("bash", json!({"command": "touch MADE"}));
    let sandbox = with_hooks(&provider, &json!({}));
    sandbox.write_home(
        ".claw/settings.json",
        json!({"hooksFailOpen": true, "hooks": {"PreToolUse": command(hook)}}).to_string(),
    );
    let output = print(&sandbox, &[]).expect_code(0);
    assert!(sandbox.has("MADE") && output.stderr.contains("status 1: broken"), "{output}");
}

#[test]
fn a_resumed_run_has_its_guard_again() {
    let gate = Gate::closed();
    let provider = ScriptedProvider::new([
        Route::reply(Reply::tool("t1", "bash", json!({"command": "echo marker; touch MUST_NOT_EXIST"})))
            .times(1),
        Route::reply(
            Reply::tool("t2", "bash", json!({"command": "echo marker; touch MUST_NOT_EXIST"})).gate(&gate),
        )
        .times(2),
        Route::reply(Reply::text("tried")),
    ]);
    let sandbox = with_hooks(&provider, &json!({"PreToolUse": command(GUARD)}));
    sandbox.write("wf.toml", "schema = 1\n[workflow]\nname = \"w\"\n[node.a]\nprompt = \"NODE-GO\"\n");
    let running = Claw::new(CLAW, &sandbox).args(["run", "wf.toml"]).spawn();
    gate.wait_for_waiting(1, BOUND);
    running.kill9();
    running.wait(BOUND);
    gate.open();
    Claw::new(CLAW, &sandbox).args(["run", "wf.toml", "--resume"]).run(BOUND).expect_code(0);
    let log = std::fs::read_to_string(sandbox.home().join("hooks.log")).unwrap();
    assert_eq!(log.lines().count(), 2, "{log}");
    assert!(!sandbox.has("MUST_NOT_EXIST"));
}
