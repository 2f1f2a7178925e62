//! Groups, loops, nested files, locks and final nodes, through the real program.

use claw_kit::{Claw, Gate, Reply, Request, Route, Sandbox, ScriptedProvider};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(20);

fn run(sandbox: &Sandbox, args: &[&str]) -> Claw {
    Claw::new(CLAW, sandbox).args(["run", "wf.toml"]).args(args).env("CLAW_RETRY_BASE_MS", "5")
}

fn house(provider: &ScriptedProvider, workflow: &str) -> Sandbox {
    let sandbox = Sandbox::anthropic(provider);
    sandbox.write("wf.toml", workflow);
    sandbox
}

/// The word behind `ASK-` in a request's last message.
fn asked(request: &Request) -> String {
    let text = request.text.rsplit("ASK-").next().unwrap_or_default();
    text.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '.').collect()
}

fn echo() -> Route {
    Route::answer(|request| Reply::text(format!("re {}", asked(request))))
}

const FLOW: &str = r#"
schema = 1
[workflow]
name = "flow"
result = "g.outputs | map(attribute='second') | list"
[limits]
concurrency = 2
[node.g]
kind = "group"
each = { range = 3, key = "{{ item }}" }
[node.g.body.first]
agent = "Explore"
prompt = "ASK-first{{ item }}"
[node.g.body.second]
agent = "Explore"
needs = ["first"]
prompt = "see {{ first }} ASK-second{{ item }}"
"#;

#[test]
fn one_item_passes_the_second_step_while_another_is_still_in_the_first() {
    let gate = Gate::closed();
    let held = gate.clone();
    let provider = ScriptedProvider::new([Route::answer(move |request| {
        let asked = asked(request);
        let reply = Reply::text(format!("re {asked}"));
        if asked == "first0" { reply.gate(&held) } else { reply }
    })]);
    let sandbox = house(&provider, FLOW);
    let running = run(&sandbox, &[]).spawn();
    provider.wait_for_requests(5, BOUND);
    assert_eq!(gate.waiting(), 1);
    gate.open();
    let output = running.wait(BOUND).expect_code(0);
    assert_eq!(output.json(), serde_json::json!(["re second0", "re second1", "re second2"]));
    assert!(sandbox.newest_run().statuses().contains_key("g=1/second.1"));
    assert!(provider.max_in_flight() <= 2);
}

const LOOP: &str = r#"
schema = 1
[workflow]
name = "rounds"
result = "{ 'last': fix.check, 'rounds': nodes.fix.iterations }"
[node.fix]
kind = "group"
[node.fix.loop]
max = 5
until = "check.verdict == 'pass'"
carry = { left = "check.left" }
[node.fix.body.edit]
agent = "Explore"
prompt = "left: {{ loop.left | default('all') }} ASK-edit{{ loop.index }}"
[node.fix.body.check]
agent = "Explore"
needs = ["edit"]
output = { type = "object", required = ["verdict", "left"], properties = { verdict = { enum = ["pass", "fail"] }, left = { type = "integer" } } }
prompt = "{{ edit }} ASK-check{{ loop.index }}"
"#;

fn rounds(request: &Request) -> Reply {
    let asked = asked(request);
    let Some(round) = asked.strip_prefix("check") else { return Reply::text("edited") };
    let left = 3 - round.parse::<i64>().unwrap();
    let verdict = if left == 0 { "pass" } else { "fail" };
    Reply::tool("t", "structured_output", serde_json::json!({ "verdict": verdict, "left": left }))
}

#[test]
fn a_loop_hands_values_to_its_next_round_and_ends_when_its_condition_holds() {
    let provider = ScriptedProvider::new([Route::answer(rounds)]);
    let sandbox = house(&provider, LOOP);
    let output = run(&sandbox, &[]).run(BOUND).expect_code(0);
    assert_eq!(output.json(), serde_json::json!({"last": {"verdict": "pass", "left": 0}, "rounds": 3}));
    assert_eq!(provider.requests_with("left: 2").len(), 1);
    assert_eq!(provider.requests_with("left: 1").len(), 1);
    let folders = sandbox.newest_run().statuses();
    let expected =
        ["fix@1/check.1", "fix@1/edit.1", "fix@2/check.1", "fix@2/edit.1", "fix@3/check.1", "fix@3/edit.1"];
    assert_eq!(folders.keys().map(String::as_str).collect::<Vec<_>>(), expected);
}

