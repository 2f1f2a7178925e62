//! Parts of a run again, answers from a file, the question before a big run, secrets over several takes.

use claw_kit::{Claw, Output, Pty, Reply, Route, Sandbox, ScriptedProvider};
use serde_json::json;
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(20);
const HEAD: &str = "schema = 1\n[workflow]\nname = \"part\"\n";

/// `a` → `b` → `c`; `d` stands alone; `items` has two.
const CHAIN: &str = r#"
[node.a]
prompt = "ASK-A"
[node.b]
needs = ["a"]
prompt = "ASK-B {{ a }}"
[node.c]
needs = ["b"]
prompt = "ASK-C {{ b }}"
[node.d]
prompt = "ASK-D"
[node.items]
agent = "Explore"
prompt = "ITEM-{{ item }}-"
each = { items = ["x", "y"], key = "{{ item }}" }
[node.sum]
needs = ["items"]
prompt = "ASK-SUM {{ items.outputs | json }}"
"#;

fn run(sandbox: &Sandbox, args: &[&str]) -> Output {
    Claw::new(CLAW, sandbox).args(["run", "wf.toml"]).args(args).env("CLAW_RETRY_BASE_MS", "5").run(BOUND)
}

fn house(nodes: &str) -> (ScriptedProvider, Sandbox) {
    let provider = ScriptedProvider::always(Reply::text("fine"));
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", format!("{HEAD}{nodes}"));
    (provider, sandbox)
}

/// What was asked in one more take.
fn asked(provider: &ScriptedProvider, sandbox: &Sandbox, args: &[&str], code: i32) -> (Vec<String>, Output) {
    let before = provider.count();
    let output = run(sandbox, args).expect_code(code);
    let words = ["ASK-SUM", "ASK-A", "ASK-B", "ASK-C", "ASK-D", "ITEM-x-", "ITEM-y-"];
    let word = |text: &str| words.iter().find(|word| text.contains(*word)).map(|word| (*word).to_owned());
    let mut all: Vec<_> =
        provider.requests()[before..].iter().filter_map(|request| word(&request.text)).collect();
    all.sort();
    (all, output)
}

#[test]
fn from_a_step_on_all_that_depends_on_it_is_asked_again_and_the_rest_is_kept() {
    let (provider, sandbox) = house(CHAIN);
    run(&sandbox, &[]).expect_code(0);
    assert_eq!(provider.count(), 7);
    let (again, output) = asked(&provider, &sandbox, &["--resume", "--from", "b"], 0);
    assert_eq!(again, ["ASK-B", "ASK-C"]);
    assert!(output.stderr.contains("runs again: b") && output.stderr.contains("kept"), "{output}");
    // Without --resume it is the newest run of the file as well.
    let (again, _) = asked(&provider, &sandbox, &["--from", "items=y"], 0);
    assert_eq!(again, ["ASK-SUM", "ITEM-y-"]);
    assert_eq!(asked(&provider, &sandbox, &["--resume"], 0).0, [""; 0]);
    assert_eq!(sandbox.runs().len(), 1);
}

#[test]
fn only_a_step_runs_whatever_else_has_changed() {
    let (provider, sandbox) = house(CHAIN);
    run(&sandbox, &[]).expect_code(0);
    sandbox.write(
        "wf.toml",
        format!("{HEAD}{}", CHAIN.replace("ASK-A", "NEW ASK-A").replace("ASK-D", "NEW ASK-D")),
    );
    let (again, output) = asked(&provider, &sandbox, &["--only", "b"], 0);
    assert_eq!(again, ["ASK-B"], "{output}");
    assert!(output.stderr.contains("only b runs") && output.stderr.contains("stale"), "{output}");
    let (again, _) = asked(&provider, &sandbox, &["--resume"], 0);
    assert!(again.contains(&"ASK-A".to_owned()) && again.contains(&"ASK-D".to_owned()), "{again:?}");
}

