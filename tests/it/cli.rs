//! Arguments and streams: what is mistyped reaches no model, what nobody reads ends the program.

use claw_kit::{CANARY, Claw, Reply, Route, Sandbox, ScriptedProvider, run_program};
use serde_json::json;
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(20);

const TWO: &str = r#"
schema = 1
[workflow]
name = "two"
[node.look]
agent = "Explore"
prompt = "look {{ item }}"
[node.look.each]
key = "{{ item }}"
items = ["a", "b"]
[node.sum]
kind = "merge"
needs = ["look"]
from = ["look.outputs"]
strategy = "concat"
"#;

fn claw(sandbox: &Sandbox, args: &[&str]) -> claw_kit::Output {
    Claw::new(CLAW, sandbox).args(args).run(BOUND)
}

#[test]
fn what_is_mistyped_reaches_no_model() {
    let provider = ScriptedProvider::always(Reply::text("never"));
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", TWO);
    for args in [
        &["runn", "wf.toml"][..],
        &["run"],
        &["run", "missing.toml"],
        &["doctor", "--json"],
        &["doctorr"],
        &[""],
        &["   "],
        &[],
        &["fix the bug"],
        &["run", "wf.toml", "--max-parallel", "0"],
        &["run", "wf.toml", "--max-parallel", "-1"],
        &["run", "wf.toml", "--concurrency", "0"],
        &["run", "wf.toml", "--model", ""],
        &["run", "wf.toml", "--model", "nowhere/model"],
        &["run", "wf.toml", "--permission-mode", "read-onyl"],
        &["run", "wf.toml", "--input", "nobody=1"],
        &["-p", "hi", "--allowedTools", "Reed"],
    ] {
        let output = claw(&sandbox, args).expect_code(2);
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{args:?}: {output}");
    }
    assert!(claw(&sandbox, &["run", "missing.toml"]).stderr.contains("missing.toml"));
    assert!(claw(&sandbox, &["runn", "wf.toml"]).stderr.contains("`claw run`"));
    assert_eq!(provider.count(), 0);
    assert!(!sandbox.has(".claw"), "something was written before the arguments were checked");
}

#[test]
fn flags_behind_the_question_are_no_part_of_it() {
    let provider = ScriptedProvider::always(Reply::text("hello"));
    let sandbox = Sandbox::anthropic(&provider);
    let output = claw(&sandbox, &["-p", "hi", "--model", "haiku", "--output-format", "json"]).expect_code(0);
    let result = output.json();
    assert_eq!((result["type"].as_str(), result["result"].as_str()), (Some("result"), Some("hello")));
    let request = provider.last_request();
    let asked = request.messages().first().map(ToString::to_string).unwrap_or_default();
    assert!(asked.contains("\"hi\"") && !asked.contains("--model"), "{asked}");
    assert_eq!(provider.count(), 1);
    assert!(sandbox.files_with_canary().is_empty());
}

#[test]
fn no_credentials_is_one_message_and_nothing_on_disk() {
    let sandbox = Sandbox::new();
    sandbox.write("wf.toml", TWO);
    for args in [&["run", "wf.toml"][..], &["-p", "hi"]] {
        let output = claw(&sandbox, args).expect_code(2);
        assert!(output.stderr.contains("ANTHROPIC_API_KEY"), "{output}");
        assert_eq!(output.stderr.matches("error:").count(), 1, "{output}");
    }
    assert!(!sandbox.has(".claw"));
    claw(&sandbox, &["workflow", "check", "wf.toml"]).expect_code(0);
    claw(&sandbox, &["run", "wf.toml", "--plan"]).expect_code(0);
}

#[test]
fn all_that_is_wrong_with_a_file_is_told_at_once_and_as_json() {
    let sandbox = Sandbox::new();
    sandbox.write("bad.toml", TWO.replace("needs = [\"look\"]", "needs = [\"lok\"]\nafter = [\"nobody\"]"));
    let output = claw(&sandbox, &["run", "bad.toml"]).expect_code(2);
    assert!(
        output.stderr.contains("bad.toml:14:") && output.stderr.contains("did you mean `look`?"),
        "{output}"
    );
    let output = claw(&sandbox, &["workflow", "check", "bad.toml", "--output-format", "json"]).expect_code(2);
    let problems = output.json()["problems"].as_array().cloned().unwrap_or_default();
    assert!(problems.len() >= 2 && problems.iter().all(|p| p["code"] == "E111"), "{output}");
}

#[test]
fn a_reader_that_goes_away_ends_everything_without_a_panic() {
    let provider = ScriptedProvider::always(Reply::text("word ".repeat(20_000)));
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", TWO);
    let environment: Vec<String> =
        sandbox.environment().iter().map(|(name, value)| format!("export {name}='{value}'")).collect();
    for command in [
        "run wf.toml --output-format json 2>err.txt | head -c 1",
        "run wf.toml --output-format stream-json 2>err.txt | head -c 1",
        "run wf.toml 2>err.txt | head -c 1",
        "--help 2>err.txt | true",
        "-p hi --output-format stream-json 2>err.txt </dev/null | true",
        "run wf.toml 2>&1 | head -n 1",
    ] {
        let script =
            format!("{}\n{CLAW} {command} >/dev/null; echo codes ${{PIPESTATUS[0]}}", environment.join("\n"));
        let said = run_program(&sandbox.project(), "bash", &["-c", &script]).unwrap_or_default();
        assert!(said.contains("codes 0") || said.contains("codes 141"), "{command}: {said}");
        let errors = std::fs::read_to_string(sandbox.project().join("err.txt")).unwrap_or_default();
        assert!(!errors.contains("panicked") && !errors.contains("fault"), "{command}: {errors}");
    }
    for run in sandbox.runs() {
        let open: Vec<_> = run.statuses().into_iter().filter(|(_, status)| status == "running").collect();
        assert!(open.is_empty(), "{open:?}");
    }
}

