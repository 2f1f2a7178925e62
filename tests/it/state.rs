//! What a run leaves on disk and prints as events: shapes and modes that others rely on.

use claw_kit::{Claw, Gate, Output, Reply, Route, Sandbox, ScriptedProvider};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(20);

const MIXED: &str = r#"
schema = 1
[workflow]
name = "mixed"
[node.look]
agent = "Explore"
prompt = "LOOK-{{ item }}"
each = { items = ["a/b", "../c", "ä ö", "x"], key = "{{ item }}" }
[node.count]
kind = "command"
needs = ["look"]
run = "echo counted; echo aside >&2"
[node.sum]
kind = "merge"
needs = ["look", "count"]
from = ["look.outputs", "count"]
strategy = "concat"
"#;

fn claw(sandbox: &Sandbox, args: &[&str]) -> Output {
    Claw::new(CLAW, sandbox).args(args).run(BOUND)
}

fn house() -> (ScriptedProvider, Sandbox) {
    let provider = ScriptedProvider::new([
        Route::reply(Reply::text("found it").tokens(100, 20, 7)).contains("tool_result"),
        Route::reply(Reply::tool("t1", "glob_search", json!({"pattern": "*"})).tokens(50, 10, 3)),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", MIXED);
    (provider, sandbox)
}

fn walk(folder: &Path, visit: &mut impl FnMut(&Path, u32)) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        let mode = std::fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777;
        visit(&path, mode);
        if path.is_dir() {
            walk(&path, visit);
        }
    }
}

#[test]
fn files_are_private_and_the_folder_keeps_itself_out_of_git() {
    let (_provider, sandbox) = house();
    claw(&sandbox, &["run", "wf.toml"]).expect_code(0);
    assert_eq!(sandbox.read(".claw/runs/.gitignore").trim(), "*");
    let run = sandbox.newest_run();
    walk(run.path(), &mut |path, mode| {
        let wanted = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, wanted, "{} has mode {mode:o}", path.display());
    });
}

#[test]
fn keys_of_items_are_safe_names_and_never_meet() {
    let (_provider, sandbox) = house();
    claw(&sandbox, &["run", "wf.toml"]).expect_code(0);
    let run = sandbox.newest_run();
    let names: BTreeSet<String> = run.manifests().into_keys().collect();
    let expected = ["count.1", "look=%C3%A4%20%C3%B6.1", "look=..%2Fc.1", "look=a%2Fb.1", "look=x.1"];
    assert_eq!(names, expected.map(str::to_owned).into());
}

#[test]
fn a_manifest_tells_who_ran_how_and_what_it_cost() {
    let (_provider, sandbox) = house();
    claw(&sandbox, &["run", "wf.toml"]).expect_code(0);
    let run = sandbox.newest_run();
    let manifest = run.manifest("look=x");
    for key in [
        "agentId",
        "runId",
        "step",
        "attempt",
        "subagentType",
        "model",
        "permissionMode",
        "tools",
        "status",
        "createdAt",
        "startedAt",
        "completedAt",
        "outputFile",
        "transcriptFile",
        "manifestFile",
        "usage",
        "turns",
        "toolCalls",
    ] {
        assert!(!manifest[key].is_null(), "{key} is missing: {manifest:#}");
    }
    assert_eq!((&manifest["status"], &manifest["subagentType"]), (&json!("completed"), &json!("Explore")));
    assert_eq!((&manifest["turns"], &manifest["toolCalls"]["glob_search"]), (&json!(2), &json!(1)));
    assert!(manifest["agentId"].as_str().is_some_and(|id| id.starts_with("ag_") && id.len() == 29));
    let raw = run.read("nodes/look=x.1/manifest.json");
    assert!(raw.contains("\n  \"") && !raw.contains("null"), "{raw}");
    let told = run.read("nodes/look=x.1/output.md");
    for part in [
        "# Agent Task",
        "## Prompt",
        "LOOK-x",
        "## Result",
        "- status: completed",
        "### Final response",
        "found it",
    ] {
        assert!(told.contains(part), "{part} is not in {told}");
    }
    assert_eq!(run.read("nodes/count.1/stdout"), "counted\n");
    assert_eq!(run.read("nodes/count.1/stderr"), "aside\n");
}

