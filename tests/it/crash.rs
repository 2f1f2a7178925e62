//! Kills at many points of a graph of agents and commands. An `O_APPEND` file, not claw, tells what ran.
//!
//! `CLAW_CRASH_POINTS` says how many points; few by default, hundreds by night.

use claw_kit::{Claw, Reply, Route, RunFolder, Sandbox, ScriptedProvider, run_program, wait_until};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(20);

/// Twelve steps: four times an agent, a command on its answer, and an agent on that.
fn graph() -> String {
    let mut text = String::from("schema = 1\n[workflow]\nname = \"crash\"\n[limits]\nconcurrency = 3\n");
    for n in 1..=4 {
        let before = if n > 1 { format!("needs = [\"last{}\"]\n", n - 1) } else { String::new() };
        text += &format!("[node.first{n}]\nagent = \"Explore\"\nprompt = \"ASK first{n}.\"\n{before}");
        text += &format!(
            "[node.run{n}]\nkind = \"command\"\non_crash = \"retry\"\nneeds = [\"first{n}\"]\nrun = \"echo run{n} >> effects.txt; echo effect {n}\"\n"
        );
        text += &format!(
            "[node.last{n}]\nagent = \"Explore\"\nneeds = [\"run{n}\"]\nprompt = \"ASK last{n}. {{{{ run{n} }}}}\"\n"
        );
    }
    // The first and the third chain begin at once.
    text.replace("prompt = \"ASK first3.\"\nneeds = [\"last2\"]", "prompt = \"ASK first3.\"")
        + "[node.report]\nkind = \"merge\"\nneeds = [\"last1\", \"last2\", \"last3\", \"last4\", \"run4\"]\nfrom = [\"last1\", \"last2\", \"last3\", \"last4\", \"run4\"]\nstrategy = \"concat\"\n"
}

fn house() -> (ScriptedProvider, Sandbox) {
    let provider = ScriptedProvider::new([Route::answer(|request| {
        let asked = request.text.split("ASK ").nth(1).and_then(|rest| rest.split('.').next());
        Reply::text(format!("answer of {}", asked.unwrap_or("nobody")))
    })]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", graph());
    (provider, sandbox)
}

fn claw(sandbox: &Sandbox, resume: bool) -> Claw {
    let resumes: &[&str] = if resume { &["--resume"] } else { &[] };
    Claw::new(CLAW, sandbox).args(["run", "wf.toml"]).args(resumes)
}

/// How often each command ran, as the file outside tells.
fn effects(sandbox: &Sandbox) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    let text = std::fs::read_to_string(sandbox.project().join("effects.txt")).unwrap_or_default();
    for line in text.lines() {
        *counts.entry(line.to_owned()).or_default() += 1;
    }
    counts
}

/// The steps of which a record says that they are done or succeeded.
fn done(run: &RunFolder) -> BTreeSet<String> {
    run.journal()
        .into_iter()
        .filter(|record| match record["event"].as_str() {
            Some("done") => record["data"]["call"].is_null(),
            Some("ended") => record["data"]["state"] == "succeeded",
            _ => false,
        })
        .filter_map(|record| record["step"].as_str().map(str::to_owned))
        .collect()
}

fn lines(sandbox: &Sandbox) -> usize {
    let run = sandbox.runs().pop();
    let text = run.and_then(|run| std::fs::read(run.path().join("journal.jsonl")).ok()).unwrap_or_default();
    text.iter().filter(|byte| **byte == b'\n').count()
}

/// Kills a take when its journal has so many lines. Says whether there is a run to go on with.
fn kill_at(sandbox: &Sandbox, resume: bool, line: usize) {
    let running = claw(sandbox, resume).spawn();
    wait_until("a line of the journal", BOUND, || lines(sandbox) >= line || !running.is_running());
    running.kill9();
}

