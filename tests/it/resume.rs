//! A run that was killed, stopped or changed goes on: what is done is not asked again, what differs is told.

use claw_kit::{
    Claw, Gate, Output, Reply, Request, Route, Sandbox, ScriptedProvider, replace_file, wait_until,
};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(20);

const TEAM: &str = r#"
schema = 1
[workflow]
name = "team"
result = "report"
[limits]
concurrency = 2
[node.look]
agent = "Explore"
prompt = "LOOK-{{ item }}-"
each = { items = ["a", "b", "c", "d"], key = "{{ item }}" }
[node.plan]
agent = "Plan"
needs = ["look"]
prompt = "PLAN-NODE {{ look.outputs | bullets }}"
[node.check]
agent = "Explore"
needs = ["plan"]
prompt = "CHECK-NODE {{ plan }}"
[node.report]
kind = "merge"
needs = ["look", "plan", "check"]
from = ["look.outputs", "plan", "check"]
strategy = "concat"
"#;

/// The agent that a request belongs to.
fn who(request: &Request) -> String {
    for name in ["CHECK-NODE", "PLAN-NODE", "LOOK-a-", "LOOK-b-", "LOOK-c-", "LOOK-d-"] {
        if request.text.contains(name) {
            return name.to_owned();
        }
    }
    "?".to_owned()
}

/// The step of an agent.
fn step(agent: &str) -> String {
    match agent {
        "CHECK-NODE" => "check".to_owned(),
        "PLAN-NODE" => "plan".to_owned(),
        look => look.trim_end_matches('-').replace("LOOK-", "look="),
    }
}

/// Explorers look once at the folder before they answer.
fn answer(request: &Request) -> Reply {
    let agent = who(request);
    let looks = agent.starts_with("LOOK") && !request.text.contains("tool_result");
    if looks {
        Reply::tool("t1", "glob_search", json!({"pattern": "*.toml"}))
    } else {
        Reply::text(format!("{agent} said"))
    }
}

fn run(sandbox: &Sandbox, args: &[&str]) -> Claw {
    Claw::new(CLAW, sandbox).args(["run", "wf.toml"]).args(args).env("CLAW_RETRY_BASE_MS", "5")
}

fn resume(sandbox: &Sandbox) -> Output {
    run(sandbox, &["--resume"]).run(BOUND)
}

/// The steps that the journal calls a success.
fn finished(sandbox: &Sandbox) -> BTreeSet<String> {
    let ended = sandbox.newest_run().events("ended");
    let good = ended.into_iter().filter(|record| record["data"]["state"] == "succeeded");
    good.filter_map(|record| record["step"].as_str().map(str::to_owned)).collect()
}

fn agents_asked(requests: &[Arc<Request>]) -> Vec<String> {
    requests.iter().map(|request| who(request)).collect()
}

#[test]
fn killed_at_ten_moments_a_run_goes_on_and_gives_the_same() {
    let quiet = ScriptedProvider::new([Route::answer(answer)]);
    let sandbox = Sandbox::anthropic(&quiet);
    sandbox.write("wf.toml", TEAM);
    let undisturbed = run(&sandbox, &[]).run(BOUND).expect_code(0).stdout;
    assert_eq!(quiet.count(), 10);
    assert!(undisturbed.starts_with("LOOK-a- said\n\nLOOK-b- said"), "{undisturbed}");
    for moment in 0..10 {
        let gate = Gate::closed();
        let (held, seen) = (gate.clone(), Arc::new(AtomicUsize::new(0)));
        let provider = ScriptedProvider::new([Route::answer(move |request| {
            let reply = answer(request);
            if seen.fetch_add(1, Ordering::SeqCst) == moment { reply.gate(&held) } else { reply }
        })]);
        let sandbox = Sandbox::anthropic(&provider);
        sandbox.write("wf.toml", TEAM);
        let running = run(&sandbox, &[]).spawn();
        gate.wait_for_waiting(1, BOUND);
        running.kill9();
        gate.open();
        provider.wait_for_idle(BOUND);
        let (done, asked) = (finished(&sandbox), provider.count());
        let output = resume(&sandbox).expect_code(0);
        assert_eq!(output.stdout, undisturbed, "moment {moment}: {output}");
        for agent in agents_asked(&provider.requests()[asked..]) {
            assert!(
                !done.contains(&step(&agent)),
                "moment {moment}: {agent} was done and asked again: {output}"
            );
        }
        let more = provider.count() - 10;
        assert!(more <= 2, "moment {moment}: {more} requests more than were in flight at the kill");
        let after = provider.count();
        assert_eq!(resume(&sandbox).expect_code(0).stdout, undisturbed, "a third take");
        assert_eq!(provider.count(), after, "moment {moment}: all was done");
    }
}