#[test]
fn the_journal_counts_up_and_says_things_before_they_happen() {
    let (_provider, sandbox) = house();
    claw(&sandbox, &["run", "wf.toml"]).expect_code(0);
    let journal = sandbox.newest_run().journal();
    let seqs: Vec<u64> = journal.iter().filter_map(|record| record["seq"].as_u64()).collect();
    assert_eq!(seqs, (1..=journal.len() as u64).collect::<Vec<_>>());
    let events = |step: &str| -> Vec<String> {
        let of = journal.iter().filter(|record| record["step"] == step);
        of.filter_map(|record| record["event"].as_str().map(str::to_owned)).collect()
    };
    assert_eq!(events("count"), ["admitted", "intent", "done", "ended"]);
    assert_eq!(journal[0]["event"], "take");
    assert_eq!(journal.last().map(|record| &record["event"]), Some(&json!("run_ended")));
    assert!(journal.iter().all(|record| record["crc"].as_str().is_some_and(|crc| crc.len() == 8)));
}

#[test]
fn events_are_one_object_a_line_and_the_last_is_what_json_prints() {
    let (_provider, sandbox) = house();
    let output = claw(&sandbox, &["run", "wf.toml", "--output-format", "stream-json"]).expect_code(0);
    let lines = output.json_lines();
    let known = ["run.started", "step.state", "agent.turn", "agent.tool", "agent.usage", "note", "run.ended"];
    let (last, events) = lines.split_last().unwrap();
    let mut seq = 0;
    for event in events {
        let kind = event["type"].as_str().unwrap_or_default();
        assert!(known.contains(&kind), "{event}");
        let next = event["seq"].as_u64().unwrap_or_default();
        assert!(
            event["v"] == 1 && event["run"].is_string() && event["at"].is_string() && next > seq,
            "{event}"
        );
        seq = next;
    }
    assert_eq!(events[0]["type"], "run.started");
    for key in [
        "schema",
        "run_id",
        "workflow",
        "status",
        "exit_code",
        "result",
        "steps",
        "usage",
        "permission_denials",
    ] {
        assert!(!last[key].is_null(), "{key} is missing: {last}");
    }
    let again =
        claw(&sandbox, &["run", "wf.toml", "--resume", "--output-format", "json"]).expect_code(0).json();
    let keys =
        |value: &Value| value.as_object().map(|fields| fields.keys().cloned().collect::<BTreeSet<_>>());
    assert_eq!(keys(&again), keys(last));
    assert_eq!(again["result"], last["result"]);
}

#[test]
fn usage_is_summed_over_all_agents_and_a_resume_does_not_lose_it() {
    let (_provider, sandbox) = house();
    let first = claw(&sandbox, &["run", "wf.toml", "--output-format", "json"]).expect_code(0).json();
    let sum = |key: &str| first["usage"][key].as_u64().unwrap_or_default();
    let counts = (sum("input"), sum("cache_read"), sum("output"));
    assert_eq!(counts, (4 * 150, 4 * 30, 4 * 10), "{}", first["usage"]);
    let again =
        claw(&sandbox, &["run", "wf.toml", "--resume", "--output-format", "json"]).expect_code(0).json();
    assert_eq!((&again["usage"], &again["total_cost_usd"]), (&first["usage"], &first["total_cost_usd"]));
}

#[test]
fn a_run_in_a_subfolder_of_a_repository_lives_at_its_top() {
    let (_provider, sandbox) = house();
    sandbox.write("deep/er/wf.toml", MIXED);
    let sandbox = sandbox.with_git();
    let folder = sandbox.project().join("deep/er");
    Claw::new(CLAW, &sandbox).args(["run", "wf.toml"]).folder(&folder).run(BOUND).expect_code(0);
    assert!(sandbox.has(".claw/runs") && !sandbox.has("deep/er/.claw"));
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "", "git sees files of claw");
    Claw::new(CLAW, &sandbox)
        .args(["run", "er/wf.toml", "--resume"])
        .folder(sandbox.project().join("deep"))
        .run(BOUND)
        .expect_code(0);
    assert_eq!(sandbox.runs().len(), 1, "the same file from another folder");
}

