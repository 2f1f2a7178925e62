//! State as input: journals, manifests and small files that somebody or something changed. Never a panic; the loss is
//! limited and told; nothing on disk grants anything.
//!
//! `CLAW_LONG_TESTS=1` damages every place instead of a few.

use claw_kit::{Claw, Output, Reply, Route, RunFolder, Sandbox, ScriptedProvider, replace_file};
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(30);

const TEXT: &str = r#"
schema = 1
[workflow]
name = "state"
[node.look]
agent = "Explore"
prompt = "ITEM-{{ item }}-"
each = { range = 4, key = "{{ item }}" }
[node.sum]
needs = ["look"]
prompt = "SUM {{ look.outputs | json }}"
"#;

fn house() -> (ScriptedProvider, Sandbox) {
    let provider = ScriptedProvider::always(Reply::text("fine"));
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", TEXT);
    claw(&sandbox, &["run", "wf.toml"]).expect_code(0);
    (provider, sandbox)
}

fn claw(sandbox: &Sandbox, args: &[&str]) -> Output {
    let output = Claw::new(CLAW, sandbox).args(args).run(BOUND);
    assert!(
        !output.stderr.contains("panicked") && output.signal.is_none() && output.code != Some(101),
        "{output}"
    );
    assert_ne!(output.code, Some(70), "{output}");
    output
}

fn journal(run: &RunFolder) -> PathBuf {
    run.path().join("journal.jsonl")
}

fn step(len: usize, few: usize) -> usize {
    if std::env::var("CLAW_LONG_TESTS").is_ok_and(|long| long == "1") { 1 } else { (len / few).max(1) }
}

/// The first line that differs, as an offset.
fn line_start(bytes: &[u8], at: usize) -> usize {
    bytes[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
}

#[test]
fn a_journal_cut_anywhere_loses_its_last_line_and_says_where() {
    let (_provider, sandbox) = house();
    let path = journal(&sandbox.newest_run());
    let whole = std::fs::read(&path).unwrap();
    for cut in (1..whole.len()).step_by(step(whole.len(), 6)) {
        replace_file(&path, &whole[..cut]);
        let output = claw(&sandbox, &["run", "wf.toml", "--resume"]).expect_code(0);
        let start = line_start(&whole, cut);
        let torn = format!("torn at byte {start}");
        assert_eq!(output.stderr.contains(&torn), start != cut, "cut at {cut}: {output}");
    }
}

#[test]
fn a_flipped_byte_is_told_with_its_place_and_can_be_given_up() {
    let (provider, sandbox) = house();
    let path = journal(&sandbox.newest_run());
    let whole = std::fs::read(&path).unwrap();
    let last = line_start(&whole, whole.len() - 1);
    for at in (0..last).step_by(step(last, 5)) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x20;
        if bytes[at] == b'\n' || whole[at] == b'\n' {
            continue;
        }
        replace_file(&path, &bytes);
        for args in [&["run", "wf.toml", "--resume"][..], &["runs", "show", "latest"]] {
            let output = claw(&sandbox, args).expect_code(74);
            let place = format!("byte {}", line_start(&whole, at));
            assert!(output.stderr.contains(&place), "byte {at}: {output}");
        }
        let before = provider.count();
        claw(&sandbox, &["runs", "list"]).expect_code(0);
        claw(&sandbox, &["run", "wf.toml", "--resume", "--accept-damage"]).expect_code(0);
        assert!(provider.count() - before <= 2, "byte {at}: more than one step was lost");
    }
}

#[test]
fn zeros_doubles_a_later_version_and_a_huge_line_are_damage() {
    let (_provider, sandbox) = house();
    let path = journal(&sandbox.newest_run());
    let whole = String::from_utf8(std::fs::read(&path).unwrap()).unwrap();
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let (head, tail) = (lines[..3].concat(), lines[3..].concat());
    let offset = format!("byte {}", head.len());
    for (what, middle) in [
        ("zeros", "\0".repeat(4096) + "\n"),
        ("a double", lines[2].to_owned()),
        ("a later version", lines[2].replacen("\"v\":1", "\"v\":9", 1)),
        ("a huge line", "x".repeat(32 << 20) + "\n"),
    ] {
        replace_file(&path, head.clone() + &middle + &tail);
        let output = claw(&sandbox, &["run", "wf.toml", "--resume"]).expect_code(74);
        assert!(output.stderr.contains(&offset), "{what}: {output}");
        assert!(output.stderr.len() < 4_000, "{what}: {} bytes are told", output.stderr.len());
        claw(&sandbox, &["runs", "list"]).expect_code(0);
    }
    // Without an end it is a torn line, however long.
    replace_file(&path, whole.clone() + &"\0".repeat(1 << 20));
    claw(&sandbox, &["run", "wf.toml", "--resume"]).expect_code(0);
}

