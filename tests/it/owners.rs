//! One process owns a run; copies of its folder are runs of their own.
//!
//! `CLAW_LONG_TESTS=1` tries a hundred times instead of a few.

use claw_kit::{Claw, Output, Reply, Route, Sandbox, ScriptedProvider, run_program, wait_until};
use serde_json::json;
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(30);
/// One that gives way says so at once, on a busy machine too.
const SOON: Duration = Duration::from_secs(3);

const TEXT: &str = "schema = 1\n[workflow]\nname = \"owned\"\n[node.first]\nkind = \"command\"\nrun = \"echo first >> effects.txt\"\n[node.a]\nneeds = [\"first\"]\nprompt = \"ASK\"\n";

/// It waits for a file.
const HELD: &str = r#"
schema = 1
[workflow]
name = "held"
result = "held"
[node.first]
kind = "command"
run = "echo first >> effects.txt"
[node.ready]
kind = "command"
on_crash = "retry"
run = ["test", "-e", "ready"]
[node.held]
kind = "command"
on_crash = "retry"
needs = ["first", "ready"]
run = "while [ ! -e go ]; do sleep 0.02; done; echo went"
"#;

fn claw(sandbox: &Sandbox, args: &[&str]) -> Claw {
    Claw::new(CLAW, sandbox).args(["run", "wf.toml", "--no-progress"]).args(args)
}

fn trials() -> usize {
    if std::env::var("CLAW_LONG_TESTS").is_ok_and(|long| long == "1") { 100 } else { 10 }
}

/// Sequence without a gap, each take with its own process.
fn is_in_order(sandbox: &Sandbox) {
    let records = sandbox.newest_run().journal();
    for (at, record) in records.iter().enumerate() {
        assert_eq!(record["seq"].as_u64(), Some(at as u64 + 1), "{record}");
    }
}

#[test]
fn of_many_that_start_at_once_exactly_one_writes_and_the_others_name_it() {
    let sandbox = Sandbox::new();
    sandbox.write("wf.toml", HELD);
    claw(&sandbox, &[]).run(BOUND).expect_code(1);
    sandbox.write("ready", "");
    for trial in 0..trials() {
        let three: Vec<_> = (0..3).map(|_| claw(&sandbox, &["--resume"]).spawn()).collect();
        let left = || three.iter().filter(|one| one.is_running()).count();
        wait_until("two that give way", BOUND, || left() <= 1);
        assert_eq!(left(), 1, "trial {trial}");
        let (winners, losers): (Vec<_>, Vec<_>) = three.into_iter().partition(claw_kit::Running::is_running);
        let pid = winners[0].pid();
        for loser in losers {
            let output = loser.wait(BOUND).expect_code(6);
            assert!(output.stderr.contains(&format!("process {pid} since ")), "trial {trial}: {output}");
            assert!(output.took < SOON, "trial {trial}: {output}");
        }
        // Every other one dies with the run in its hands: its lock never has to be taken away by hand.
        if trial % 2 == 0 {
            winners[0].kill9();
            is_in_order(&sandbox);
            continue;
        }
        sandbox.write("go", "");
        for winner in winners {
            assert_eq!(winner.wait(BOUND).expect_code(0).stdout, "went\n");
        }
        is_in_order(&sandbox);
        let intents = sandbox.newest_run().events("intent").len();
        assert_eq!(sandbox.read("effects.txt"), "first\n", "trial {trial}");
        // The next trial has something to do.
        std::fs::remove_file(sandbox.project().join("go")).unwrap();
        let next = claw(&sandbox, &["--from", "held"]).spawn();
        wait_until("an effect", BOUND, || sandbox.newest_run().events("intent").len() > intents);
        next.kill9();
    }
    sandbox.write("go", "");
    assert_eq!(claw(&sandbox, &["--resume"]).run(BOUND).expect_code(0).stdout, "went\n");
}

fn failed() -> (ScriptedProvider, Sandbox) {
    let provider = ScriptedProvider::new([
        Route::reply(Reply::error(400, &json!({"error": {"message": "no"}}))).times(1),
        Route::reply(Reply::text("seen")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", TEXT);
    claw(&sandbox, &[]).run(BOUND).expect_code(1);
    (provider, sandbox)
}

fn copy(sandbox: &Sandbox, from: &str, to: &str) {
    run_program(&sandbox.project(), "cp", &["-a", from, to]).expect("a copy");
}

fn quiet(output: &Output) {
    assert!(!output.stderr.contains("panicked") && output.code != Some(70), "{output}");
}

#[test]
fn a_copy_of_the_state_in_another_project_is_a_run_of_its_own() {
    let (_provider, sandbox) = failed();
    let other = sandbox.project().with_file_name("other");
    copy(&sandbox, ".", &other.to_string_lossy());
    let both =
        [sandbox.project(), other.clone()].map(|folder| claw(&sandbox, &["--resume"]).folder(folder).spawn());
    for running in both {
        assert_eq!(running.wait(BOUND).expect_code(0).stdout, "seen\n");
    }
    for folder in [sandbox.project(), other] {
        assert_eq!(std::fs::read_to_string(folder.join("effects.txt")).unwrap(), "first\n");
    }
    is_in_order(&sandbox);
}

#[test]
fn a_copy_of_a_run_beside_it_harms_neither() {
    let (_provider, sandbox) = failed();
    let run = sandbox.newest_run();
    let before = run.read("journal.jsonl");
    copy(&sandbox, &run.path().to_string_lossy(), &run.path().with_extension("copy").to_string_lossy());
    copy(&sandbox, &run.path().to_string_lossy(), ".claw/runs/01ZZZZZZZZZZZZZZZZZZZZZZZZ");
    for args in [&["runs", "list"][..], &["runs", "show", "latest"], &["runs", "show", &run.id()]] {
        quiet(&Claw::new(CLAW, &sandbox).args(args).run(BOUND));
    }
    assert_eq!(run.read("journal.jsonl"), before);
    let named = format!("--resume={}", run.id());
    let output = claw(&sandbox, &[&named]).run(BOUND).expect_code(0);
    assert_eq!(output.stdout, "seen\n", "{output}");
    quiet(&claw(&sandbox, &["--resume"]).run(BOUND));
    assert_eq!(sandbox.read("effects.txt"), "first\n");
}
