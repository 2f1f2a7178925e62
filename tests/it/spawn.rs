//! Agents that agents start: their results, their limits, and what a kill leaves of them.

use claw_kit::{Claw, Gate, Reply, Request, Route, Sandbox, ScriptedProvider, Signal};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(20);

fn workflow(limits: &str) -> String {
    format!(
        "schema = 1\n[workflow]\nname = \"lead\"\n[limits]\n{limits}\n[node.lead]\nspawn = true\nprompt = \"LEAD-GO\"\n"
    )
}

fn run(sandbox: &Sandbox, args: &[&str]) -> Claw {
    Claw::new(CLAW, sandbox).args(["run", "wf.toml"]).args(args).env("CLAW_RETRY_BASE_MS", "5")
}

/// The task of whoever asks: the first message.
fn task(request: &Request) -> String {
    request.messages().first().map(Value::to_string).unwrap_or_default()
}

fn child(kid: &str) -> Value {
    json!({ "description": format!("look at {kid}"), "prompt": format!("KID-{kid} look"), "subagent_type": "Explore" })
}

fn three() -> Reply {
    Reply::tool("t1", "agent", child("a")).with_tool("t2", "Task", child("b")).with_tool(
        "t3",
        "agent",
        child("c"),
    )
}

/// A lead with three children, each of which says its own mark.
fn answer(request: &Request) -> Reply {
    let task = task(request);
    if task.contains("LEAD-GO") {
        let done = request.text.contains("MARK-");
        return if done { Reply::text("all told") } else { three() };
    }
    let kid = ["a", "b", "c"].into_iter().find(|kid| task.contains(&format!("KID-{kid}"))).unwrap_or("?");
    Reply::text(format!("MARK-{kid}-")).tokens(10, 0, 2)
}

fn results(request: &Request) -> Vec<String> {
    let last = request.messages().last().cloned().unwrap_or_default();
    let blocks = last["content"].as_array().cloned().unwrap_or_default();
    blocks
        .iter()
        .filter(|block| block["type"] == "tool_result")
        .map(|block| block["content"].to_string())
        .collect()
}

#[test]
fn three_children_answer_in_the_order_of_the_calls_at_one_slot_and_at_two() {
    for concurrency in [1, 2] {
        let provider = ScriptedProvider::new([Route::answer(answer)]);
        let sandbox = Sandbox::anthropic(&provider);
        sandbox.write("wf.toml", workflow(&format!("concurrency = {concurrency}")));
        let output = run(&sandbox, &[]).run(BOUND).expect_code(0);
        assert!(output.stdout.contains("all told"), "{output}");
        assert!(provider.max_in_flight() <= concurrency, "{}", provider.max_in_flight());
        assert_eq!(provider.count(), 5);
        let told = results(&provider.last_request());
        assert_eq!(told.len(), 3, "{told:?}");
        for (text, kid) in told.iter().zip(["a", "b", "c"]) {
            assert!(text.contains(&format!("MARK-{kid}-")), "{text}");
            assert_eq!(text.matches("MARK-").count(), 1, "{text}");
        }
        let run = sandbox.newest_run();
        assert_eq!(run.events("spawned").len(), 3);
        let steps: BTreeSet<String> = run.statuses().into_keys().collect();
        assert!(steps.iter().any(|step| step.starts_with("lead/+3")), "{steps:?}");
        assert!(run.statuses().values().all(|status| status == "completed"), "{:?}", run.statuses());
        let (parent, kid) = (run.manifest("lead"), run.manifest("lead/+1"));
        assert_eq!(kid["parentAgentId"], parent["agentId"]);
        assert_eq!(kid["subagentType"], "Explore");
        assert_eq!(kid["permissionMode"], "read-only");
        let (own, all) = (&parent["usage"]["self"]["output"], &parent["usage"]["subtree"]["output"]);
        assert_eq!(all.as_u64().unwrap(), own.as_u64().unwrap() + 6, "{parent}");
        assert!(run.read("report.md").contains("lead/+2"), "{}", run.read("report.md"));
    }
}