/// Four agents that answer with what they were asked.
const CHAIN: &str = r#"
schema = 1
[workflow]
name = "chain"
[node.a]
prompt = "ASK-A one"
[node.b]
needs = ["a"]
prompt = "ASK-B two {{ a }}"
[node.c]
needs = ["b"]
prompt = "ASK-C three {{ b }}"
[node.d]
prompt = "ASK-D four"
"#;

fn echo() -> ScriptedProvider {
    ScriptedProvider::new([Route::answer(|request| {
        let text = &request.text;
        let words = ["ASK-A one", "ASK-B two", "ASK-B new", "ASK-C three", "ASK-D four"];
        let word = words.iter().rev().find(|word| text.contains(*word)).unwrap_or(&"?");
        Reply::text(format!("echo of <{}>", word.to_lowercase().replace("ask-", "")))
    })])
}

fn since(provider: &ScriptedProvider, count: usize, nodes: &[&str]) -> Vec<String> {
    let asked = |request: &Arc<Request>| {
        nodes
            .iter()
            .rev()
            .find(|node| request.text.contains(**node))
            .map_or("?".to_owned(), |n| (*n).to_owned())
    };
    let mut asked: Vec<_> = provider.requests()[count..].iter().map(asked).collect();
    asked.sort();
    asked
}

#[test]
fn an_edited_prompt_runs_that_node_and_what_depends_on_it_and_says_why() {
    let provider = echo();
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", CHAIN);
    run(&sandbox, &[]).run(BOUND).expect_code(0);
    assert_eq!(provider.count(), 4);
    sandbox.write("wf.toml", CHAIN.replace("ASK-B two", "ASK-B new"));
    let output = resume(&sandbox).expect_code(0);
    assert_eq!(since(&provider, 4, &["ASK-A", "ASK-B", "ASK-C", "ASK-D"]), ["ASK-B", "ASK-C"], "{output}");
    let said: Vec<&str> = output.stderr.lines().filter(|line| line.contains("changed")).collect();
    assert!(said.iter().any(|line| line.contains("b:") && line.contains("prompt changed")), "{output}");
    assert!(said.iter().any(|line| line.contains("c:") && line.contains("upstream b changed")), "{output}");
    assert_eq!(sandbox.runs().len(), 1, "a resume is the same run");
}

#[test]
fn what_is_no_content_changes_nothing() {
    let provider = echo();
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", CHAIN);
    run(&sandbox, &[]).run(BOUND).expect_code(0);
    let moved = format!(
        "{}\nlabel = \"the fourth\"\nphase = \"late\"\npriority = 7\ntimeout = \"3m\"\nretry = {{ attempts = 1 }}\n[limits]\nconcurrency = 1\n",
        CHAIN.replace("name = \"chain\"", "name = \"chain\"\ndescription = \"edited\"")
    );
    sandbox.write("wf.toml", moved);
    resume(&sandbox).expect_code(0);
    assert_eq!(provider.count(), 4);
}