#[test]
fn where_nobody_can_be_asked_a_call_is_denied_at_once_and_the_answer_stays_json() {
    let provider = ScriptedProvider::new([
        Route::reply(Reply::tool("t1", "bash", json!({"command": "touch made"}))).times(1),
        Route::reply(Reply::text("I could not.")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    let args = ["-p", "make it", "--permission-mode", "prompt", "--output-format", "json"];
    let output = Claw::new(CLAW, &sandbox).args(args).open_stdin().run(BOUND).expect_code(0);
    let result = output.json();
    let denial = result["permission_denials"][0]["reason"].as_str().unwrap_or_default();
    assert!(denial.contains("--permission-mode"), "{output}");
    assert!(!sandbox.has("made"));
}

#[test]
fn a_silent_pipe_is_left_alone_and_a_speaking_one_is_added() {
    let provider = ScriptedProvider::always(Reply::text("ok"));
    let sandbox = Sandbox::anthropic(&provider);
    let spoken = Claw::new(CLAW, &sandbox).args(["-p", "look at this"]).stdin("fn main() {}").run(BOUND);
    spoken.expect_code(0);
    let asked = provider.last_request().text.clone();
    assert!(asked.contains("look at this") && asked.contains("fn main() {}"), "{asked}");
    let silent = Claw::new(CLAW, &sandbox).args(["-p", "alone"]).open_stdin().spawn();
    silent.wait_for_stdout("ok", BOUND);
    assert!(silent.stderr().contains("standard input"), "{}", silent.stderr());
    silent.wait(BOUND).expect_code(0);
    let alone = Claw::new(CLAW, &sandbox).args(["-p"]).stdin("all of it").run(BOUND);
    assert_eq!(alone.expect_code(0).stdout, "ok\n");
    assert!(!format!("{:?}", provider.requests().len()).is_empty() && !CANARY.is_empty());
}

#[test]
fn a_stream_has_the_shapes_that_others_parse() {
    let provider = ScriptedProvider::new([
        Route::reply(Reply::tool("t1", "bash", json!({"command": "echo hello"}))).times(1),
        Route::reply(Reply::text("done").in_pieces(2)),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    let args = ["-p", "say hello", "--output-format", "stream-json", "--include-partial-messages"];
    let lines = claw(&sandbox, &args).expect_code(0).json_lines();
    let kinds: Vec<&str> = lines.iter().filter_map(|line| line["type"].as_str()).collect();
    assert_eq!((kinds.first(), kinds.last()), (Some(&"system"), Some(&"result")));
    let whole: Vec<&str> =
        kinds.iter().copied().filter(|kind| matches!(*kind, "assistant" | "user")).collect();
    assert_eq!(whole, ["assistant", "user", "assistant"]);
    assert!(lines.iter().any(|line| line["event"]["delta"]["type"] == "text_delta"));
    let call =
        lines.iter().find(|line| line["type"] == "assistant").map(|line| &line["message"]["content"][0]);
    assert_eq!(call.map(|call| &call["input"]["command"]), Some(&json!("echo hello")));
    let result = lines.iter().find(|line| line["type"] == "user").map(|line| &line["message"]["content"][0]);
    assert!(
        result.is_some_and(|result| result["content"].as_str().is_some_and(|text| text.contains("hello")))
    );
}

#[test]
fn a_check_of_a_file_needs_no_values_for_its_inputs_and_says_which_a_run_does() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "wf.toml",
        r#"
schema = 1
[workflow]
name = "wanting"
[inputs.list]
type = "json"
[inputs.tag]
type = "string"
[node.a]
kind = "set"
value = "item"
each = { items = "inputs.list", key = "{{ inputs.tag }}{{ item }}" }
[node.b]
kind = "set"
value = "item"
each = { items = ["x"], key = "{{ inputs.tag }}{{ item }}" }
"#,
    );
    let output = claw(&sandbox, &["workflow", "check", "wf.toml"]).expect_code(0);
    assert!(output.stdout.ends_with("; a run needs --input list=… --input tag=…\n"), "{output}");
    claw(&sandbox, &["workflow", "graph", "wf.toml"]).expect_code(0);
    claw(&sandbox, &["run", "wf.toml", "--plan"]).expect_code(2);
    let args = [
        "workflow",
        "check",
        "wf.toml",
        "--input",
        "list=[1]",
        "--input",
        "tag=t",
        "--output-format",
        "json",
    ];
    assert_eq!(claw(&sandbox, &args).expect_code(0).json()["inputs_needed"], serde_json::json!([]));
    let wrong = ["workflow", "check", "wf.toml", "--input", "list=3", "--input", "tag=t"];
    let output = claw(&sandbox, &wrong).expect_code(2);
    assert!(output.stderr.contains("must give a list"), "{output}");
}