#[test]
fn killed_in_any_round_a_loop_goes_on_in_that_round() {
    for moment in 0..6 {
        let gate = Gate::closed();
        let (held, seen) = (gate.clone(), Arc::new(AtomicUsize::new(0)));
        let provider = ScriptedProvider::new([Route::answer(move |request| {
            let reply = rounds(request);
            if seen.fetch_add(1, Ordering::SeqCst) == moment { reply.gate(&held) } else { reply }
        })]);
        let sandbox = house(&provider, LOOP);
        let running = run(&sandbox, &[]).spawn();
        gate.wait_for_waiting(1, BOUND);
        running.kill9();
        gate.open();
        provider.wait_for_idle(BOUND);
        let output = run(&sandbox, &["--resume"]).run(BOUND).expect_code(0);
        assert_eq!(output.json()["rounds"], 3, "moment {moment}: {output}");
        // The one that was in flight is asked twice, all others once.
        assert_eq!(provider.count(), 7, "moment {moment}: {output}");
    }
}

#[test]
fn a_loop_that_does_not_come_to_its_end_says_so() {
    let provider = ScriptedProvider::new([Route::answer(rounds)]);
    let sandbox = house(&provider, &LOOP.replace("max = 5", "max = 2"));
    let output = run(&sandbox, &[]).run(BOUND).expect_code(1);
    assert!(output.stderr.contains("fix (limit): not done after 2 iterations (loop.max)"), "{output}");
}

#[test]
fn a_nested_file_is_one_run_with_its_own_inputs_and_limits() {
    let provider = ScriptedProvider::new([echo()]);
    let sandbox = house(
        &provider,
        r#"
schema = 1
[workflow]
name = "outer"
result = "inner.outputs"
[node.inner]
kind = "workflow"
file = "parts/inner.toml"
with = { what = "item ~ '!'" }
each = { items = ["a", "b"], key = "{{ item }}" }
"#,
    );
    sandbox.write(
        "parts/inner.toml",
        r#"
schema = 1
[workflow]
name = "inner"
result = "'<' ~ two ~ '>'"
[inputs.what]
type = "string"
[limits]
concurrency = 1
[node.one]
agent = "Explore"
prompt = "ASK-one {{ inputs.what }}"
[node.two]
agent = "Explore"
needs = ["one"]
prompt = "{{ inputs.what }} ASK-two"
"#,
    );
    let output = run(&sandbox, &[]).run(BOUND).expect_code(0);
    assert_eq!(output.json(), serde_json::json!(["<re two>", "<re two>"]));
    assert_eq!(provider.requests_with("one a!").len(), 1);
    let steps: Vec<String> = sandbox.newest_run().statuses().into_keys().collect();
    assert_eq!(steps, ["inner=a/one.1", "inner=a/two.1", "inner=b/one.1", "inner=b/two.1"]);
    assert_eq!(sandbox.runs().len(), 1);
    // What stands in the nested file is content: a change there runs again what it concerns.
    let text = sandbox.read("parts/inner.toml").replace("ASK-two", "ASK-three");
    sandbox.write("parts/inner.toml", text);
    let output = run(&sandbox, &["--resume"]).run(BOUND).expect_code(0);
    assert_eq!(output.json(), serde_json::json!(["<re three>", "<re three>"]));
    assert_eq!(provider.count(), 6);
}

#[test]
fn a_problem_in_a_nested_file_is_told_with_its_own_place() {
    let provider = ScriptedProvider::new([echo()]);
    let nested = "schema = 1\n[workflow]\nname = \"inner\"\n[node.a]\nprompt = \"{{ nowhere }}\"\n";
    let outer =
        "schema = 1\n[workflow]\nname = \"o\"\n[node.i]\nkind = \"workflow\"\nfile = \"inner.toml\"\n";
    let sandbox = house(&provider, outer);
    sandbox.write("inner.toml", nested);
    let output = run(&sandbox, &[]).run(BOUND).expect_code(2);
    assert!(output.stderr.contains("E180") && output.stderr.contains("inner.toml:5:"), "{output}");
    assert_eq!(provider.count(), 0);
    assert!(!sandbox.has(".claw"));
}

const LOCKED: &str = r#"
schema = 1
[workflow]
name = "locked"
[limits]
commands = 8
[node.work]
kind = "command"
run = "echo in >> log; test ! -e inside && touch inside && sleep 0.05 && rm inside && echo out >> log"
lock = ["one-at-a-time"]
each = { range = 4, key = "{{ item }}" }
"#;

#[test]
fn a_named_lock_holds_between_the_steps_of_two_processes() {
    let provider = ScriptedProvider::new([echo()]);
    let sandbox = house(&provider, LOCKED);
    let both = [run(&sandbox, &[]).spawn(), run(&sandbox, &[]).spawn()];
    for running in both {
        running.wait(BOUND).expect_code(0);
    }
    let log = sandbox.read("log");
    assert_eq!(log, "in\nout\n".repeat(8));
}

