//! A stop in the middle: nothing lives on, every file is final, and the run goes on later.

use claw_kit::{
    Claw, Gate, Reply, Route, Running, Sandbox, ScriptedProvider, Signal, processes_with, wait_until,
};
use serde_json::json;
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(20);
/// A stop is over within this, plus what a loaded machine takes.
const SOON: Duration = Duration::from_secs(4);

fn all_final(sandbox: &Sandbox) {
    let run = sandbox.newest_run();
    for (name, status) in run.statuses() {
        assert!(
            ["completed", "failed", "cancelled", "interrupted"].contains(&status.as_str()),
            "{name}: {status}"
        );
    }
    let last = run.journal().pop().unwrap_or_default();
    assert_eq!(last["event"], "run_ended", "{last}");
}

/// The command that the output offers, run as it stands.
fn offered(sandbox: &Sandbox, stderr: &str) -> Claw {
    let line = stderr.lines().find_map(|line| line.split_once("resume: claw ")).map(|(_, rest)| rest.trim());
    let line = line.unwrap_or_else(|| panic!("no command to resume in:\n{stderr}"));
    Claw::new(CLAW, sandbox).args(line.split(' '))
}

fn four_sleeps() -> ScriptedProvider {
    let sleeps = (1..=4).fold(Reply::empty(), |reply, n| {
        reply.with_tool(&format!("call_{n}"), "bash", json!({"command": format!("sleep 742{n}")}))
    });
    ScriptedProvider::new([
        Route::reply(sleeps).lacks("tool_result"),
        Route::reply(Reply::text("after the stop")).label("after"),
    ])
}

#[test]
fn one_interrupt_ends_four_tools_and_the_next_request_has_four_results_in_order() {
    let provider = four_sleeps();
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", "schema = 1\n[workflow]\nname = \"one\"\n[node.a]\nprompt = \"ASK\"\n");
    let running = Claw::new(CLAW, &sandbox).args(["run", "wf.toml"]).spawn();
    wait_until("four commands", BOUND, || (1..=4).all(|n| processes_with(&format!("sleep 742{n}")) > 0));
    running.signal(Signal::INT);
    let output = running.wait(SOON).expect_code(130);
    assert!(!output.left_behind, "{output}");
    assert_eq!(processes_with("sleep 742"), 0, "a command lives on");
    assert_eq!(provider.count(), 1, "a request left after the stop");
    all_final(&sandbox);
    assert_eq!(sandbox.newest_run().manifest("a")["status"], "cancelled");
    let again = offered(&sandbox, &output.stderr).run(BOUND).expect_code(0);
    assert_eq!(again.stdout, "after the stop\n");
    let request = &provider.requests_of("after")[0];
    let results: Vec<_> = request
        .messages()
        .iter()
        .flat_map(|message| message["content"].as_array().cloned().unwrap_or_default())
        .filter(|block| block["type"] == "tool_result")
        .collect();
    let ids: Vec<_> =
        results.iter().map(|result| result["tool_use_id"].as_str().unwrap_or_default()).collect();
    assert_eq!(ids, ["call_1", "call_2", "call_3", "call_4"]);
    for result in &results {
        assert_eq!(result["is_error"], true, "{result}");
        assert!(
            result.to_string().contains("cancelled") || result.to_string().contains("interrupted"),
            "{result}"
        );
    }
}

#[test]
fn print_mode_ends_its_tools_too() {
    let sleeps = Reply::tool("t1", "bash", json!({"command": "sleep 7431 & sleep 7431"}));
    let provider = ScriptedProvider::always(sleeps);
    let sandbox = Sandbox::anthropic(&provider);
    let running = Claw::new(CLAW, &sandbox).args(["-p", "sleep"]).spawn();
    wait_until("both commands", BOUND, || processes_with("sleep 7431") >= 2);
    running.signal(Signal::INT);
    running.wait(SOON).expect_code(130);
    assert_eq!(processes_with("sleep 7431"), 0);
    assert_eq!(provider.count(), 1);
}

const STALLED: &str = r#"
schema = 1
[workflow]
name = "stalled"
[node.one]
kind = "command"
run = "echo one >> one.log; echo one"
[node.two]
needs = ["one"]
prompt = "NODE-TWO {{ one }}"
[node.beside]
kind = "command"
run = "sleep NUMBER"
on_crash = "retry"
[node.three]
needs = ["two"]
prompt = "NODE-THREE {{ two }}"
"#;

