//! What a run may spend: ceilings hold for all that draw from them, totals survive, a service that refuses all is
//! not asked by everybody.

use claw_kit::{Claw, Gate, Output, Reply, Request, Route, Sandbox, ScriptedProvider, replace_file};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(30);
/// Tokens of each answer here.
const EACH: u64 = 110;

fn run(sandbox: &Sandbox, args: &[&str]) -> Claw {
    claw(sandbox).args(["--output-format", "json"]).args(args)
}

fn claw(sandbox: &Sandbox) -> Claw {
    Claw::new(CLAW, sandbox)
        .args(["run", "wf.toml"])
        .env("CLAW_RETRY_BASE_MS", "5")
        .env("CLAW_BREAKER_WAIT_MS", "20")
}

fn paid(reply: Reply) -> Reply {
    reply.tokens(100, 0, 10)
}

/// Looks twice at the folder, then answers: three requests for each agent.
fn works(request: &Request) -> Reply {
    match request.text.matches("\"tool_result\"").count() {
        looked @ 0..=1 => {
            paid(Reply::tool(&format!("t{looked}"), "glob_search", json!({"pattern": "*.toml"})))
        }
        _ => paid(Reply::text("done")),
    }
}

fn tokens(output: &Output) -> u64 {
    let usage = &output.json()["usage"];
    ["input", "output", "cache_read", "cache_write"].iter().filter_map(|key| usage[*key].as_u64()).sum()
}

fn with_tokens(text: &str, tokens: u64) -> String {
    text.replace("TOKENS", &tokens.to_string())
}

const NODE: &str = r#"
schema = 1
[workflow]
name = "wf"
[node.dear]
agent = "Explore"
prompt = "DEAR-NODE"
[node.dear.budget]
tokens = 200
[node.cheap]
agent = "Explore"
prompt = "CHEAP-NODE"
"#;