#[test]
fn a_child_may_do_no_more_than_its_parent() {
    let provider = ScriptedProvider::new([Route::answer(|request| {
        let task = task(request);
        if task.contains("LEAD-GO") {
            let wants =
                json!({ "description": "write", "prompt": "KID-w", "subagent_type": "general-purpose" });
            let done = request.text.contains("tool_result");
            return if done { Reply::text("done") } else { Reply::tool("t1", "agent", wants) };
        }
        if request.text.contains("tool_result") {
            return Reply::text("tried");
        }
        Reply::tool("k1", "write_file", json!({"path": "MUST_NOT_EXIST", "content": "x"}))
    })]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", &(workflow("concurrency = 2") + "agent = \"Explore\"\n"));
    run(&sandbox, &[]).run(BOUND).expect_code(0);
    let run = sandbox.newest_run();
    assert_eq!(run.manifest("lead/+1")["permissionMode"], "read-only");
    assert!(!sandbox.has("MUST_NOT_EXIST"));
    let kid = provider.requests_with("KID-w");
    let kid = kid.iter().find(|request| task(request).contains("KID-w")).unwrap();
    assert!(!kid.tool_names().contains(&"write_file"), "{:?}", kid.tool_names());
    assert!(!kid.tool_names().contains(&"agent"), "{:?}", kid.tool_names());
}