fn stalled(provider: &ScriptedProvider, number: &str) -> Sandbox {
    let sandbox = Sandbox::anthropic(provider);
    sandbox.write("wf.toml", STALLED.replace("sleep NUMBER", &format!("test -e go || sleep {number}")));
    sandbox
}

fn gated() -> (ScriptedProvider, Gate) {
    let gate = Gate::closed();
    let provider = ScriptedProvider::new([
        Route::reply(Reply::text("two").gate(&gate)).contains("NODE-TWO"),
        Route::reply(Reply::text("three")).contains("NODE-THREE"),
    ]);
    (provider, gate)
}

fn stop_and_go_on(number: &str, start: impl Fn(&Sandbox) -> Running, stop: impl Fn(&Running), code: i32) {
    let (provider, gate) = gated();
    let sandbox = stalled(&provider, number);
    let running = start(&sandbox);
    gate.wait_for_waiting(1, BOUND);
    wait_until("the command", BOUND, || processes_with(&format!("sleep {number}")) > 0);
    stop(&running);
    let output = running.wait(SOON).expect_code(code);
    assert_eq!(processes_with(&format!("sleep {number}")), 0);
    assert!(!output.left_behind && !output.stderr.contains("panicked"), "{output}");
    all_final(&sandbox);
    assert_eq!(output.stderr.matches("resume: claw ").count(), 1, "{output}");
    gate.open();
    sandbox.write("go", "");
    offered(&sandbox, &output.stderr).run(BOUND).expect_code(0);
    assert_eq!(sandbox.read("one.log"), "one\n");
    assert_eq!(provider.requests_with("NODE-THREE").len(), 1);
}

fn plain(sandbox: &Sandbox) -> Running {
    Claw::new(CLAW, sandbox).args(["run", "wf.toml"]).spawn()
}

#[test]
fn a_stop_by_sigterm_leaves_final_files_and_a_way_to_go_on() {
    stop_and_go_on("7441", plain, |running| running.signal(Signal::TERM), 143);
}

#[test]
fn two_interrupts_at_once_do_as_well() {
    let twice = |running: &Running| {
        running.signal(Signal::INT);
        running.signal(Signal::INT);
    };
    stop_and_go_on("7442", plain, twice, 130);
}

#[test]
fn a_hang_up_does_as_well() {
    stop_and_go_on("7443", plain, |running| running.signal(Signal::HUP), 129);
}

#[test]
fn with_standard_input_closed_it_is_the_same() {
    let start = |sandbox: &Sandbox| {
        let script = format!("exec {CLAW} run wf.toml <&-");
        Claw::new("/bin/sh", sandbox).args(["-c", &script]).spawn()
    };
    stop_and_go_on("7444", start, |running| running.signal(Signal::TERM), 143);
}

#[test]
fn a_stop_while_many_agents_start_and_end_leaves_whole_manifests() {
    let provider = ScriptedProvider::always(Reply::text("seen"));
    for count in [3, 17, 40] {
        let sandbox = Sandbox::anthropic(&provider);
        sandbox.write(
            "wf.toml",
            "schema = 1\n[workflow]\nname = \"many\"\n[node.look]\nagent = \"Explore\"\nprompt = \"{{ item }}\"\neach = { range = 150, key = \"{{ item }}\" }\n",
        );
        let asked = provider.count();
        let running = plain(&sandbox);
        provider.wait_for_requests(asked + count, BOUND);
        running.signal(Signal::TERM);
        running.wait(SOON).expect_code(143);
        all_final(&sandbox);
        let output = Claw::new(CLAW, &sandbox).args(["run", "wf.toml", "--resume"]).run(BOUND).expect_code(0);
        assert_eq!(output.json().as_array().map(Vec::len), Some(150));
    }
}

#[test]
fn a_command_that_ignores_the_request_to_end_is_killed() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "wf.toml",
        "schema = 1\n[workflow]\nname = \"deaf\"\n[node.a]\nkind = \"command\"\nrun = \"trap '' TERM INT HUP; touch up; while :; do sleep 7.451; done\"\n",
    );
    let running = plain(&sandbox);
    wait_until("the command", BOUND, || sandbox.has("up"));
    running.signal(Signal::INT);
    running.wait(SOON).expect_code(130);
    assert_eq!(processes_with("sleep 7.451"), 0);
    all_final(&sandbox);
}
