//! Wrong input: one message with place and help, exit 2, nothing asked, nothing on disk.

use claw_kit::{Claw, Output, Reply, Sandbox, ScriptedProvider};
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(10);

fn claw(sandbox: &Sandbox, args: &[&str]) -> Output {
    Claw::new(CLAW, sandbox).args(args).run(BOUND)
}

fn head(rest: &str) -> String {
    format!("schema = 1\n[workflow]\nname = \"wf\"\n{rest}")
}

/// A file, the code and the place of what is wrong, and words that help.
const WRONG: &[(&str, &str, &str, &[&str])] = &[
    (
        "[node.a]\nprompt = \"x\"\nneeds = [\"b\"]\n[node.b]\nprompt = \"x\"\nneeds = [\"a\"]\n",
        "E110",
        "wf.toml:",
        &["a -> b"],
    ),
    (
        "[node.a]\nprompt = \"x\"\nneeds = [\"explor\"]\n[node.explore]\nprompt = \"x\"\n",
        "E111",
        "wf.toml:6:10",
        &["explore"],
    ),
    ("[node.a]\nprmopt = \"x\"\n", "E10", "wf.toml:5:1", &["prompt"]),
    ("[node.a]\nprompt = \"x\"\nmax_turns = \"many\"\n", "E10", "wf.toml:6:13", &["max_turns"]),
    ("[node.a]\nprompt = \"x\"\ntimeout = \"5 parsecs\"\n", "E10", "wf.toml:6:11", &["timeout"]),
    ("[node.a]\nprompt = \"hello {{ inputs.\"\n", "E16", "wf.toml:5:", &[]),
    ("[node.a]\nprompt = \"hello {% if x %}\"\n", "E162", "wf.toml:5:", &[]),
    ("[node.a]\nprompt = \"hello {{ nobody }}\"\n", "E180", "wf.toml:5:", &["nobody"]),
    (
        "[inputs.name]\ntype = \"string\"\n[node.a]\nprompt = \"x {{ inputs.name }}\"\n",
        "E120",
        "",
        &["name", "--input"],
    ),
    (
        "[node.a]\nprompt = \"{{ item }}\"\neach = { items = [\"x\", \"y\", \"x\"], key = \"{{ item }}\" }\n",
        "E171",
        "wf.toml:",
        &["x"],
    ),
    ("[node.a]\nagent = \"Explorer\"\nprompt = \"x\"\n", "E", "wf.toml:5:9", &["Explore"]),
    ("[node.a]\nprompt = \"x\"\nmodel = \"nowhere/model\"\n", "E", "wf.toml:6:", &["nowhere"]),
    ("[node.a]\nprompt_file = \"missing.md\"\n", "E", "wf.toml:5:", &["missing.md"]),
    ("[node.a]\nprompt = \"x\"\n[node.a.output]\ntype = \"array\"\n", "E150", "wf.toml:", &["object"]),
    ("[node.a]\nkind = \"comand\"\nrun = [\"ls\"]\n", "E10", "wf.toml:5:8", &["command"]),
    ("[node.a]\nkind = \"set\"\nvalue = \"1\"\nprompt = \"x\"\n", "E104", "wf.toml:7:1", &["set"]),
    ("[node.inputs]\nprompt = \"x\"\n", "E105", "wf.toml:4:", &["inputs"]),
    ("[node.a]\nprompt = \"x\"\nisolation = \"copy\"\n", "E107", "wf.toml:6:", &["copy", "yet"]),
    ("[node.a\nprompt = \"x\"\n", "E100", "wf.toml:4:", &[]),
    (
        "[node.a]\nprompt = \"x\"\n[node.b]\nneeds = [\"a\"]\nkind = \"set\"\nvalue = \"a.deep.er\"\n[node.a.output]\ntype = \"object\"\nproperties = { shallow = { type = \"string\" } }\n",
        "E",
        "wf.toml:9:",
        &["deep"],
    ),
];

