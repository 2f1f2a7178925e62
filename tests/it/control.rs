//! A run from another process: watched, stopped, paused, answered, talked to, and started in the background.

use claw_kit::{Claw, Gate, Output, Pty, Reply, Route, Running, Sandbox, ScriptedProvider, Wire, wait_until};
use serde_json::json;
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(30);

const ONE: &str = "schema = 1\n[workflow]\nname = \"one\"\n[node.a]\nprompt = \"ASK\"\n";

const ASKS: &str = r#"
schema = 1
[workflow]
name = "asks"
result = "approve"
[node.plan]
prompt = "PLAN"
[node.approve]
kind = "gate"
needs = ["plan"]
message = "Go on with it?"
show = ["plan"]
"#;

fn claw(sandbox: &Sandbox, args: &[&str]) -> Output {
    Claw::new(CLAW, sandbox).args(args).run(BOUND)
}

/// A run of one agent whose answer is held back.
fn at_work(gate: &Gate) -> (ScriptedProvider, Sandbox, Running) {
    let provider = ScriptedProvider::always(Reply::text("seen").gate(gate));
    let sandbox = Sandbox::new().with_provider(&provider, Wire::Anthropic);
    sandbox.write("wf.toml", ONE);
    let running = Claw::new(CLAW, &sandbox).args(["run", "wf.toml"]).spawn();
    provider.wait_for_in_flight(1, BOUND);
    (provider, sandbox, running)
}

/// A run in the background that waits at its gate.
fn asking() -> (ScriptedProvider, Sandbox) {
    let provider = ScriptedProvider::always(Reply::text("the plan"));
    let sandbox = Sandbox::new().with_provider(&provider, Wire::Anthropic);
    sandbox.write("wf.toml", ASKS);
    claw(&sandbox, &["run", "wf.toml", "--detach"]).expect_code(0);
    wait_until("the question", BOUND, || !sandbox.newest_run().events("asked").is_empty());
    (provider, sandbox)
}

fn ended(sandbox: &Sandbox) -> serde_json::Value {
    wait_until("the end", BOUND, || !sandbox.newest_run().events("run_ended").is_empty());
    sandbox.newest_run().events("run_ended").pop().unwrap_or_default()
}

fn sockets(sandbox: &Sandbox) -> usize {
    let folder = sandbox.project().with_file_name("run").join("claw");
    folder.read_dir().map_or(0, |entries| entries.count())
}

#[test]
fn a_run_is_stopped_from_another_process_and_can_be_gone_on_with_at_once() {
    let gate = Gate::closed();
    let (_provider, sandbox, running) = at_work(&gate);
    assert_eq!(sockets(&sandbox), 1);
    let stopped = claw(&sandbox, &["runs", "stop", "latest"]).expect_code(0);
    assert!(stopped.stdout.contains("is stopped"), "{stopped}");
    gate.open();
    claw(&sandbox, &["run", "wf.toml", "--resume"]).expect_code(0);
    running.wait(BOUND).expect_code(5);
    assert_eq!(sockets(&sandbox), 0);
}

#[test]
fn a_run_is_paused_from_another_process() {
    let gate = Gate::closed();
    let (_provider, sandbox, running) = at_work(&gate);
    claw(&sandbox, &["runs", "pause", "latest"]).expect_code(0);
    let output = running.wait(BOUND).expect_code(4);
    assert!(output.stderr.contains("claw run wf.toml --resume="), "{output}");
    gate.open();
    claw(&sandbox, &["run", "wf.toml", "--resume"]).expect_code(0);
}

#[test]
fn without_an_owner_orders_say_so_and_what_is_there_is_shown() {
    let provider = ScriptedProvider::always(Reply::text("seen"));
    let sandbox = Sandbox::new().with_provider(&provider, Wire::Anthropic);
    sandbox.write("wf.toml", ONE);
    claw(&sandbox, &["run", "wf.toml"]).expect_code(0);
    for args in [&["stop", "latest"][..], &["pause", "latest"], &["message", "latest", "a", "hello"]] {
        let output = claw(&sandbox, &[&["runs"], args].concat()).expect_code(1);
        assert!(
            output.stderr.contains("no process works on run") && output.stderr.contains("hint:"),
            "{output}"
        );
    }
    let output = claw(&sandbox, &["runs", "answer", "latest", "a", "yes"]).expect_code(1);
    assert!(output.stderr.contains("a does not wait for an answer"), "{output}");
    let shown = claw(&sandbox, &["runs", "watch", "latest"]).expect_code(0);
    assert!(shown.stdout.contains("succeeded"), "{shown}");
    claw(&sandbox, &["runs", "watch", "zzzz"]).expect_code(2);
}