#[test]
fn an_unknown_agent_and_a_blank_task_start_nothing() {
    let provider = ScriptedProvider::new([Route::answer(|request| {
        if request.text.contains("tool_result") {
            return Reply::text("done");
        }
        let unknown = json!({ "description": "d", "prompt": "p", "subagent_type": "Explorre" });
        Reply::tool("t1", "agent", unknown).with_tool(
            "t2",
            "agent",
            json!({ "description": "d", "prompt": " " }),
        )
    })]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", workflow("concurrency = 2"));
    run(&sandbox, &[]).run(BOUND).expect_code(0);
    let told = results(&provider.last_request());
    assert!(told[0].contains("did you mean `Explore`?"), "{told:?}");
    assert!(told[1].contains("prompt"), "{told:?}");
    assert_eq!(provider.count(), 2);
    assert!(sandbox.newest_run().events("spawned").is_empty());
}

#[test]
fn children_that_start_children_end_at_the_depth_and_at_the_number_of_agents() {
    let nest = |limits: &str| {
        let provider = ScriptedProvider::new([Route::answer(|request| {
            if request.text.contains("tool_result") {
                return Reply::text("done");
            }
            let more = json!({ "description": "d", "prompt": "MORE", "subagent_type": "nest" });
            Reply::tool("t1", "agent", more.clone()).with_tool("t2", "agent", more)
        })]);
        let sandbox = Sandbox::anthropic(&provider);
        let agents = "[agents.nest]\ndescription = \"starts more\"\nprompt = \"Start more.\"\n";
        sandbox.write("wf.toml", &(workflow(limits) + agents));
        run(&sandbox, &[]).run(BOUND).expect_code(0);
        let started = sandbox.newest_run().events("admitted").len();
        assert!(sandbox.newest_run().statuses().values().all(|status| status != "running"));
        (provider, started)
    };
    let (provider, started) = nest("concurrency = 2\ndepth = 1");
    assert_eq!(started, 3);
    assert!(!provider.requests_with("limits.depth = 1").is_empty());
    let (_, started) = nest("concurrency = 1\ndepth = 2");
    assert_eq!(started, 7);
    let (provider, started) = nest("concurrency = 2\ndepth = 5\nagents = 6");
    assert_eq!(started, 6);
    assert!(!provider.requests_with("limits.agents = 6").is_empty());
}

#[test]
fn map_loop_and_children_together_never_pass_the_concurrency() {
    let provider = ScriptedProvider::new([Route::answer(|request| {
        let task = task(request);
        let leads = task.contains("MAP-") || task.contains("LOOP-");
        let reply = match leads && !request.text.contains("tool_result") {
            true => three(),
            false => Reply::text("MARK-"),
        };
        reply.delay(Duration::from_millis(5))
    })]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write(
        "wf.toml",
        "schema = 1\n[workflow]\nname = \"all\"\n[limits]\nconcurrency = 3\n[node.map]\nspawn = true\nprompt = \"MAP-{{ item }}\"\neach = { range = 5 }\n[node.again]\nspawn = true\nprompt = \"LOOP-{{ loop.index }}\"\nloop = { max = 3 }\n",
    );
    run(&sandbox, &[]).run(BOUND).expect_code(0);
    assert_eq!(provider.count(), 8 * 5);
    assert!(provider.max_in_flight() <= 3, "{}", provider.max_in_flight());
    assert!(provider.max_in_flight() > 1);
}

#[test]
fn killed_with_children_in_flight_the_parent_hears_of_those_that_were_done() {
    for concurrency in [1, 3] {
        let gate = Gate::closed();
        let held = gate.clone();
        let provider = ScriptedProvider::new([Route::answer(move |request| {
            let reply = answer(request);
            if task(request).contains("KID-c") { reply.gate(&held) } else { reply }
        })]);
        let sandbox = Sandbox::anthropic(&provider);
        sandbox.write("wf.toml", workflow(&format!("concurrency = {concurrency}")));
        let running = run(&sandbox, &[]).spawn();
        gate.wait_for_waiting(1, BOUND);
        claw_kit::wait_until("two children are done", BOUND, || {
            let ended = sandbox.newest_run().events("ended");
            ended.iter().filter(|record| record["data"]["state"] == "succeeded").count() == 2
        });
        running.kill9();
        gate.open();
        provider.wait_for_idle(BOUND);
        assert_eq!(provider.count(), 4);
        let output = run(&sandbox, &["--resume"]).run(BOUND).expect_code(0);
        assert!(output.stdout.contains("all told"), "{output}");
        // The child that was in flight, and the parent's next turn.
        assert_eq!(provider.count(), 6, "{output}");
        let told = results(&provider.last_request());
        for (text, kid) in told.iter().zip(["a", "b", "c"]) {
            assert!(text.contains(&format!("MARK-{kid}-")), "{text}");
        }
        let steps = sandbox.newest_run().statuses();
        assert!(!steps.keys().any(|step| step.contains("+4")), "{steps:?}");
        let after = provider.count();
        run(&sandbox, &["--resume"]).run(BOUND).expect_code(0);
        assert_eq!(provider.count(), after, "all was done");
    }
}

#[test]
fn stopped_by_a_signal_the_children_go_on_and_the_parent_hears_of_them() {
    let gate = Gate::closed();
    let held = gate.clone();
    let provider = ScriptedProvider::new([Route::answer(move |request| {
        let reply = answer(request);
        if task(request).contains("KID-c") { reply.gate(&held) } else { reply }
    })]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", workflow("concurrency = 1"));
    let running = run(&sandbox, &[]).spawn();
    gate.wait_for_waiting(1, BOUND);
    running.signal(Signal::INT);
    running.wait(BOUND).expect_code(130);
    gate.open();
    provider.wait_for_idle(BOUND);
    let statuses = sandbox.newest_run().statuses();
    assert!(statuses.values().all(|status| status != "running"), "{statuses:?}");
    assert_eq!(provider.count(), 4);
    run(&sandbox, &["--resume"]).run(BOUND).expect_code(0);
    assert_eq!(provider.count(), 6);
    assert_eq!(results(&provider.last_request()).iter().filter(|text| text.contains("MARK-")).count(), 3);
}