#[test]
fn an_item_that_was_added_runs_alone() {
    let provider = ScriptedProvider::new([Route::answer(answer)]);
    let sandbox = Sandbox::anthropic(&provider);
    let text = TEAM.replace(r#"["a", "b", "c", "d"]"#, r#"["a", "b"]"#);
    sandbox.write("wf.toml", &text);
    run(&sandbox, &[]).run(BOUND).expect_code(0);
    let before = provider.count();
    sandbox.write("wf.toml", text.replace(r#"["a", "b"]"#, r#"["c", "a", "b"]"#));
    let output = resume(&sandbox).expect_code(0);
    let mut asked = agents_asked(&provider.requests()[before..]);
    asked.dedup();
    assert_eq!(asked, ["LOOK-c-", "PLAN-NODE"], "the check has the same plan before it: {output}");
    assert!(output.stdout.starts_with("LOOK-c- said\n\nLOOK-a- said"), "{output}");
}

#[test]
fn a_renamed_node_keeps_its_result() {
    let provider = echo();
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", CHAIN);
    run(&sandbox, &[]).run(BOUND).expect_code(0);
    sandbox.write("wf.toml", CHAIN.replace("[node.d]", "[node.renamed]"));
    let output = resume(&sandbox).expect_code(0);
    assert_eq!(provider.count(), 4, "{output}");
}

#[test]
fn only_the_failed_item_of_many_runs_again() {
    let provider = ScriptedProvider::new([
        Route::reply(Reply::error(400, &json!({"error": {"message": "no"}}))).contains("ITEM-4-").times(1),
        Route::reply(Reply::text("fine")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write(
        "wf.toml",
        "schema = 1\n[workflow]\nname = \"many\"\n[node.look]\nagent = \"Explore\"\nprompt = \"ITEM-{{ item }}-\"\neach = { range = 102, key = \"{{ item }}\" }\n",
    );
    run(&sandbox, &[]).run(BOUND).expect_code(1);
    assert_eq!(provider.count(), 102);
    resume(&sandbox).expect_code(0);
    assert_eq!(provider.count(), 103);
}

#[test]
fn a_run_that_another_process_holds_is_left_alone() {
    let gate = Gate::closed();
    let provider = ScriptedProvider::always(Reply::text("late").gate(&gate));
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", "schema = 1\n[workflow]\nname = \"one\"\n[node.a]\nprompt = \"a\"\n");
    let holder = run(&sandbox, &[]).spawn();
    gate.wait_for_waiting(1, BOUND);
    let second = run(&sandbox, &["--resume"]).run(Duration::from_secs(5)).expect_code(6);
    assert!(second.stderr.contains(&holder.pid().to_string()), "{second}");
    assert_eq!(provider.count(), 1);
    holder.kill9();
    gate.open();
    provider.wait_for_idle(BOUND);
    assert_eq!(resume(&sandbox).expect_code(0).stdout, "late\n", "a dead owner never blocks");
}

fn failed_run(provider: &ScriptedProvider) -> Sandbox {
    let sandbox = Sandbox::anthropic(provider);
    sandbox.write("wf.toml", CHAIN);
    run(&sandbox, &[]).run(BOUND).expect_code(1);
    sandbox
}

fn fails_at_c() -> ScriptedProvider {
    ScriptedProvider::new([
        Route::reply(Reply::error(400, &json!({"error": {"message": "no"}}))).contains("ASK-C").times(1),
        Route::reply(Reply::text("fine")),
    ])
}

#[test]
fn a_torn_last_line_is_cut_off_and_said() {
    let provider = fails_at_c();
    let sandbox = failed_run(&provider);
    let run = sandbox.newest_run();
    let path = run.path().join("journal.jsonl");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend_from_slice(b"{\"v\":1,\"seq\":99,\"at\":\"20");
    replace_file(&path, &bytes);
    let output = resume(&sandbox).expect_code(0);
    assert_eq!(provider.count(), 5, "{output}");
    assert!(
        output.stderr.contains("torn") || output.stderr.contains("half"),
        "nothing is said of it: {output}"
    );
    let seqs: Vec<u64> = run.journal().iter().filter_map(|record| record["seq"].as_u64()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
}

#[test]
fn a_damaged_line_in_the_middle_is_an_error_with_its_place() {
    let provider = fails_at_c();
    let sandbox = failed_run(&provider);
    let path = sandbox.newest_run().path().join("journal.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[3] = lines[3].replacen("\"v\":1", "\"v\":7", 1);
    let damaged = lines.join("\n") + "\n";
    replace_file(&path, &damaged);
    let output = resume(&sandbox).expect_code(74);
    assert!(output.stderr.contains("E301") && output.stderr.contains("line 4"), "{output}");
    assert_eq!(provider.count(), 4);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), damaged, "what is damaged is not touched");
}

#[test]
fn damage_that_was_accepted_is_kept_aside_and_the_run_goes_on() {
    let provider = fails_at_c();
    let sandbox = failed_run(&provider);
    let run_folder = sandbox.newest_run();
    let path = run_folder.path().join("journal.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[3] = lines[3].replacen("\"v\":1", "\"v\":7", 1);
    let bad = lines[3].clone();
    replace_file(&path, lines.join("\n") + "\n");
    let output = run(&sandbox, &["--resume", "--accept-damage"]).run(BOUND).expect_code(0);
    assert!(run_folder.read("journal.damaged").contains(&bad), "{output}");
    assert!(output.stderr.contains("in doubt"), "{output}");
    let asked = provider.count();
    resume(&sandbox).expect_code(0);
    assert_eq!(provider.count(), asked, "after that it is a run like any other");
}

#[test]
fn a_command_killed_in_the_middle_is_in_doubt_until_somebody_decides() {
    let sandbox = Sandbox::new();
    let text = r#"
schema = 1
[workflow]
name = "doubt"
[node.first]
kind = "command"
run = "echo first >> first.txt"
[node.effect]
kind = "command"
needs = ["first"]
run = "echo x >> side.txt; test -e go || exec sleep 7412; echo made"
"#;
    sandbox.write("wf.toml", text);
    let running = run(&sandbox, &[]).spawn();
    wait_until("the effect", BOUND, || sandbox.has("side.txt") && sandbox.read("side.txt") == "x\n");
    running.kill9();
    sandbox.write("go", "");
    for _ in 0..2 {
        let output = resume(&sandbox).expect_code(4);
        assert!(output.stderr.contains("effect"), "{output}");
        assert!(output.stderr.contains("on_crash"), "what to do is not said: {output}");
        assert_eq!(sandbox.read("side.txt"), "x\n", "a step in doubt was silently run again");
    }
    // An answer decides it once, `on_crash` for good.
    let answer = ["runs", "answer", "latest", "effect", "retry"];
    Claw::new(CLAW, &sandbox).args(answer).run(BOUND).expect_code(0);
    assert_eq!(resume(&sandbox).expect_code(0).stdout, "made\n");
    assert_eq!(
        (sandbox.read("side.txt").as_str(), sandbox.read("first.txt").as_str()),
        ("x\nx\n", "first\n")
    );
}

#[test]
fn a_step_in_doubt_may_be_skipped() {
    let sandbox = Sandbox::new();
    let text = "schema = 1\n[workflow]\nname = \"doubt\"\n[node.effect]\nkind = \"command\"\non_crash = \"skip\"\nrun = \"echo x >> side.txt; exec sleep 7413\"\n";
    sandbox.write("wf.toml", text);
    let running = run(&sandbox, &[]).spawn();
    wait_until("the effect", BOUND, || sandbox.has("side.txt") && sandbox.read("side.txt") == "x\n");
    running.kill9();
    resume(&sandbox);
    assert_eq!(sandbox.read("side.txt"), "x\n");
    let ended = sandbox.newest_run().events("ended");
    assert_eq!(ended.last().map(|record| &record["data"]["state"]), Some(&json!("skipped")));
}

#[test]
fn an_agent_killed_in_a_tool_that_writes_is_told_so_and_goes_on() {
    let provider =
        ScriptedProvider::new([
            Route::reply(Reply::text("I will look first")).contains("interrupted").label("told"),
            Route::reply(
                Reply::tool("t1", "bash", json!({"command": "echo x >> side.txt; exec sleep 7414"}))
                    .with_tool("t2", "read_file", json!({"path": "wf.toml"})),
            ),
        ]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", "schema = 1\n[workflow]\nname = \"one\"\n[node.a]\nprompt = \"ASK-A\"\n");
    let running = run(&sandbox, &[]).spawn();
    wait_until("the effect", BOUND, || sandbox.has("side.txt") && sandbox.read("side.txt") == "x\n");
    running.kill9();
    let output = resume(&sandbox).expect_code(0);
    assert_eq!(output.stdout, "I will look first\n");
    assert_eq!((provider.count(), sandbox.read("side.txt").as_str()), (2, "x\n"), "{output}");
    let told = &provider.requests_of("told")[0];
    let last = told.messages().last().map(ToString::to_string).unwrap_or_default();
    assert!(last.contains("interrupted") && last.contains("check before you repeat it"), "{last}");
    assert!(last.contains("ASK-A"), "what only reads is read again: {last}");
}

#[test]
fn of_a_map_exactly_the_unfinished_items_run_after_one_kill_and_after_two() {
    let gate = Gate::closed();
    let provider = ScriptedProvider::new([Route::reply(Reply::text("fine").gate(&gate))]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write(
        "wf.toml",
        "schema = 1\n[workflow]\nname = \"map\"\n[limits]\nconcurrency = 5\n[node.look]\nagent = \"Explore\"\nprompt = \"ITEM-{{ item }}-\"\neach = { range = 100, key = \"{{ item }}\" }\n",
    );
    let mut done = BTreeSet::new();
    for part in [50, 25] {
        let asked = provider.count();
        let running = run(&sandbox, if done.is_empty() { &[] } else { &["--resume"] }).spawn();
        gate.let_pass(part);
        let before = done.len();
        gate.wait_for_waiting(1, BOUND);
        wait_until("a part of the items", BOUND, || finished(&sandbox).len() >= before + part);
        gate.wait_for_waiting(5, BOUND);
        running.kill9();
        provider.wait_for_idle(BOUND);
        for request in &provider.requests()[asked..] {
            let again =
                done.iter().any(|step: &String| request.text.contains(&format!("ITEM-{}-", &step[5..])));
            assert!(!again, "an item that was done is asked again");
        }
        done = finished(&sandbox);
        assert_eq!(done.len(), before + part);
    }
    let asked = provider.count();
    gate.open();
    resume(&sandbox).expect_code(0);
    assert_eq!(provider.count() - asked, 100 - 75);
}

#[test]
fn an_agent_goes_on_from_its_last_whole_turn() {
    let gate = Gate::closed();
    let provider = ScriptedProvider::new([
        Route::reply(Reply::tool("t1", "glob_search", json!({"pattern": "*"}))).lacks("tool_result"),
        Route::reply(Reply::tool("t2", "bash", json!({"command": "echo x >> side.txt; echo SECOND"})))
            .lacks("SECOND"),
        Route::reply(Reply::text("third").gate(&gate)),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", "schema = 1\n[workflow]\nname = \"turns\"\n[node.a]\nprompt = \"ASK-A\"\n");
    let running = run(&sandbox, &[]).spawn();
    gate.wait_for_waiting(1, BOUND);
    running.kill9();
    gate.open();
    provider.wait_for_idle(BOUND);
    assert_eq!(resume(&sandbox).expect_code(0).stdout, "third\n");
    let requests = provider.requests();
    assert_eq!((requests.len(), sandbox.read("side.txt").as_str()), (4, "x\n"));
    let messages = |n: usize| {
        requests[n].body["messages"].to_string().replace(",\"cache_control\":{\"type\":\"ephemeral\"}", "")
    };
    assert_eq!(messages(2), messages(3), "the same conversation goes on");
}

#[test]
fn a_run_of_another_file_is_not_gone_on_with() {
    let sandbox = Sandbox::new();
    let text = |name: &str| {
        format!("schema = 1\n[workflow]\nname = \"{name}\"\n[node.a]\nkind = \"command\"\nrun = \"exit 1\"\n")
    };
    sandbox.write("one.toml", text("one"));
    sandbox.write("two.toml", text("two"));
    Claw::new(CLAW, &sandbox).args(["run", "one.toml"]).run(BOUND).expect_code(1);
    let id = sandbox.newest_run().id();
    let output = Claw::new(CLAW, &sandbox).args(["run", "two.toml", &format!("--resume={id}")]).run(BOUND);
    let output = output.expect_code(2);
    assert!(output.stderr.contains("one.toml") && output.stderr.contains("two.toml"), "{output}");
}

#[test]
fn a_step_that_was_skipped_in_doubt_is_skipped_by_every_resume() {
    let sandbox = Sandbox::new();
    let text = "schema = 1\n[workflow]\nname = \"doubt\"\n[node.a]\nkind = \"command\"\non_crash = \"skip\"\nrun = \"echo x >> ran.txt; exec sleep 7415\"\n";
    sandbox.write("wf.toml", text);
    let running = run(&sandbox, &[]).spawn();
    wait_until("the effect", BOUND, || sandbox.has("ran.txt") && sandbox.read("ran.txt") == "x\n");
    running.kill9();
    for _ in 0..3 {
        resume(&sandbox);
        assert_eq!(sandbox.read("ran.txt"), "x\n");
    }
}

#[test]
fn a_step_that_is_run_again_and_killed_is_in_doubt_though_it_once_succeeded() {
    let sandbox = Sandbox::new();
    let text = "schema = 1\n[workflow]\nname = \"again\"\n[node.a]\nkind = \"command\"\nrun = \"echo x >> ran.txt; test ! -e hold || exec sleep 7416; echo made\"\n";
    sandbox.write("wf.toml", text);
    run(&sandbox, &[]).run(BOUND).expect_code(0);
    sandbox.write("hold", "");
    let running = run(&sandbox, &["--from", "a"]).spawn();
    wait_until("the effect", BOUND, || sandbox.read("ran.txt") == "x\nx\n");
    running.kill9();
    let output = resume(&sandbox).expect_code(4);
    assert!(output.stderr.contains("in doubt"), "{output}");
    assert_eq!(sandbox.read("ran.txt"), "x\nx\n");
}