#[test]
fn each_kind_of_wrong_file_is_told_with_place_and_help() {
    let provider = ScriptedProvider::always(Reply::text("never"));
    let sandbox = Sandbox::anthropic(&provider);
    let mut wrong = Vec::new();
    for (text, code, place, words) in WRONG {
        sandbox.write("wf.toml", head(text));
        let output = claw(&sandbox, &["run", "wf.toml"]);
        let told = output.stderr.contains(code)
            && output.stderr.contains(place)
            && words.iter().all(|word| output.stderr.contains(word));
        if output.code != Some(2) || !told || !output.stdout.is_empty() || output.stderr.contains("panicked")
        {
            wrong.push(format!("wanted {code} at {place:?} with {words:?} for\n{text}\n{output}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n=====\n"));
    assert_eq!(provider.count(), 0);
    assert!(!sandbox.has(".claw"), "something stands on disk");
}

#[test]
fn a_file_of_a_later_schema_names_the_version_that_is_needed() {
    let sandbox = Sandbox::new();
    sandbox.write("wf.toml", "schema = 2\n[workflow]\nname = \"x\"\n");
    let output = claw(&sandbox, &["run", "wf.toml"]).expect_code(2);
    assert!(output.stderr.contains("E101"), "{output}");
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let sandbox = Sandbox::new();
    sandbox.write("folder/x", "");
    sandbox.write("latin.toml", b"schema = 1 # caf\xE9\n");
    sandbox.write("empty.toml", "");
    for name in ["absent.toml", "folder", "latin.toml", "empty.toml"] {
        for args in [&["run", name][..], &["workflow", "check", name], &["run", name, "--plan"]] {
            let output = claw(&sandbox, args).expect_code(2);
            assert!(output.stderr.contains(name), "{args:?}: {output}");
        }
    }
}

#[test]
fn the_same_problem_is_told_once_and_many_are_told_together() {
    let sandbox = Sandbox::new();
    sandbox.write("wf.toml", head("[node.a]\nprmpt = \"x\"\nmax_turn = 3\ntimeout = 5\n"));
    let output = claw(&sandbox, &["workflow", "check", "wf.toml"]).expect_code(2);
    for word in ["prmpt", "max_turn", "timeout"] {
        assert!(output.stderr.contains(word) || output.stdout.contains(word), "{word}: {output}");
    }
}

#[test]
fn a_mistyped_command_names_the_near_one_and_costs_nothing() {
    let provider = ScriptedProvider::always(Reply::text("never"));
    let sandbox = Sandbox::anthropic(&provider);
    for (args, word) in [
        (&["runn", "wf.toml"][..], "run"),
        (&["workflows", "check", "x"], "workflow"),
        (&["model"], "models"),
        (&["run", "missing.toml"], "missing.toml"),
        (&["run"], "FILE"),
        (&["-p", "hi", "--modle", "haiku"], "--model"),
        (&["-p", "hi", "--output-format", "jsn"], "json"),
        (&["-p", "hi", "--allowedTools", "Reed"], "read_file"),
        (&["-p", "hi", "--max-turns", "0"], "--max-turns"),
        (&["run", "wf.toml", "--max-parallel", "0"], "--max-parallel"),
        (&["run", "wf.toml", "--concurrency", "-1"], "--concurrency"),
        (&["run", "wf.toml", "--model", ""], "--model"),
        (&["runs", "show", "nobody"], "nobody"),
    ] {
        sandbox.write("wf.toml", head("[node.a]\nprompt = \"x\"\n"));
        let output = claw(&sandbox, args).expect_code(2);
        assert!(output.stderr.contains(word) && output.stdout.is_empty(), "{args:?} wants {word}: {output}");
    }
    assert_eq!(provider.count(), 0);
    assert!(!sandbox.has(".claw"));
}

#[test]
fn a_resume_of_nothing_says_so() {
    let provider = ScriptedProvider::always(Reply::text("never"));
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", head("[node.a]\nprompt = \"x\"\n"));
    for resume in ["--resume", "--resume=01ARZ3NDEKTSV4RRFFQ69G5FAV", "--resume=nonsense"] {
        let output = claw(&sandbox, &["run", "wf.toml", resume]).expect_code(2);
        assert!(output.stderr.contains("run") && output.stdout.is_empty(), "{output}");
    }
    assert_eq!(provider.count(), 0);
}

#[test]
fn a_state_folder_that_cannot_be_written_is_exit_74_with_its_path() {
    let provider = ScriptedProvider::always(Reply::text("never"));
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", head("[node.a]\nprompt = \"x\"\n"));
    sandbox.write(".claw", "a file where a folder is wanted");
    let output = claw(&sandbox, &["run", "wf.toml"]).expect_code(74);
    assert!(output.stderr.contains(".claw") && !output.stderr.contains("panicked"), "{output}");
    assert_eq!(provider.count(), 0);
}