#[test]
fn a_journal_of_two_gigabytes_is_refused_without_being_read() {
    let (_provider, sandbox) = house();
    let path = journal(&sandbox.newest_run());
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(2 << 30).unwrap();
    let output = claw(&sandbox, &["run", "wf.toml", "--resume"]).expect_code(74);
    assert!(output.stderr.contains("journal.jsonl") && output.took < Duration::from_secs(2), "{output}");
}

#[test]
fn small_files_may_hold_anything() {
    let (_provider, sandbox) = house();
    let run = sandbox.newest_run();
    let files = [
        "run.json",
        "takes/1/plan.json",
        "takes/1/inputs.json",
        "takes/1/limits.json",
        "nodes/sum.1/manifest.json",
        "nodes/sum.1/transcript.jsonl",
        "nodes/sum.1/output.md",
        "lock",
    ];
    for name in files {
        let path = run.path().join(name);
        let whole = std::fs::read(&path).unwrap();
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 0x41;
        let half = whole[..whole.len() / 2].to_vec();
        for bytes in [half, flipped, vec![0; 4096], b"{\"schema\":9}\n".to_vec(), Vec::new()] {
            replace_file(&path, bytes);
            for args in [
                &["run", "wf.toml", "--resume"][..],
                &["runs", "list"],
                &["runs", "show", "latest"],
                &["runs", "show", "latest", "sum"],
            ] {
                let output = claw(&sandbox, args);
                let told = output.code == Some(0) || output.stderr.contains("error:");
                assert!(told && matches!(output.code, Some(0 | 2 | 74)), "{name} {args:?}: {output}");
            }
            replace_file(&path, &whole);
        }
    }
    claw(&sandbox, &["run", "wf.toml", "--resume"]).expect_code(0);
}

#[test]
fn a_path_in_a_manifest_leads_nowhere() {
    let (_provider, sandbox) = house();
    sandbox.write("outside.txt", "NOT-TO-BE-SHOWN");
    let run = sandbox.newest_run();
    let path = run.path().join("nodes/sum.1/manifest.json");
    let mut manifest = run.manifest("sum");
    for key in ["outputFile", "transcriptFile", "manifestFile"] {
        manifest[key] = json!("../../../../../outside.txt");
    }
    replace_file(&path, manifest.to_string());
    for args in [&["runs", "show", "latest", "sum"][..], &["run", "wf.toml", "--resume"]] {
        let output = claw(&sandbox, args).expect_code(0);
        assert!(!output.stdout.contains("NOT-TO-BE-SHOWN"), "{output}");
    }
    // A step of the journal that would lie elsewhere is no step.
    let journal = journal(&run);
    let text =
        std::fs::read_to_string(&journal).unwrap().replace("\"step\":\"sum\"", "\"step\":\"../../..\"");
    replace_file(&journal, text);
    claw(&sandbox, &["run", "wf.toml", "--resume"]).expect_code(74);
    assert_eq!(sandbox.read("outside.txt"), "NOT-TO-BE-SHOWN");
}

#[test]
fn state_that_claims_another_permission_gives_none() {
    let provider = ScriptedProvider::new([
        Route::reply(Reply::error(400, &json!({"error": {"message": "no"}}))).times(1),
        Route::reply(Reply::tool("t1", "bash", json!({"command": "touch made"}))).lacks("tool_result"),
        Route::reply(Reply::text("ok")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write(
        "wf.toml",
        "schema = 1\n[workflow]\nname = \"one\"\n[node.a]\npermission = \"read-only\"\nprompt = \"x\"\n",
    );
    claw(&sandbox, &["run", "wf.toml"]).expect_code(1);
    let run = sandbox.newest_run();
    for name in ["nodes/a.1/manifest.json", "takes/1/plan.json", "takes/1/workflow.toml"] {
        let text = run.read(name);
        assert!(text.contains("read-only"), "{name}: {text}");
        replace_file(run.path().join(name), text.replace("read-only", "danger-full-access"));
    }
    claw(&sandbox, &["run", "wf.toml", "--resume"]).expect_code(0);
    assert!(!sandbox.has("made"));
    assert_eq!(sandbox.newest_run().manifest("a")["permissionMode"], "read-only");
}