#[test]
fn a_watcher_sees_the_run_to_its_end_and_ends_with_its_code() {
    let gate = Gate::closed();
    let (_provider, sandbox, running) = at_work(&gate);
    let plain = Claw::new(CLAW, &sandbox).args(["runs", "watch", "latest"]).spawn();
    plain.wait_for_stderr("1 running", BOUND);
    let lines = ["runs", "watch", "latest", "--output-format", "stream-json"];
    let lines = Claw::new(CLAW, &sandbox).args(lines).spawn();
    lines.wait_for_stdout("step.snapshot", BOUND);
    let terminal = Pty::new(CLAW, &sandbox).args(["runs", "watch", "latest"]).size(12, 40).start();
    terminal.wait_for_screen("the agent", BOUND, |screen| screen.contains("1 running"));
    gate.open();
    let plain = plain.wait(BOUND).expect_code(0);
    assert!(plain.stderr.contains("a: succeeded") && plain.stdout.contains("succeeded"), "{plain}");
    let lines = lines.wait(BOUND).expect_code(0).json_lines();
    assert_eq!((&lines[0]["type"], &lines[0]["workflow"]), (&json!("run.snapshot"), &json!("one")));
    assert_eq!(lines.last().map(|line| &line["type"]), Some(&json!("run.ended")));
    let terminal = terminal.wait(BOUND);
    assert_eq!((terminal.code, terminal.screen.cursor_hidden), (0, false), "{}", terminal.raw);
    running.wait(BOUND).expect_code(0);
}

#[test]
fn a_watcher_of_a_run_whose_process_is_killed_says_so() {
    let gate = Gate::closed();
    let (_provider, sandbox, running) = at_work(&gate);
    let watcher = Claw::new(CLAW, &sandbox).args(["runs", "watch", "latest"]).spawn();
    watcher.wait_for_stderr("1 running", BOUND);
    running.kill9();
    let output = watcher.wait(BOUND).expect_code(1);
    assert!(output.stderr.contains("is gone") && output.stdout.contains("interrupted"), "{output}");
    // What it left behind is in nobody's way.
    assert_eq!(sockets(&sandbox), 1);
    gate.open();
    claw(&sandbox, &["run", "wf.toml", "--resume"]).expect_code(0);
    assert_eq!(sockets(&sandbox), 0);
}

#[test]
fn an_agent_hears_a_message_at_its_next_step() {
    let gate = Gate::closed();
    let provider = ScriptedProvider::new([
        Route::reply(Reply::text("first").gate(&gate)).times(1),
        Route::reply(Reply::text("second")).label("heard"),
    ]);
    let sandbox = Sandbox::new().with_provider(&provider, Wire::Anthropic);
    sandbox.write("wf.toml", ONE);
    let running = Claw::new(CLAW, &sandbox).args(["run", "wf.toml"]).spawn();
    provider.wait_for_in_flight(1, BOUND);
    let refused = claw(&sandbox, &["runs", "message", "latest", "b", "hello"]).expect_code(1);
    assert!(refused.stderr.contains("no agent of b is running"), "{refused}");
    claw(&sandbox, &["runs", "message", "latest", "a", "use the cache"]).expect_code(0);
    gate.open();
    assert_eq!(running.wait(BOUND).expect_code(0).stdout, "second\n");
    let asked = &provider.requests_of("heard")[0];
    let last = asked.messages().last().map(ToString::to_string).unwrap_or_default();
    assert!(last.contains("use the cache"), "{last}");
    let run = sandbox.newest_run();
    assert_eq!(run.events("steered")[0]["data"]["text"], "use the cache");
    assert!(run.read("nodes/a.1/transcript.jsonl").contains("use the cache"));
}

#[test]
fn a_run_in_the_background_is_answered_from_outside() {
    let (_provider, sandbox) = asking();
    for (args, why) in [
        (["approve", "perhaps"], "has no choice `perhaps`"),
        (["plan", "approve"], "plan does not wait for an answer"),
    ] {
        let output = claw(&sandbox, &[&["runs", "answer", "latest"], &args[..]].concat()).expect_code(1);
        assert!(output.stderr.contains(why), "{output}");
    }
    let shown = claw(&sandbox, &["runs", "show", "latest"]).expect_code(0);
    assert!(shown.stdout.contains("approve asks: Go on with it?"), "{shown}");
    claw(&sandbox, &["runs", "answer", "latest", "approve", "approve", "--comment", "well"]).expect_code(0);
    assert_eq!(ended(&sandbox)["data"]["exit_code"], 0);
    wait_until("the result", BOUND, || {
        sandbox.newest_run().read("detached.log").contains("\"comment\": \"well\"")
    });
}

#[test]
fn an_answer_without_an_owner_counts_for_the_next_take() {
    let (provider, sandbox) = asking();
    claw(&sandbox, &["runs", "stop", "latest"]).expect_code(0);
    let answered = claw(&sandbox, &["runs", "answer", "latest", "approve", "reject"]).expect_code(0);
    assert!(answered.stdout.contains("--resume="), "{answered}");
    let again = claw(&sandbox, &["runs", "answer", "latest", "approve", "approve"]).expect_code(1);
    assert!(again.stderr.contains("does not wait"), "{again}");
    let output = claw(&sandbox, &["run", "wf.toml", "--resume"]).expect_code(0);
    assert_eq!(output.json()["choice"], "reject");
    assert_eq!(provider.count(), 1);
}

