//! What the machine refuses: folders that cannot be written, outputs that nobody reads, disks without space at any
//! moment. A clear end in one line, and the same command goes on when the cause is gone.
//!
//! `CLAW_LONG_TESTS=1` tries many more moments.

use claw_kit::{Claw, Output, Reply, Route, Sandbox, ScriptedProvider, run_program};
use serde_json::json;
use std::path::Path;
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(20);
/// An error is said within this time, on a busy machine.
const SOON: Duration = Duration::from_secs(3);

const TEXT: &str = "schema = 1\n[workflow]\nname = \"many\"\n[limits]\nconcurrency = 4\n[node.look]\nagent = \"Explore\"\nprompt = \"ITEM-{{ item }}-\"\neach = { range = 12, key = \"{{ item }}\" }\n";

fn long() -> bool {
    std::env::var("CLAW_LONG_TESTS").is_ok_and(|long| long == "1")
}

fn house(provider: &ScriptedProvider) -> Sandbox {
    let sandbox = Sandbox::anthropic(provider);
    sandbox.write("wf.toml", TEXT);
    sandbox
}

/// A script in the project.
fn script(sandbox: &Sandbox, text: &str) -> Output {
    let output = Claw::new("/bin/sh", sandbox).args(["-c", text]).run(BOUND);
    assert!(!output.stderr.contains("panicked") && output.signal.is_none(), "{text}: {output}");
    output
}

fn is_root() -> bool {
    run_program(Path::new("/"), "id", &["-u"]).is_some_and(|id| id.trim() == "0")
}

/// As a user to whom the modes of files apply: root as well.
fn unprivileged() -> &'static str {
    if is_root() { "setpriv --bounding-set=-dac_override,-dac_read_search,-fowner " } else { "" }
}

#[test]
fn folders_that_cannot_be_written_are_named_at_once() {
    let provider = ScriptedProvider::always(Reply::text("fine"));
    for folder in [".claw/runs", ".claw", "."] {
        let sandbox = house(&provider);
        let text = format!(
            "mkdir -p {folder} && chmod 0500 {folder} && {}{CLAW} run wf.toml; code=$?; chmod 0700 {folder}; exit $code",
            unprivileged()
        );
        let output = script(&sandbox, &text).expect_code(74);
        assert!(output.stderr.contains(".claw") && output.stderr.contains("error:"), "{folder}: {output}");
        assert!(output.took < SOON, "{folder}: {:?}", output.took);
        script(&sandbox, &format!("{CLAW} run wf.toml")).expect_code(0);
    }
    assert_eq!(provider.count(), 3 * 12);
}

#[test]
fn a_run_whose_folder_is_closed_to_it_says_so_and_goes_on_later() {
    let provider = ScriptedProvider::new([
        Route::reply(Reply::error(400, &json!({"error": {"message": "no"}}))).times(12),
        Route::reply(Reply::text("fine")),
    ]);
    let sandbox = house(&provider);
    script(&sandbox, &format!("{CLAW} run wf.toml")).expect_code(1);
    let text = format!(
        "chmod 0500 .claw/runs/*/ && {}{CLAW} run wf.toml --resume; code=$?; chmod 0700 .claw/runs/*/; exit $code",
        unprivileged()
    );
    let output = script(&sandbox, &text).expect_code(74);
    assert!(output.stderr.contains(".claw/runs/") && output.took < SOON, "{output}");
    script(&sandbox, &format!("{CLAW} run wf.toml --resume")).expect_code(0);
}

#[test]
fn in_a_repository_that_is_read_only_one_can_ask_and_not_run() {
    let provider = ScriptedProvider::always(Reply::text("fine"));
    let sandbox = house(&provider).with_git();
    if run_program(&sandbox.project(), "unshare", &["-rm", "true"]).is_none() {
        return;
    }
    let read_only = |command: &str| {
        let text = format!(
            "exec unshare -rm sh -c 'mount --bind . . && mount -o remount,ro,bind . && cd \"$PWD\" && exec {CLAW} {command}'"
        );
        script(&sandbox, &text)
    };
    let output = read_only("run wf.toml").expect_code(74);
    assert!(output.stderr.contains(".claw") && output.took < SOON, "{output}");
    let output = read_only("-p hello").expect_code(0);
    assert!(output.stdout.contains("fine"), "{output}");
    read_only("workflow check wf.toml").expect_code(0);
    read_only("runs list").expect_code(0);
}

#[test]
fn a_closed_standard_output_is_an_error_and_no_panic() {
    let provider = ScriptedProvider::always(Reply::text("fine"));
    let sandbox = house(&provider);
    for command in [
        "-p hello",
        "run wf.toml",
        "runs list",
        "workflow schema",
        "--help",
        "run wf.toml --output-format stream-json",
    ] {
        let output = script(&sandbox, &format!("exec {CLAW} {command} >&-"));
        assert_ne!(output.code, Some(0), "{command}: {output}");
    }
}