#[test]
fn a_lock_dies_with_its_process() {
    let provider = ScriptedProvider::new([echo()]);
    let held = "schema = 1\n[workflow]\nname = \"h\"\n[node.a]\nkind = \"command\"\nlock = [\"x\"]\n";
    let sandbox = house(&provider, &format!("{held}run = \"touch held; sleep 60\"\n"));
    let running = run(&sandbox, &[]).spawn();
    claw_kit::wait_until("the lock is held", BOUND, || sandbox.has("held"));
    running.kill9();
    sandbox.write("wf.toml", format!("{held}run = \"true\"\n"));
    run(&sandbox, &[]).run(BOUND).expect_code(0);
}

#[test]
fn a_final_node_reports_behind_a_failure() {
    let provider = ScriptedProvider::new([echo()]);
    let sandbox = house(
        &provider,
        r#"
schema = 1
[workflow]
name = "f"
result = "report"
[node.bad]
kind = "command"
run = ["false"]
[node.report]
final = true
agent = "Explore"
needs = ["bad"]
prompt = "it {{ nodes.bad.status }} ASK-report"
"#,
    );
    let output = run(&sandbox, &[]).run(BOUND).expect_code(1);
    assert_eq!(output.stdout.trim(), "re report");
    assert_eq!(provider.requests_with("it failed").len(), 1);
}

#[test]
fn the_keys_of_a_list_in_a_nested_file_may_name_its_inputs() {
    let provider = ScriptedProvider::always(Reply::text("never"));
    let inner = r#"
schema = 1
[workflow]
name = "inner"
[inputs.tag]
type = "string"
[node.a]
kind = "set"
value = "item ~ index"
each = { items = ["x", "y"], key = "{{ inputs.tag }}-{{ item }}" }
"#;
    let outer = "schema = 1\n[workflow]\nname = \"outer\"\n[node.n]\nkind = \"workflow\"\nfile = \"inner.toml\"\n\
                 with = { tag = \"'v'\" }\n";
    let sandbox = house(&provider, outer);
    sandbox.write("inner.toml", inner);
    let output = run(&sandbox, &["--output-format", "json"]).run(BOUND).expect_code(0).json();
    assert_eq!(output["result"], serde_json::json!(["x1", "y2"]));
    let steps: Vec<&str> =
        output["steps"].as_array().unwrap().iter().filter_map(|s| s["step"].as_str()).collect();
    assert_eq!(steps, ["n", "n/a=v-x", "n/a=v-y"]);
}

const MANY: &str = r#"
schema = 1
[workflow]
name = "many"
[limits]
concurrency = 3
[node.map]
agent = "Explore"
prompt = "ASK-map{{ item }}"
each = { range = 9, key = "{{ item }}" }
[node.rounds]
kind = "group"
each = { range = 4, key = "{{ item }}" }
loop = { max = 3, until = "loop.index == 3" }
[node.rounds.body.edit]
agent = "Explore"
prompt = "ASK-edit{{ item }}.{{ loop.index }}"
[node.rounds.body.check]
agent = "Explore"
needs = ["edit"]
prompt = "{{ edit }} ASK-check{{ item }}.{{ loop.index }}"
[node.inner]
kind = "workflow"
file = "inner.toml"
each = { range = 4, key = "{{ item }}" }
"#;

#[test]
fn items_rounds_and_nested_files_together_never_pass_the_limit_of_the_run() {
    let gate = Gate::closed();
    let held = gate.clone();
    let provider =
        ScriptedProvider::new([Route::answer(move |request| Reply::text(asked(request)).gate(&held))]);
    let sandbox = house(&provider, MANY);
    sandbox.write(
        "inner.toml",
        "schema = 1\n[workflow]\nname = \"inner\"\n[limits]\nconcurrency = 2\n[node.one]\nagent = \"Explore\"\nprompt = \"ASK-one\"\n[node.two]\nagent = \"Explore\"\nprompt = \"ASK-two\"\n",
    );
    let running = run(&sandbox, &[]).spawn();
    let all = 9 + 4 * 3 * 2 + 4 * 2;
    // Whenever three wait, one may go: so a fourth would be seen.
    for _ in 0..all - 2 {
        gate.wait_for_waiting(3, BOUND);
        gate.let_pass(1);
    }
    gate.open();
    let output = running.wait(BOUND).expect_code(0);
    assert_eq!((provider.count(), provider.max_in_flight()), (all, 3), "{output}");
}