#[test]
fn what_keeps_a_run_from_starting_in_the_background_is_told_in_front() {
    let sandbox = Sandbox::new();
    sandbox.write("wf.toml", ONE);
    let output = claw(&sandbox, &["run", "wf.toml", "--detach"]).expect_code(2);
    assert!(output.stderr.contains("ANTHROPIC_API_KEY") && !sandbox.has(".claw"), "{output}");
}

#[test]
fn a_gate_is_answered_at_the_terminal() {
    for (rows, columns) in [(24, 80), (12, 40)] {
        let provider = ScriptedProvider::always(Reply::text("the plan"));
        let sandbox = Sandbox::new().with_provider(&provider, Wire::Anthropic);
        sandbox.write("wf.toml", ASKS);
        let mut terminal = Pty::new(CLAW, &sandbox).args(["run", "wf.toml"]).size(rows, columns).start();
        let screen = terminal.wait_for_text("[a] approve", BOUND);
        assert!(screen.contains("Go on with it?") && screen.contains("the plan"), "{}", screen.text());
        terminal.send("what\r");
        terminal.send("r too big\r");
        let output = terminal.wait(BOUND);
        assert_eq!((output.code, output.cooked), (0, true), "{}", output.raw);
        let answered = &sandbox.newest_run().events("answered")[0]["data"];
        assert_eq!((&answered["choice"], &answered["comment"]), (&json!("reject"), &json!("too big")));
    }
}

#[test]
fn of_two_that_go_on_with_a_run_one_does_and_the_other_names_it() {
    let gate = Gate::closed();
    let (_provider, sandbox, running) = at_work(&gate);
    running.kill9();
    for _ in 0..5 {
        let two = [0, 1].map(|_| Claw::new(CLAW, &sandbox).args(["run", "wf.toml", "--resume"]).spawn());
        wait_until("one that gives way", BOUND, || two.iter().any(|one| !one.is_running()));
        let [first, second] = two;
        let (loser, winner) = if first.is_running() { (second, first) } else { (first, second) };
        let pid = winner.pid();
        let output = loser.wait(BOUND).expect_code(6);
        assert!(output.stderr.contains(&format!("process {pid} since ")), "{output}");
        winner.kill9();
        let seq: Vec<_> = sandbox.newest_run().journal().iter().map(|r| r["seq"].as_u64()).collect();
        assert!(seq.iter().enumerate().all(|(at, seq)| *seq == Some(at as u64 + 1)), "{seq:?}");
    }
}

#[test]
fn what_is_old_is_listed_and_goes_only_where_that_is_said() {
    let provider = ScriptedProvider::always(Reply::text("seen"));
    let sandbox = Sandbox::new().with_provider(&provider, Wire::Anthropic);
    sandbox.write("wf.toml", ONE);
    claw(&sandbox, &["run", "wf.toml"]).expect_code(0);
    let id = sandbox.newest_run().id();
    assert_eq!(claw(&sandbox, &["runs", "gc"]).expect_code(0).stdout, "");
    let listed = claw(&sandbox, &["runs", "gc", "--days", "0"]).expect_code(0);
    assert!(listed.stdout.contains(&id) && listed.stderr.contains("--yes"), "{listed}");
    assert_eq!(sandbox.runs().len(), 1);
    claw(&sandbox, &["runs", "gc", "--days", "0", "--yes"]).expect_code(0);
    assert!(sandbox.runs().is_empty());
}

#[test]
fn the_graph_of_a_run_shows_how_each_node_stands_before_and_after_an_answer() {
    let (_provider, sandbox) = asking();
    for (form, marks) in [
        ("ascii", ["[plan · general-purpose · succeeded]", "[approve · gate · pending] ◄─ plan"]),
        ("mermaid", ["n_plan[\"plan · general-purpose · succeeded\"]", "n_plan --> n_approve"]),
        ("dot", ["\"plan\" [label=\"plan · general-purpose · succeeded\"]", "\"plan\" -> \"approve\""]),
    ] {
        let output = claw(&sandbox, &["runs", "show", "latest", "--graph", form]).expect_code(0);
        assert!(marks.iter().all(|mark| output.stdout.contains(mark)), "{output}");
    }
    claw(&sandbox, &["runs", "stop", "latest"]).expect_code(0);
    claw(&sandbox, &["runs", "answer", "latest", "approve", "approve"]).expect_code(0);
    let shown = claw(&sandbox, &["runs", "show", "latest"]).expect_code(0);
    assert!(shown.stdout.contains("all its questions are answered; go on with it: claw run"), "{shown}");
    let json =
        claw(&sandbox, &["runs", "show", "latest", "--graph", "dot", "--output-format", "json"]).json();
    assert_eq!(json["graph"]["nodes"][0], json!({"node": "plan", "steps": {"succeeded": 1}}));
    assert!(json["graph"]["text"].as_str().is_some_and(|text| text.starts_with("digraph")));
}
