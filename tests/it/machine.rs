//! Machines that lack something: space, a home, a temporary folder, the folder it was started in.

use claw_kit::{Claw, Output, Reply, Route, Sandbox, ScriptedProvider, run_program};
use serde_json::json;
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(20);

const TEXT: &str = r#"
schema = 1
[workflow]
name = "many"
[node.c]
kind = "command"
run = "echo x >> side.txt; head -c 20000 /dev/zero | tr '\\0' a"
[node.look]
agent = "Explore"
needs = ["c"]
prompt = "ITEM-{{ item }}-"
each = { range = 12, key = "{{ item }}" }
"#;

fn house() -> (ScriptedProvider, Sandbox) {
    let provider = ScriptedProvider::always(Reply::text("word ".repeat(4_000)));
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", TEXT);
    (provider, sandbox)
}

fn script(sandbox: &Sandbox, text: &str) -> Output {
    Claw::new("/bin/sh", sandbox).args(["-c", text]).run(BOUND)
}

#[test]
fn a_full_disk_is_exit_74_with_the_path_and_the_run_goes_on_when_there_is_space() {
    let (provider, sandbox) = house();
    // A small disk in a mount namespace of its own; what came on it is copied out, as if space had come back.
    let text = format!(
        "mkdir -p .claw keep && exec unshare -rm sh -c 'mount -t tmpfs -o size=160k none .claw && {CLAW} run wf.toml; code=$?; cp -r .claw/. keep/; exit $code'"
    );
    if run_program(&sandbox.project(), "unshare", &["-rm", "true"]).is_none() {
        return;
    }
    let output = script(&sandbox, &text).expect_code(74);
    assert!(output.stderr.contains(".claw/runs") && !output.stderr.contains("panicked"), "{output}");
    assert!(output.stderr.contains("space") || output.stderr.contains("ENOSPC"), "{output}");
    let asked = provider.count();
    assert!(asked <= 12, "{asked}");
    assert!(script(&sandbox, "rmdir .claw && mv keep .claw").code == Some(0));
    let again = Claw::new(CLAW, &sandbox).args(["run", "wf.toml", "--resume"]).run(BOUND).expect_code(0);
    assert!(again.stdout.contains("word"), "{again}");
    assert_eq!(sandbox.read("side.txt"), "x\n", "{again}");
}

#[test]
fn no_home_no_temporary_folder_and_an_empty_path_are_no_trouble() {
    let (_provider, sandbox) = house();
    let sandbox = sandbox.env("TMPDIR", "/nonexistent/tmp");
    for name in ["HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "CLAW_CONFIG_HOME", "LANG"] {
        let start = Claw::new(CLAW, &sandbox).args(["run", "wf.toml"]).without_env(name);
        let output = start.run(BOUND);
        assert!(output.code == Some(0) && !output.stderr.contains("panicked"), "without {name}: {output}");
    }
    let bare = Claw::new(CLAW, &sandbox).args(["-p", "x"]).without_env("HOME").without_env("PATH").run(BOUND);
    assert!(bare.code == Some(0), "{bare}");
}

#[test]
fn a_folder_that_is_gone_is_an_error_in_one_line() {
    let (provider, sandbox) = house();
    for command in ["-p x", "run wf.toml", "runs list"] {
        let text = format!("mkdir -p gone && cd gone && rmdir ../gone && exec {CLAW} {command}");
        let output = script(&sandbox, &text);
        assert!(output.code != Some(0) && output.signal.is_none(), "{command}: {output}");
        assert!(
            output.stderr.contains("error") && !output.stderr.contains("panicked"),
            "{command}: {output}"
        );
    }
    assert_eq!(provider.count(), 0);
}

#[test]
fn root_needs_a_word_more_for_full_access() {
    let provider = ScriptedProvider::always(Reply::text("ok"));
    let sandbox = Sandbox::anthropic(&provider);
    let root = run_program(&sandbox.project(), "id", &["-u"]).is_some_and(|id| id.trim() == "0");
    let output =
        Claw::new(CLAW, &sandbox).args(["-p", "x", "--permission-mode", "danger-full-access"]).run(BOUND);
    assert_eq!(output.code, Some(if root { 2 } else { 0 }), "{output}");
    assert!(!root || output.stderr.contains("--allow-root"), "{output}");
}

#[test]
fn a_node_never_gets_more_than_the_command_line_allows() {
    let provider = ScriptedProvider::new([
        Route::reply(Reply::tool("t1", "bash", json!({"command": "touch made"}))).lacks("tool_result"),
        Route::reply(Reply::text("ok")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write(
        "wf.toml",
        "schema = 1\n[workflow]\nname = \"wide\"\n[node.a]\npermission = \"danger-full-access\"\nprompt = \"x\"\n[node.b]\nneeds = [\"a\"]\nkind = \"command\"\nrun = \"touch made-too\"\non_error = \"continue\"\n",
    );
    Claw::new(CLAW, &sandbox)
        .args(["run", "wf.toml", "--permission-mode", "read-only", "--allow-root"])
        .run(BOUND);
    assert!(!sandbox.has("made") && !sandbox.has("made-too"));
    assert_eq!(sandbox.newest_run().manifest("a")["permissionMode"], "read-only");
}

#[test]
fn two_agents_that_edit_two_files_in_opposite_order_both_end() {
    let edit = |id: &str, path: &str, old: &str, new: &str| {
        (id.to_owned(), json!({"path": path, "old_string": old, "new_string": new}))
    };
    let message = |reads: bool, list: [(String, serde_json::Value); 2]| {
        list.into_iter().fold(Reply::empty(), |reply, (id, input)| {
            reply.with_tool(&id, if reads { "read_file" } else { "edit_file" }, input)
        })
    };
    for round in 0..5 {
        let read = |id: &str, path: &str| (id.to_owned(), json!({"path": path}));
        let provider = ScriptedProvider::new([
            Route::reply(message(true, [read("r1", "f"), read("r2", "g")])).lacks("tool_result"),
            Route::reply(message(
                false,
                [edit("e1", "f", "a-line", "A-LINE"), edit("e2", "g", "a-line", "A-LINE")],
            ))
            .contains("AGENT-A")
            .lacks("edit_file\",\"input"),
            Route::reply(message(
                false,
                [edit("e1", "g", "b-line", "B-LINE"), edit("e2", "f", "b-line", "B-LINE")],
            ))
            .contains("AGENT-B")
            .lacks("edit_file\",\"input"),
            Route::reply(Reply::text("ok")),
        ]);
        let sandbox = Sandbox::anthropic(&provider);
        sandbox.write("f", "a-line\n\n\nb-line\n");
        sandbox.write("g", "a-line\n\n\nb-line\n");
        sandbox.write(
            "wf.toml",
            "schema = 1\n[workflow]\nname = \"two\"\n[node.a]\nprompt = \"AGENT-A\"\n[node.b]\nprompt = \"AGENT-B\"\n",
        );
        Claw::new(CLAW, &sandbox).args(["run", "wf.toml"]).run(BOUND).expect_code(0);
        // An edit is done or was refused because of the other; none is lost without a word.
        for (name, word) in [("f", "A-LINE"), ("f", "B-LINE"), ("g", "A-LINE"), ("g", "B-LINE")] {
            let refused = provider.requests_with("changed since you read it").len();
            assert!(
                sandbox.read(name).contains(word) || refused > 0,
                "round {round}: {word} is not in {name}"
            );
        }
    }
}