#[test]
fn a_reader_that_went_away_ends_it_without_a_word() {
    let provider = ScriptedProvider::always(Reply::text("fine"));
    let sandbox = house(&provider);
    for command in ["-p hello", "run wf.toml --no-progress", "workflow schema", "--help"] {
        let text = format!("rm -f p; mkfifo p; : <p & exec 3>p; wait; {CLAW} {command} >&3; exit $?");
        let output = script(&sandbox, &text).expect_code(141);
        assert!(!output.stderr.contains("error:"), "{command}: {output}");
    }
}

#[test]
fn a_disk_without_space_or_names_at_any_moment_is_exit_74_and_the_run_goes_on() {
    let provider = ScriptedProvider::always(Reply::text("word ".repeat(2_000)));
    let sandbox = house(&provider);
    if run_program(&sandbox.project(), "unshare", &["-rm", "true"]).is_none() {
        return;
    }
    let mut limits = vec![
        "size=256k".to_owned(),
        "size=48k".to_owned(),
        "nr_inodes=5".to_owned(),
        "nr_inodes=24".to_owned(),
    ];
    if long() {
        limits.extend((1..40).map(|n| format!("size={}k", 8 * n)));
        limits.extend((2..80).map(|n| format!("nr_inodes={n}")));
    }
    let mut full = 0;
    for limit in limits {
        // The disk grows, as if space had come back, and the same command goes on.
        let text = format!(
            "mkdir -p .claw && exec unshare -rm sh -c 'mount -t tmpfs -o {limit} none .claw && {CLAW} run wf.toml; code=$?; echo first: $code >&2; \
             mount -o remount,size=64m,nr_inodes=100000 .claw || exit 99; \
             if ls .claw/runs/*/journal.jsonl >/dev/null 2>&1; then {CLAW} run wf.toml --resume; else {CLAW} run wf.toml; fi'"
        );
        let output = script(&sandbox, &text);
        if output.code == Some(99) {
            return;
        }
        assert_eq!(output.code, Some(0), "{limit}: {output}");
        let (first, _) = output.stderr.split_once("first: ").unwrap_or_default();
        if output.stderr.contains("first: 74") {
            full += 1;
            assert!(first.contains(".claw") && first.contains("space"), "{limit}: {output}");
        } else {
            assert!(output.stderr.contains("first: 0"), "{limit}: {output}");
        }
    }
    assert!(full >= 3, "the disk was never full");
}

/// A resume one of whose writes to the journal fails.
fn resume_with(sandbox: &Sandbox, journal: &Path, inject: &str) -> Output {
    let call = inject.split(':').next().unwrap_or_default();
    let trace = format!("trace={call}");
    let inject = format!("inject={inject}");
    let path = journal.to_string_lossy();
    let args = ["-f", "-qq", "-o", "/dev/null", "-P", &path, "-e", &trace, "-e", &inject, CLAW];
    Claw::new("strace", sandbox).args(args).args(["run", "wf.toml", "--resume"]).run(BOUND)
}

#[test]
fn a_write_to_the_journal_that_fails_ends_the_run_and_loses_nothing() {
    if run_program(Path::new("/"), "strace", &["-V"]).is_none() {
        return;
    }
    let moments: usize = if long() { 40 } else { 3 };
    for (call, error) in [("write", "ENOSPC"), ("fdatasync", "EIO")] {
        for when in 1..=moments {
            let provider = ScriptedProvider::new([
                Route::reply(Reply::error(400, &json!({"error": {"message": "no"}}))).times(12),
                Route::reply(Reply::text("fine")),
            ]);
            let sandbox = house(&provider);
            script(&sandbox, &format!("{CLAW} run wf.toml")).expect_code(1);
            let journal = sandbox.newest_run().path().join("journal.jsonl");
            let output = resume_with(&sandbox, &journal, &format!("{call}:error={error}:when={when}"));
            let what = format!("{call} {when}");
            assert!(!output.stderr.contains("panicked"), "{what}: {output}");
            if output.code != Some(0) {
                assert_eq!(output.code, Some(74), "{what}: {output}");
                assert!(output.stderr.contains("journal.jsonl"), "{what}: {output}");
            }
            assert!(output.code == Some(74) || when > 2, "{what} did not fail: {output}");
            let done = sandbox.newest_run().events("ended").into_iter();
            let done = done.filter(|record| record["data"]["state"] == "succeeded").count();
            let before = provider.count();
            script(&sandbox, &format!("{CLAW} run wf.toml --resume")).expect_code(0);
            assert!(provider.count() - before <= 12 - done, "{what}: what was done was asked again");
        }
    }
}