#[test]
fn wherever_it_is_killed_nothing_that_is_done_runs_twice() {
    let points: usize = std::env::var("CLAW_CRASH_POINTS").ok().and_then(|n| n.parse().ok()).unwrap_or(5);
    let (provider, sandbox) = house();
    let undisturbed = claw(&sandbox, false).run(BOUND).expect_code(0).stdout;
    assert_eq!((provider.count(), effects(&sandbox).len()), (8, 4));
    let total = lines(&sandbox);
    for point in 0..points {
        let (provider, sandbox) = house();
        let line = 1 + point * total.saturating_sub(1) / points;
        kill_at(&sandbox, false, line);
        let mut takes = 1;
        let (mut was_done, mut had) = (done(&sandbox.newest_run()), effects(&sandbox));
        // Every other time the resume is killed as well.
        if point % 2 == 1 {
            kill_at(&sandbox, true, lines(&sandbox) + 6);
            takes += 1;
            check(&sandbox, &was_done, &had, line);
            (was_done, had) = (done(&sandbox.newest_run()), effects(&sandbox));
        }
        let output = claw(&sandbox, true).run(BOUND).expect_code(0);
        assert_eq!(output.stdout, undisturbed, "killed at line {line} of {total}");
        check(&sandbox, &was_done, &had, line);
        assert_eq!(effects(&sandbox).len(), 4);
        // At most what was in flight at each kill is asked again.
        assert!(provider.count() <= 8 + 3 * takes, "line {line}: {} requests", provider.count());
        let open =
            sandbox.newest_run().statuses().into_iter().filter(|(_, status)| status == "running").count();
        assert_eq!(open, 0, "line {line}");
    }
}

fn check(sandbox: &Sandbox, was_done: &BTreeSet<String>, had: &BTreeMap<String, usize>, line: usize) {
    for (step, times) in effects(sandbox) {
        if was_done.contains(&step) {
            assert_eq!(Some(&times), had.get(&step), "killed at line {line}: {step} was done and ran again");
        }
    }
}

/// A take that dies at the `when`th call of one kind in one of its threads. Says whether it died.
fn kill_at_call(sandbox: &Sandbox, call: &str, when: usize) -> bool {
    let inject = format!("inject={call}:signal=KILL:when={when}");
    let args = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=none", "-e", &inject, CLAW, "run", "wf.toml"];
    let resumes: &[&str] = if sandbox.runs().is_empty() { &[] } else { &["--resume"] };
    let output = Claw::new("strace", sandbox).args(args).args(resumes).run(BOUND);
    output.signal == Some(9) || output.code == Some(137)
}

#[test]
fn killed_at_exact_system_calls_it_goes_on_as_well() {
    if run_program(Path::new("/"), "strace", &["-V"]).is_none() {
        return;
    }
    let points: usize = std::env::var("CLAW_CRASH_POINTS").ok().and_then(|n| n.parse().ok()).unwrap_or(5);
    let (_provider, sandbox) = house();
    let undisturbed = claw(&sandbox, false).run(BOUND).expect_code(0).stdout;
    let calls = ["fdatasync", "rename,renameat,renameat2", "write", "openat", "fsync", "close"];
    for point in 0..points {
        let (_provider, sandbox) = house();
        let (call, when) = (calls[point % calls.len()], 1 + point * 7 / calls.len());
        let what = format!("{call} number {when}");
        let died = kill_at_call(&sandbox, call, when);
        let run = sandbox.runs().pop();
        let (was_done, had) = (run.as_ref().map(done).unwrap_or_default(), effects(&sandbox));
        assert!(died || was_done.len() == 13, "{what}: it neither died nor came to its end");
        let output =
            claw(&sandbox, run.is_some_and(|run| run.path().join("journal.jsonl").exists())).run(BOUND);
        let output = if output.code == Some(0) { output } else { panic!("{what}: {output}") };
        assert_eq!(output.stdout, undisturbed, "{what}");
        check(&sandbox, &was_done, &had, when);
        assert_eq!(effects(&sandbox).len(), 4, "{what}");
    }
}