#[test]
fn a_node_that_spent_its_budget_fails_and_the_others_go_on() {
    let provider = ScriptedProvider::new([Route::answer(works)]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", NODE);
    let output = run(&sandbox, &[]).run(BOUND).expect_code(1);
    assert_eq!(provider.count(), 2 + 3, "{output}");
    let steps = output.json()["steps"].as_array().unwrap().clone();
    let dear = steps.iter().find(|step| step["step"] == "dear").unwrap();
    assert_eq!(dear["status"], "failed");
    let error = dear["error"].as_str().unwrap();
    assert!(error.contains("node.dear.budget.tokens") && error.contains("220 of 200"), "{error}");
    assert_eq!(steps.iter().find(|step| step["step"] == "cheap").unwrap()["status"], "succeeded");
}

const CHAIN: &str = r#"
schema = 1
[workflow]
name = "wf"
[budget]
tokens = TOKENS
[node.work]
agent = "Explore"
prompt = "WORK-{{ item }}-"
each = { items = ["a", "b", "c"], key = "{{ item }}" }
"#;

#[test]
fn a_run_that_spent_its_budget_stops_and_goes_on_with_a_higher_one() {
    let provider = ScriptedProvider::new([Route::answer(works)]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", with_tokens(CHAIN, 4 * EACH));
    let output = run(&sandbox, &[]).run(BOUND).expect_code(3);
    assert_eq!(provider.count(), 4, "{output}");
    assert_eq!(tokens(&output), 4 * EACH, "{output}");
    assert_eq!(output.json()["status"], "stopped");
    let told = output.json()["notes"].to_string() + &output.stderr;
    assert!(
        told.contains("budget.tokens: 440 of 440 tokens are spent") && told.contains("--resume"),
        "{told}"
    );
    // Nothing left: the same again.
    let output = run(&sandbox, &["--resume"]).run(BOUND).expect_code(3);
    assert_eq!((provider.count(), tokens(&output)), (4, 4 * EACH), "{output}");
    for (more, count) in [(6, 6), (7, 7)] {
        replace_file(sandbox.project().join("wf.toml"), with_tokens(CHAIN, more * EACH));
        let output = run(&sandbox, &["--resume"]).run(BOUND).expect_code(3);
        assert_eq!((provider.count(), tokens(&output)), (count, more * EACH), "{output}");
    }
    replace_file(sandbox.project().join("wf.toml"), with_tokens(CHAIN, 100_000));
    let output = run(&sandbox, &["--resume"]).run(BOUND).expect_code(0);
    assert_eq!(
        (provider.count(), tokens(&output)),
        (9, 9 * EACH),
        "each agent went on where it was: {output}"
    );
}

const MANY: &str = r#"
schema = 1
[workflow]
name = "wf"
[limits]
concurrency = 8
[budget]
tokens = TOKENS
[node.work]
agent = "Explore"
prompt = "WORK-{{ item }}-"
each = { items = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16], key = "{{ item }}" }
"#;

#[test]
fn eight_agents_at_once_pass_a_ceiling_by_no_more_than_a_request_each_with_failures_counted() {
    // Every fifth answer breaks off behind its first words: paid all the same.
    let seen = Arc::new(AtomicUsize::new(0));
    let provider = ScriptedProvider::new([Route::answer(move |request| {
        let reply = works(request);
        if seen.fetch_add(1, Ordering::SeqCst) % 5 == 4 {
            paid(Reply::text("broken")).end(claw_kit::End::Cut)
        } else {
            reply
        }
    })]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", with_tokens(MANY, 20 * EACH));
    let output = run(&sandbox, &[]).run(BOUND).expect_code(3);
    let spent = tokens(&output);
    assert!((20 * EACH..=(20 + 8) * EACH).contains(&spent), "{spent}: {output}");
    let asked = u64::try_from(provider.count()).unwrap();
    assert!(asked <= 28, "{asked}");
    let again = run(&sandbox, &["--resume"]).run(BOUND).expect_code(3);
    assert_eq!((tokens(&again), provider.count() as u64), (spent, asked), "{again}");
}

#[test]
fn dollars_of_the_flag_hold_and_a_model_without_a_price_is_refused_below_them() {
    let provider = ScriptedProvider::new([Route::answer(works)]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", CHAIN.replace("[budget]\ntokens = TOKENS\n", ""));
    let output =
        run(&sandbox, &["--max-usd", "0.0001", "--model", "claude-sonnet-4-6"]).run(BOUND).expect_code(3);
    assert_eq!(provider.count(), 1, "{output}");
    let told = output.json()["notes"].to_string() + &output.stderr;
    assert!(told.contains("--max-usd") && told.contains("USD are spent"), "{told}");
    let output = run(&sandbox, &["--max-usd", "1", "--model", "mystery"]).run(BOUND);
    assert_ne!(output.code, Some(0), "{output}");
    assert_eq!(provider.count(), 1, "{output}");
    let told = output.stdout.clone() + &output.stderr;
    assert!(told.contains("price") && told.contains("mystery"), "{output}");
    run(&sandbox, &["--max-usd", "none"]).run(BOUND).expect_code(2);
}

const FINAL: &str = r#"
schema = 1
[workflow]
name = "wf"
[budget]
turns = 2
reserve = 0.5
[node.work]
agent = "Explore"
prompt = "WORK-NODE"
[node.report]
prompt = "REPORT-NODE"
after = ["work"]
final = true
"#;

#[test]
fn a_part_is_kept_for_the_final_node() {
    let provider = ScriptedProvider::new([
        Route::reply(paid(Reply::text("the report"))).contains("REPORT-NODE"),
        Route::answer(works),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", FINAL);
    let output = run(&sandbox, &[]).run(BOUND).expect_code(3);
    assert_eq!(provider.count(), 2, "{output}");
    let steps = output.json()["steps"].as_array().unwrap().clone();
    let report = steps.iter().find(|step| step["step"] == "report").unwrap();
    assert_eq!(report["status"], "succeeded", "{output}");
}

fn wide(items: usize, concurrency: usize) -> String {
    let items: Vec<String> = (1..=items).map(|item| format!("\"i{item}\"")).collect();
    format!(
        "schema = 1\n[workflow]\nname = \"wf\"\n[limits]\nagents = 400\nconcurrency = {concurrency}\n[node.work]\nagent = \"Explore\"\nprompt = \"WORK-{{{{ item }}}}-\"\neach = {{ items = [{}], key = \"{{{{ item }}}}\" }}\n",
        items.join(", ")
    )
}

#[test]
fn a_quota_error_at_item_ten_of_many_stops_every_further_request_and_the_run_resumes() {
    let quota = json!({"type": "error", "error": {"type": "insufficient_quota", "code": "insufficient_quota", "message": "You exceeded your current quota"}});
    let (gate, tenth) = (Gate::closed(), Gate::closed());
    let held = gate.clone();
    let provider = ScriptedProvider::new([
        Route::reply(Reply::error(429, &quota).gate(&tenth)).contains("WORK-i10-").times(1),
        Route::answer(move |request| {
            let number: usize = (1..=344).rfind(|n| request.text.contains(&format!("WORK-i{n}-"))).unwrap();
            let reply = paid(Reply::text("done"));
            // Those in flight beside the tenth end behind it.
            if (7..=14).contains(&number) { reply.gate(&held) } else { reply }
        }),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", wide(344, 8));
    let running = claw(&sandbox).args(["--yes", "--output-format", "stream-json"]).spawn();
    gate.wait_for_waiting(7, BOUND);
    tenth.wait_for_waiting(1, BOUND);
    tenth.open();
    running.wait_for_stdout("exceeded your current quota", BOUND);
    gate.open();
    let output = running.wait(BOUND).expect_code(4);
    assert_eq!(provider.count(), 14, "{output}");
    let report = output.json_lines().pop().unwrap();
    assert_eq!(report["status"], "paused");
    assert!(report.to_string().contains("quota"), "{output}");
    let output = run(&sandbox, &["--resume", "--yes"]).run(BOUND).expect_code(0);
    assert_eq!(provider.count(), 344 + 1, "{}", output.stderr);
}

#[test]
fn a_storm_of_overload_is_waited_out_behind_one_probe_at_a_time() {
    let storm = json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}});
    let seen = Arc::new(AtomicUsize::new(0));
    let provider = ScriptedProvider::new([Route::answer(move |_| {
        if seen.fetch_add(1, Ordering::SeqCst) < 14 {
            Reply::error(529, &storm)
        } else {
            paid(Reply::text("done"))
        }
    })]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", wide(20, 8));
    let output = claw(&sandbox).args(["--output-format", "stream-json"]).run(BOUND).expect_code(0);
    let requests = provider.requests();
    assert_eq!(requests.len(), 14 + 20, "{output}");
    // The eight of the first moment, then probes.
    assert!(requests[8..14].iter().all(|request| request.in_flight == 1), "{output}");
    assert!(requests[14].in_flight == 1, "the probe that was answered");
    let waits = |line: &Value| line["waiting_for"].to_string().contains("breaker");
    assert!(output.json_lines().iter().any(waits), "{output}");
}

#[test]
fn a_service_that_stays_down_pauses_the_run() {
    let storm = json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}});
    let provider = ScriptedProvider::always(Reply::error(529, &storm));
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", wide(20, 8));
    let output = run(&sandbox, &[]).env("CLAW_BREAKER_LONGEST_MS", "300").run(BOUND).expect_code(4);
    assert!(provider.count() < 20, "{}: {output}", provider.count());
    assert!(output.stderr.contains("busy"), "{output}");
}

const THREE_HUNDRED: &str = r#"
schema = 1
[workflow]
name = "many"
result = "tell"
[limits]
agents = 1000
concurrency = 8
[budget]
tokens = TOKENS
reserve = 0.01
[node.work]
agent = "Explore"
prompt = "WORK-{{ item }}-"
each = { range = 300, key = "{{ item }}" }
[node.tell]
final = true
agent = "Explore"
needs = ["work"]
prompt = "TELL {{ nodes.work.status }}"
"#;

#[test]
fn of_three_hundred_items_a_third_runs_the_final_node_tells_and_resume_does_the_rest() {
    let provider = ScriptedProvider::new([
        Route::reply(paid(Reply::text("told"))).contains("TELL"),
        Route::reply(paid(Reply::text("done"))).contains("WORK-"),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", with_tokens(THREE_HUNDRED, 100 * EACH));
    let long = Duration::from_secs(120);
    let output = run(&sandbox, &["--yes"]).run(long).expect_code(3);
    let json = output.json();
    assert_eq!(
        (json["status"].as_str(), json["result"].as_str()),
        (Some("stopped"), Some("told")),
        "{output}"
    );
    let first = provider.requests_with("WORK-").len();
    assert!((90..=110).contains(&first), "{first} of 300 ran");
    assert_eq!(provider.requests_with("TELL").len(), 1);
    assert!(json["notes"].to_string().contains("budget.tokens"), "{output}");
    replace_file(sandbox.project().join("wf.toml"), with_tokens(THREE_HUNDRED, 100_000 * EACH));
    let output = run(&sandbox, &["--yes", "--resume"]).run(long).expect_code(0);
    assert_eq!(provider.requests_with("WORK-").len(), 300, "each item ran once: {output}");
    assert_eq!(output.json()["result"], "told");
}