#[test]
fn only_a_step_leaves_those_alone_that_never_succeeded() {
    let provider = ScriptedProvider::new([
        Route::reply(Reply::error(400, &json!({"error": {"message": "no"}}))).contains("ASK-A").times(1),
        Route::reply(Reply::text("fine")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", format!("{HEAD}{CHAIN}"));
    run(&sandbox, &[]).expect_code(1);
    let before = provider.count();
    let output = run(&sandbox, &["--only", "d"]);
    assert_eq!(provider.count(), before + 1, "{output}");
    assert!(output.stderr.contains("not asked for"), "{output}");
    let (again, _) = asked(&provider, &sandbox, &["--resume"], 0);
    assert_eq!(again, ["ASK-A", "ASK-B", "ASK-C"]);
}

#[test]
fn what_failed_is_run_again_with_what_was_made_without_it() {
    let provider = ScriptedProvider::new([
        Route::reply(Reply::error(400, &json!({"error": {"message": "no"}}))).contains("ASK-B").times(1),
        Route::reply(Reply::text("fine")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    let nodes =
        CHAIN.replace("needs = [\"b\"]\nprompt = \"ASK-C {{ b }}\"", "after = [\"b\"]\nprompt = \"ASK-C\"");
    sandbox.write("wf.toml", format!("{HEAD}{nodes}"));
    run(&sandbox, &[]).expect_code(1);
    let (again, output) = asked(&provider, &sandbox, &["--resume", "--rerun", "failed"], 0);
    assert_eq!(again, ["ASK-B", "ASK-C"], "{output}");
    let (again, output) = asked(&provider, &sandbox, &["--rerun", "failed"], 0);
    assert_eq!(again, [""; 0]);
    assert!(output.stderr.contains("nothing failed"), "{output}");
}

#[test]
fn a_step_that_is_not_there_is_refused_with_the_nearest_and_nothing_is_written() {
    let (provider, sandbox) = house(CHAIN);
    let output = run(&sandbox, &["--from", "b"]).expect_code(2);
    assert!(output.stderr.contains("no run"), "{output}");
    run(&sandbox, &[]).expect_code(0);
    let (count, journal) = (provider.count(), sandbox.newest_run().journal().len());
    for (flag, step, near) in
        [("--from", "item=x", "items=x"), ("--only", "items=z", "items=x"), ("--from", "suum", "sum")]
    {
        let output = run(&sandbox, &["--resume", flag, step]).expect_code(2);
        assert!(output.stderr.contains(step) && output.stderr.contains(near), "{output}");
    }
    run(&sandbox, &["--resume", "--from", "a", "--only", "b"]).expect_code(2);
    assert_eq!((provider.count(), sandbox.newest_run().journal().len()), (count, journal));
}

#[test]
fn an_edit_of_a_prompt_whose_node_never_started_keeps_what_is_finished() {
    let provider = ScriptedProvider::new([
        Route::reply(Reply::error(400, &json!({"error": {"message": "no"}}))).contains("ASK-B").times(1),
        Route::reply(Reply::text("fine")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", format!("{HEAD}{CHAIN}"));
    run(&sandbox, &[]).expect_code(1);
    sandbox.write("wf.toml", format!("{HEAD}{}", CHAIN.replace("ASK-C", "EDITED ASK-C")));
    assert_eq!(asked(&provider, &sandbox, &["--resume"], 0).0, ["ASK-B", "ASK-C"]);
}

const STUBBED: &str = r#"
[node.look]
agent = "Explore"
prompt = "LOOK {{ item }}"
each = { items = ["x", "y"], key = "{{ item }}" }
[node.plan]
agent = "Plan"
needs = ["look"]
prompt = "PLAN {{ look.outputs | json }}"
output = { type = "object", required = ["steps"], properties = { steps = { type = "array", items = { type = "string" } } } }
[node.count]
kind = "command"
needs = ["plan"]
run = ["echo", "{{ plan.steps | length }} steps"]
[node.sum]
kind = "merge"
needs = ["look", "count"]
from = ["look.outputs", "count"]
strategy = "agent"
prompt = "SUM"
"#;
const ANSWERS: &str =
    "look = \"nothing\"\n\"look=x\" = \"a bug\"\nsum = \"all of it\"\n[plan]\nsteps = [\"one\", \"two\"]\n";

#[test]
fn answers_from_a_file_need_no_model_and_everything_else_is_real() {
    let sandbox = Sandbox::new();
    sandbox.write("wf.toml", format!("{HEAD}{STUBBED}"));
    sandbox.write("stub.toml", ANSWERS);
    let output = run(&sandbox, &["--stub", "stub.toml", "--output-format", "json"]).expect_code(0).json();
    assert_eq!(output["result"], "all of it", "{output}");
    assert_eq!((&output["usage"]["input"], &output["total_cost_usd"]), (&json!(0), &json!(0.0)), "{output}");
    let folder = sandbox.newest_run();
    assert_eq!(folder.read("nodes/count.1/stdout"), "2 steps\n");
    let manifest = folder.manifest("plan");
    assert_eq!((&manifest["status"], &manifest["model"]), (&json!("completed"), &json!("stub")));
    assert!(folder.read("nodes/plan.1/output.json").contains("\"two\""));
    assert!(folder.read("nodes/look=x.1/transcript.jsonl").contains("a bug"));
    assert!(folder.read("nodes/look=y.1/output.md").contains("nothing"));
    let again = run(&sandbox, &["--resume", "--stub", "stub.toml"]).expect_code(0);
    assert_eq!(again.stdout, "all of it\n");
    assert_eq!(sandbox.newest_run().events("admitted").len(), 5, "nothing ran twice");
}

#[test]
fn answers_that_are_missing_or_do_not_fit_keep_the_run_from_starting() {
    let sandbox = Sandbox::new();
    sandbox.write("wf.toml", format!("{HEAD}{STUBBED}"));
    for (text, words) in [
        (
            ANSWERS.replace("look = \"nothing\"\n", "").replace("sum = \"all of it\"\n", ""),
            vec!["look=y", "sum"],
        ),
        (ANSWERS.replace("\"two\"", "2"), vec!["plan", "/steps/1"]),
        (ANSWERS.replace("sum =", "summ ="), vec!["`summ`", "did you mean `sum`"]),
        ("= =".to_owned(), vec!["neither JSON nor TOML"]),
    ] {
        sandbox.write("stub.toml", text);
        let output = run(&sandbox, &["--stub", "stub.toml"]).expect_code(2);
        assert!(words.iter().all(|word| output.stderr.contains(word)), "{words:?}: {output}");
    }
    run(&sandbox, &["--stub", "nowhere.toml"]).expect_code(2);
    assert_eq!(sandbox.runs().len(), 0);
}

#[test]
fn a_stub_that_fails_is_a_failed_attempt_and_the_next_one_has_the_next_answer() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "wf.toml",
        format!("{HEAD}[node.a]\nprompt = \"x\"\n[node.b]\nneeds = [\"a\"]\nprompt = \"y\"\n"),
    );
    sandbox.write(
        "stub.json",
        r#"{"a": [{"fail": "schema", "message": "not good enough"}, "better"], "b": "done"}"#,
    );
    let output = run(&sandbox, &["--stub", "stub.json"]).expect_code(1);
    assert!(output.stderr.contains("not good enough"), "{output}");
    assert_eq!(sandbox.newest_run().manifest("a")["errorClass"], "schema");
    let output = run(&sandbox, &["--stub", "stub.json", "--resume"]).expect_code(0);
    assert_eq!(output.stdout, "done\n");
}

#[test]
fn what_a_file_answered_is_told_to_a_resume_with_a_model() {
    let provider = ScriptedProvider::always(Reply::text("fine"));
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", format!("{HEAD}[node.a]\nprompt = \"x\"\n"));
    sandbox.write("stub.json", r#"{"a": "from a file"}"#);
    run(&sandbox, &["--stub", "stub.json"]).expect_code(0);
    let output = run(&sandbox, &["--resume"]).expect_code(0);
    assert!(output.stderr.contains("stub file") && output.stdout == "from a file\n", "{output}");
    assert_eq!(run(&sandbox, &["--from", "a"]).expect_code(0).stdout, "fine\n");
    assert_eq!(provider.count(), 1);
}

/// A terminal that was asked, after its answer.
fn answered(sandbox: &Sandbox, args: &[&str], answer: &str) -> claw_kit::PtyOutput {
    let mut terminal = Pty::new(CLAW, sandbox).args(["run", "wf.toml"]).args(args).start();
    terminal.wait_for_text("Go on?", BOUND);
    terminal.send(answer);
    terminal.wait(BOUND)
}

#[test]
fn a_big_run_is_asked_about_once_in_a_terminal_and_nowhere_else() {
    let many = "[node.look]\nagent = \"Explore\"\nprompt = \"ITEM-{{ item }}-\"\neach = { range = 26, key = \"{{ item }}\" }\n";
    let (provider, sandbox) = house(many);
    let output = answered(&sandbox, &["--no-progress"], "n\n");
    assert_eq!(output.code, 2, "{}", output.raw);
    assert!(output.raw.contains("26 agents") && output.raw.contains("8 turns for each"), "{}", output.raw);
    assert_eq!((provider.count(), sandbox.runs().len()), (0, 0));
    let output = answered(&sandbox, &["--no-progress"], "y\n");
    assert_eq!((output.code, provider.count()), (0, 26), "{}", output.raw);
    for args in [&["--yes", "--no-progress"][..], &["--resume", "--no-progress"]] {
        let output = Pty::new(CLAW, &sandbox).args(["run", "wf.toml"]).args(args).start().wait(BOUND);
        assert!(output.code == 0 && !output.raw.contains("Go on?"), "{}", output.raw);
    }
    run(&sandbox, &[]).expect_code(0);
    assert_eq!(provider.count(), 3 * 26);
}

#[test]
fn a_secret_is_asked_for_again_and_compared() {
    let text = "[inputs.token]\ntype = \"string\"\nsecret = true\n[node.use]\nkind = \"command\"\nrun = \"echo $T | wc -c >> used.txt\"\nenv = { T = \"{{ inputs.token }}\" }\n";
    let sandbox = Sandbox::new();
    sandbox.write("wf.toml", format!("{HEAD}{text}"));
    run(&sandbox, &["--input", "token=hunter2-hunter2"]).expect_code(0);
    let output = run(&sandbox, &["--resume"]).expect_code(2);
    assert!(output.stderr.contains("E120"), "{output}");
    run(&sandbox, &["--resume", "--input", "token=hunter2-hunter2"]).expect_code(0);
    assert_eq!(sandbox.read("used.txt").lines().count(), 1);
    let output = run(&sandbox, &["--resume", "--input", "token=another-secret"]).expect_code(0);
    assert!(output.stderr.contains("the secret input `token` is not the one of take 2"), "{output}");
    assert_eq!(sandbox.read("used.txt").lines().count(), 2);
    // The same secret in another run has another digest.
    run(&sandbox, &["--input", "token=another-secret"]).expect_code(0);
    let runs = sandbox.runs();
    assert_ne!(runs[0].read("takes/3/inputs.json"), runs[1].read("takes/1/inputs.json"));
    assert!(!runs[0].read("takes/3/inputs.json").contains("another-secret"));
}

const LOOPED: &str = r#"
[node.fix]
kind = "group"
result = "check"
loop = { max = 3, until = "check == 'pass'" }
[node.fix.body.edit]
prompt = "EDIT {{ loop.index }}"
[node.fix.body.check]
needs = ["edit"]
prompt = "CHECK {{ edit }}"
[node.land]
kind = "command"
needs = ["fix"]
run = "echo landed >> land.txt"
"#;

/// The steps that were admitted since.
fn admitted(sandbox: &Sandbox, before: usize) -> Vec<String> {
    let all = sandbox.newest_run().events("admitted");
    let step = |record: &serde_json::Value| record["step"].as_str().unwrap_or_default().to_owned();
    all[before..].iter().map(step).collect()
}

#[test]
fn steps_of_iterations_are_answered_and_run_again_one_by_one() {
    let sandbox = Sandbox::new();
    sandbox.write("wf.toml", format!("{HEAD}{LOOPED}"));
    sandbox.write("stub.toml", "edit = \"edited\"\n\"fix/check\" = [\"fail\", \"pass\"]\n");
    let take = |args: &[&str]| run(&sandbox, &[&["--stub", "stub.toml"], args].concat()).expect_code(0);
    take(&[]);
    let first = ["fix@1/edit", "fix@1/check", "fix@2/edit", "fix@2/check", "land"];
    assert_eq!(admitted(&sandbox, 0), first);
    take(&["--from", "fix@2/check"]);
    assert_eq!(admitted(&sandbox, 5), ["fix@2/check", "land"]);
    take(&["--only", "fix@1/edit"]);
    assert_eq!(admitted(&sandbox, 7), ["fix@1/edit"]);
    take(&["--from", "fix/edit"]);
    assert_eq!(admitted(&sandbox, 8), first);
    take(&["--resume"]);
    assert_eq!(admitted(&sandbox, 13), [""; 0]);
    assert_eq!(sandbox.read("land.txt").lines().count(), 3);
}