#[test]
fn runs_are_listed_and_shown_and_a_dead_one_is_called_interrupted() {
    let gate = Gate::closed();
    let provider = ScriptedProvider::always(Reply::text("late").gate(&gate));
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", "schema = 1\n[workflow]\nname = \"dead\"\n[node.a]\nprompt = \"a\"\n");
    let running = Claw::new(CLAW, &sandbox).args(["run", "wf.toml"]).spawn();
    gate.wait_for_waiting(1, BOUND);
    let id = sandbox.newest_run().id();
    assert!(claw(&sandbox, &["runs", "list"]).expect_code(0).stdout.contains("running"));
    running.kill9();
    for args in [&["runs", "list"][..], &["runs", "show", &id]] {
        let output = claw(&sandbox, args).expect_code(0);
        assert!(
            output.stdout.contains("dead") && output.stdout.contains("interrupted"),
            "{args:?}: {output}"
        );
        assert!(!output.stdout.contains("running"), "{output}");
    }
    gate.open();
    claw(&sandbox, &["run", "wf.toml", "--resume"]).expect_code(0);
    assert!(claw(&sandbox, &["runs", "show", &id]).expect_code(0).stdout.contains("succeeded"));
    assert!(claw(&sandbox, &["runs", "show", &id, "a"]).expect_code(0).stdout.contains("late"));
}

#[test]
fn six_starts_at_once_are_six_runs() {
    let (provider, sandbox) = house();
    let running: Vec<_> =
        (0..6).map(|_| Claw::new(CLAW, &sandbox).args(["run", "wf.toml"]).spawn()).collect();
    for one in running {
        one.wait(BOUND).expect_code(0);
    }
    assert_eq!((sandbox.runs().len(), provider.count()), (6, 6 * 8));
    for run in sandbox.runs() {
        assert_eq!(run.journal().last().map(|record| record["event"].clone()), Some(json!("run_ended")));
    }
}

#[test]
fn of_six_resumes_at_once_one_holds_the_run() {
    let gate = Gate::closed();
    let provider = ScriptedProvider::new([
        Route::reply(Reply::error(400, &json!({"error": {"message": "no"}}))).times(1),
        Route::reply(Reply::text("fine").gate(&gate)),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", "schema = 1\n[workflow]\nname = \"one\"\n[node.a]\nprompt = \"a\"\n");
    claw(&sandbox, &["run", "wf.toml"]).expect_code(1);
    let running: Vec<_> =
        (0..6).map(|_| Claw::new(CLAW, &sandbox).args(["run", "wf.toml", "--resume"]).spawn()).collect();
    gate.wait_for_waiting(1, BOUND);
    claw_kit::wait_until("five that gave up", BOUND, || {
        running.iter().filter(|one| one.is_running()).count() == 1
    });
    gate.open();
    let mut codes: Vec<_> = running.into_iter().map(|one| one.wait(BOUND).code).collect();
    codes.sort();
    assert_eq!(codes, [Some(0), Some(6), Some(6), Some(6), Some(6), Some(6)]);
    assert_eq!(provider.count(), 2);
}

#[test]
fn the_journal_of_an_agent_stays_below_four_kibibytes() {
    let provider = ScriptedProvider::always(Reply::text("fine"));
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write(
        "wf.toml",
        "schema = 1\n[workflow]\nname = \"many\"\n[node.look]\nagent = \"Explore\"\nprompt = \"ITEM-{{ item }}-\"\neach = { range = 50, key = \"{{ item }}\" }\n",
    );
    Claw::new(CLAW, &sandbox).args(["run", "wf.toml"]).run(BOUND).expect_code(0);
    let bytes = sandbox.newest_run().read("journal.jsonl").len();
    assert!(bytes / 50 < 4096, "{} bytes for each agent", bytes / 50);
}
