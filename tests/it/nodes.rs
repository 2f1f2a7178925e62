//! The kinds of nodes end to end: commands, merges, answers held to a schema, inputs, artifacts, retries, secrets.

use claw_kit::{Claw, Output, Reply, Route, Sandbox, ScriptedProvider, processes_with};
use serde_json::{Value, json};
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(20);

fn start(sandbox: &Sandbox, head: &str, nodes: &str) -> Claw {
    let name = if head.contains("[workflow]") { "" } else { "[workflow]\nname = \"wf\"\n" };
    sandbox.write("wf.toml", format!("schema = 1\n{name}{head}\n{nodes}"));
    Claw::new(CLAW, sandbox).args(["run", "wf.toml"]).env("CLAW_RETRY_BASE_MS", "5")
}

fn run(sandbox: &Sandbox, head: &str, nodes: &str) -> Output {
    start(sandbox, head, nodes).run(BOUND)
}

fn result(sandbox: &Sandbox, head: &str, nodes: &str) -> Value {
    start(sandbox, head, nodes).args(["--output-format", "json"]).run(BOUND).expect_code(0).json()["result"]
        .clone()
}

#[test]
fn commands_give_text_lines_and_json_and_know_their_step() {
    let sandbox = Sandbox::new();
    sandbox.write("sub/x.txt", "x");
    let nodes = r#"
[node.text]
kind = "command"
run = ["printf", "a b"]
[node.lines]
kind = "command"
run = "printf 'one\ntwo\n'"
output = "lines"
[node.zero]
kind = "command"
run = "printf 'one\\0two\\0'"
output = "lines0"
[node.data]
kind = "command"
run = "echo '{\"n\": 3}'"
output = "json"
[node.many]
kind = "command"
run = "echo '{\"n\": 1}'; echo '{\"n\": 2}'"
output = "jsonl"
[node.there]
kind = "command"
cwd = "sub"
run = "ls"
[node.known]
kind = "command"
run = "echo $CLAW_STEP ${#CLAW_RUN_ID} ${#CLAW_STEP_ID}"
[node.odd]
kind = "command"
run = "echo three; exit 3"
ok_exit = [0, 3]
"#;
    let result = result(&sandbox, "", nodes);
    assert_eq!(result["text"], "a b");
    assert_eq!(result["lines"], json!(["one", "two"]));
    assert_eq!(result["zero"], json!(["one", "two"]));
    assert_eq!(result["data"], json!({"n": 3}));
    assert_eq!(result["many"], json!([{"n": 1}, {"n": 2}]));
    assert_eq!(result["there"].as_str().map(str::trim), Some("x.txt"));
    let known = result["known"].as_str().unwrap_or_default().to_owned();
    assert!(known.starts_with("known 26 ") && !known.trim().ends_with(" 0"), "{known}");
    assert_eq!(result["odd"].as_str().map(str::trim), Some("three"));
}

#[test]
fn a_failing_command_says_its_exit_code_and_the_end_of_its_errors() {
    let sandbox = Sandbox::new();
    let nodes = "[node.bad]\nkind = \"command\"\nrun = \"echo half; echo 'no such thing' >&2; exit 9\"\n";
    let output = run(&sandbox, "", nodes).expect_code(1);
    assert!(output.stderr.contains('9') && output.stderr.contains("no such thing"), "{output}");
    let manifest = sandbox.newest_run().manifest("bad");
    assert_eq!(
        (&manifest["status"], &manifest["errorClass"]),
        (&json!("failed"), &json!("exit")),
        "{manifest}"
    );
    assert_eq!(sandbox.newest_run().read("nodes/bad.1/stderr"), "no such thing\n");
}

#[test]
fn a_command_that_takes_too_long_is_ended_with_all_it_started() {
    let sandbox = Sandbox::new();
    let nodes = "[node.slow]\nkind = \"command\"\nrun = \"sleep 7411 & sleep 7411\"\ntimeout = \"500ms\"\n";
    let output = run(&sandbox, "", nodes).expect_code(1);
    assert!(output.took < Duration::from_secs(6), "{output}");
    assert_eq!(sandbox.newest_run().manifest("slow")["errorClass"], "timeout");
    assert_eq!(processes_with("sleep 7411"), 0);
}

#[test]
fn merges_list_concat_and_dedupe_in_the_order_of_the_input() {
    let provider = ScriptedProvider::new([
        Route::reply(Reply::text("late one").delay(Duration::from_millis(150))).contains("LOOK-a"),
        Route::reply(Reply::text("two")).contains("LOOK-b"),
        Route::reply(Reply::text("three")).contains("LOOK-c"),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    let nodes = r#"
[node.look]
agent = "Explore"
prompt = "LOOK-{{ item }}"
each = { items = ["a", "b", "c"], key = "{{ item }}" }
[node.list]
kind = "merge"
needs = ["look"]
from = ["look.outputs"]
strategy = "list"
[node.text]
kind = "merge"
needs = ["look"]
from = ["look.outputs"]
strategy = "concat"
[node.found]
kind = "set"
value = "[{'f': 'x', 'n': 1}, {'f': 'y', 'n': 5}, {'f': 'x', 'n': 3}, {'f': 'x', 'n': 3, 'late': true}]"
[node.best]
kind = "merge"
needs = ["found"]
from = ["found"]
strategy = "dedupe"
key = "{{ item.f }}"
prefer = "item.n"
write = "best.json"
"#;
    let result = result(&sandbox, "", nodes);
    assert_eq!(result["list"], json!(["late one", "two", "three"]));
    assert_eq!(result["text"], "late one\n\ntwo\n\nthree");
    assert_eq!(result["best"], json!([{"f": "x", "n": 3}, {"f": "y", "n": 5}]));
    let written: Value = serde_json::from_str(&sandbox.read("best.json")).unwrap();
    assert_eq!(written, result["best"]);
}

#[test]
fn an_agent_merges_what_others_found() {
    let provider = ScriptedProvider::new([
        Route::reply(Reply::text("FOUND-ONE")).contains("LOOK-a"),
        Route::reply(Reply::text("FOUND-TWO")).contains("LOOK-b"),
        Route::reply(Reply::text("both")).contains("SUM-UP").label("sum"),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    let nodes = r#"
[node.look]
agent = "Explore"
prompt = "LOOK-{{ item }}"
each = { items = ["a", "b"], key = "{{ item }}" }
[node.sum]
kind = "merge"
needs = ["look"]
from = ["look.outputs"]
strategy = "agent"
prompt = "SUM-UP"
"#;
    let output = run(&sandbox, "", nodes).expect_code(0);
    assert!(output.stdout.contains("both"), "{output}");
    let asked = provider.requests_of("sum");
    assert_eq!(asked.len(), 1);
    assert!(asked[0].text.contains("FOUND-ONE") && asked[0].text.contains("FOUND-TWO"), "{}", asked[0].text);
}

const SCHEMA: &str = r#"
[node.a]
agent = "Explore"
prompt = "NODE-A"
retry = { attempts = 1 }
[node.a.output]
type = "object"
required = ["verdict", "count"]
additionalProperties = false
properties = { verdict = { enum = ["pass", "fail"] }, count = { type = "integer" } }
[node.b]
kind = "set"
needs = ["a"]
value = "a.verdict ~ a.count"
"#;

#[test]
fn an_answer_is_held_to_its_schema_and_its_fields_are_data() {
    for wire in ["anthropic", "openai"] {
        let provider = ScriptedProvider::queue([
            Reply::tool("t1", "structured_output", json!({"verdict": "perhaps", "count": 1})),
            Reply::tool("t2", "structured_output", json!({"verdict": "pass", "count": 7})),
            Reply::text("done"),
        ]);
        let sandbox =
            if wire == "openai" { Sandbox::openai(&provider) } else { Sandbox::anthropic(&provider) };
        let output = run(&sandbox, "", SCHEMA).expect_code(0);
        assert_eq!(output.stdout, "pass7\n");
        let requests = provider.requests();
        assert!(requests[0].tool_names().contains(&"structured_output"), "{:?}", requests[0].tool_names());
        let told = requests[1].messages().last().map(ToString::to_string).unwrap_or_default();
        assert!(
            told.contains("perhaps") || told.contains("verdict"),
            "the second request tells what was wrong: {told}"
        );
        let stored: Value =
            serde_json::from_str(&sandbox.newest_run().read("nodes/a.1/output.json")).unwrap();
        assert_eq!(stored, json!({"verdict": "pass", "count": 7}));
    }
}

#[test]
fn three_wrong_answers_are_enough() {
    let provider =
        ScriptedProvider::always(Reply::tool("t%N%", "structured_output", json!({"verdict": "perhaps"})));
    let sandbox = Sandbox::anthropic(&provider);
    let output = run(&sandbox, "", SCHEMA).expect_code(1);
    assert_eq!(provider.count(), 3, "{output}");
    assert_eq!(sandbox.newest_run().manifest("a")["errorClass"], "schema");
}

#[test]
fn artifacts_are_hashed_and_a_missing_one_fails_the_node() {
    let sandbox = Sandbox::new();
    let nodes = r#"
[node.make]
kind = "command"
run = "printf abc > made.txt"
artifacts = [{ path = "made.txt", required = true }, { path = "absent.txt" }]
"#;
    run(&sandbox, "", nodes).expect_code(0);
    let manifest = sandbox.newest_run().manifest("make");
    let made = manifest["artifacts"].as_array().cloned().unwrap_or_default();
    let made = made.iter().find(|artifact| artifact["path"] == "made.txt").cloned().unwrap_or_default();
    assert_eq!(made["bytes"], 3, "{manifest}");
    assert_eq!(
        made["sha256"], "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "{manifest}"
    );
    let nodes = nodes.replace("path = \"absent.txt\"", "path = \"absent.txt\", required = true");
    let output = run(&sandbox, "", &nodes).expect_code(1);
    assert!(output.stderr.contains("absent.txt"), "{output}");
    assert_eq!(sandbox.newest_run().manifest("make")["errorClass"], "artifact");
}

#[test]
fn a_retry_is_a_new_attempt_and_goes_on_from_the_last_whole_turn() {
    let broken = Reply::error(503, &json!({"error": {"type": "api_error", "message": "away"}}));
    let provider = ScriptedProvider::queue([
        Reply::tool("t1", "glob_search", json!({"pattern": "*.toml"})),
        broken,
        Reply::text("in the end"),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    let nodes =
        "[node.a]\nagent = \"Explore\"\nprompt = \"NODE-A\"\nretry = { attempts = 2, backoff = \"10ms\" }\n";
    let output = start(&sandbox, "", nodes).env("CLAW_REQUEST_TRIES", "1").run(BOUND).expect_code(0);
    assert_eq!(output.stdout, "in the end\n");
    let run = sandbox.newest_run();
    let statuses: Vec<_> = run.statuses().into_iter().collect();
    let expected = [("a.1", "failed"), ("a.2", "completed")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(statuses, expected);
    let requests = provider.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[2].messages().len(), 3, "the call and its result were not asked for again");
}

#[test]
fn a_command_is_tried_again_only_where_the_file_says_so() {
    let script = "echo x >> tries.txt; test $(wc -l < tries.txt) -ge 3";
    for (retry, code, tries) in
        [("", 1, 1), ("retry = { attempts = 3, on = [\"exit\"], backoff = \"10ms\" }\n", 0, 3)]
    {
        let sandbox = Sandbox::new();
        let nodes = format!("[node.a]\nkind = \"command\"\nrun = '''{script}'''\n{retry}");
        run(&sandbox, "", &nodes).expect_code(code);
        assert_eq!(sandbox.read("tries.txt").lines().count(), tries);
    }
}

#[test]
fn inputs_are_typed_and_may_come_from_a_file_or_standard_input() {
    let sandbox = Sandbox::new();
    let head = r#"
[inputs.name]
type = "string"
[inputs.count]
type = "int"
default = 2
[inputs.mode]
type = "enum"
values = ["fast", "slow"]
default = "fast"
[inputs.extra]
type = "json"
default = {}
"#;
    let nodes = "[node.say]\nkind = \"set\"\nvalue = \"inputs.name ~ inputs.count ~ inputs.mode ~ (inputs.extra.deep | default('-'))\"\n";
    let with = |args: &[&str], stdin: &str| start(&sandbox, head, nodes).args(args).stdin(stdin).run(BOUND);
    assert_eq!(with(&["--input", "name=a=b"], "").expect_code(0).stdout, "a=b2fast-\n");
    assert_eq!(
        with(&["--input", "name=x", "--input", "count=7", "--input", "mode=slow"], "").expect_code(0).stdout,
        "x7slow-\n"
    );
    sandbox.write("in.json", r#"{"name": "file", "extra": {"deep": "sea"}}"#);
    assert_eq!(with(&["--inputs", "in.json"], "").expect_code(0).stdout, "file2fastsea\n");
    assert_eq!(
        with(&["--inputs", "-"], r#"{"name": "pipe", "count": 3}"#).expect_code(0).stdout,
        "pipe3fast-\n"
    );
    for (args, word) in [
        (&[][..], "name"),
        (&["--input", "name=x", "--input", "count=many"], "count"),
        (&["--input", "name=x", "--input", "mode=fsat"], "fast"),
        (&["--input", "name=x", "--input", "nmae=y"], "nmae"),
        (&["--inputs", "missing.json"], "missing.json"),
    ] {
        let output = with(args, "").expect_code(2);
        assert!(output.stderr.contains(word) && output.stdout.is_empty(), "{args:?}: {output}");
    }
}

const TOKEN: &str = "token-5b1f0c77aa";

#[test]
fn secrets_reach_a_command_and_no_file_no_prompt_no_log() {
    let provider = ScriptedProvider::new([
        Route::reply(Reply::tool(
            "t1",
            "bash",
            json!({"command": "env; cat /proc/self/environ | tr '\\0' '\\n'; echo key=$ANTHROPIC_API_KEY"}),
        ))
        .times(1),
        Route::reply(Reply::text("looked")),
    ]);
    provider.secret(TOKEN);
    let sandbox = Sandbox::anthropic(&provider);
    let head = "[inputs.token]\ntype = \"string\"\nsecret = true\n";
    let nodes = r#"
[node.use]
kind = "command"
run = "test \"$T\" = \"$(cat want.txt)\" && echo matches; echo \"said $T\"; echo \"err $T\" >&2"
env = { T = "{{ inputs.token }}" }
[node.ask]
needs = ["use"]
prompt = "NODE-ASK {{ use }}"
"#;
    sandbox.write("want.txt", TOKEN);
    let output = start(&sandbox, head, nodes)
        .args([
            "--input",
            &format!("token={TOKEN}"),
            "--output-format",
            "stream-json",
            "--include-partial-messages",
        ])
        .env("CLAW_LOG", "trace")
        .run(BOUND)
        .expect_code(0);
    let asked = provider.requests_with("NODE-ASK");
    assert!(asked[0].text.contains("matches"), "the command had the secret: {}", asked[0].text);
    assert!(!output.stdout.contains(TOKEN) && !output.stderr.contains(TOKEN), "{output}");
    assert!(
        !output.stdout.contains(claw_kit::CANARY) && !output.stderr.contains(claw_kit::CANARY),
        "{output}"
    );
    assert_eq!(sandbox.files_with_canary(), Vec::<std::path::PathBuf>::new());
    let told = claw_kit::run_program(&sandbox.project(), "grep", &["-rl", TOKEN, "."]).unwrap_or_default();
    assert_eq!(told, "./want.txt\n", "the secret stands in a file of the run");
    for text in [
        "[node.a]\nprompt = \"{{ inputs.token }}\"\n",
        "[node.a]\nkind = \"command\"\nrun = [\"echo\", \"{{ inputs.token }}\"]\n",
        "[node.a]\nkind = \"set\"\nvalue = \"inputs.token\"\n",
    ] {
        let output = start(&sandbox, head, text).args(["--input", "token=x"]).run(BOUND).expect_code(2);
        assert!(output.stderr.contains("secret"), "{output}");
    }
}

#[test]
fn a_resume_asks_for_a_secret_again_and_uses_what_the_command_gave() {
    let sandbox = Sandbox::new();
    let head = "[inputs.token]\ntype = \"string\"\nsecret = true\n";
    let nodes = r#"
[node.use]
kind = "command"
run = "echo x >> side.txt; echo ${#T}"
env = { T = "{{ inputs.token }}" }
[node.fail]
kind = "command"
needs = ["use"]
run = "test -e go"
"#;
    let given = format!("token={TOKEN}");
    start(&sandbox, head, nodes).args(["--input", &given]).run(BOUND).expect_code(1);
    sandbox.write("go", "");
    let missing = start(&sandbox, head, nodes).args(["--resume"]).run(BOUND).expect_code(2);
    assert!(missing.stderr.contains("token"), "{missing}");
    start(&sandbox, head, nodes).args(["--resume", "--input", &given]).run(BOUND).expect_code(0);
    assert_eq!(sandbox.read("side.txt").lines().count(), 1, "the same secret is the same key");
}

#[test]
fn a_long_output_reaches_the_next_prompt_as_head_tail_and_path() {
    let long = format!("HEAD-MARK {} TAIL-MARK", "word ".repeat(10_000));
    let provider = ScriptedProvider::new([
        Route::reply(Reply::text(long)).contains("NODE-A"),
        Route::reply(Reply::text("ok")).contains("NODE-B").label("b"),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    let nodes = "[node.a]\nprompt = \"NODE-A\"\n[node.b]\nneeds = [\"a\"]\nprompt = \"NODE-B {{ a }}\"\n";
    run(&sandbox, "", nodes).expect_code(0);
    let asked = provider.requests_of("b")[0].text.clone();
    assert!(asked.contains("HEAD-MARK") && asked.contains("TAIL-MARK"));
    assert!(asked.matches("word").count() < 4_000, "a reference above 16 KiB is cut");
    assert!(asked.contains("a.1/output.md") && asked.contains("bytes"), "what was left out is said");
}

#[test]
fn the_time_of_an_agent_ends_its_tool_as_well() {
    let provider = ScriptedProvider::always(Reply::tool("t1", "bash", json!({"command": "sleep 7481"})));
    let sandbox = Sandbox::anthropic(&provider);
    let nodes = "[node.a]\nprompt = \"x\"\ntimeout = \"900ms\"\nretry = { attempts = 1 }\n";
    let output = run(&sandbox, "", nodes).expect_code(1);
    assert_eq!(sandbox.newest_run().manifest("a")["errorClass"], "timeout", "{output}");
    assert_eq!(processes_with("sleep 7481"), 0);
    assert!(output.took < Duration::from_secs(6), "{output}");
}

#[test]
fn a_tool_that_works_is_not_idle() {
    let provider = ScriptedProvider::queue([
        Reply::tool("t1", "bash", json!({"command": "sleep 1.2; echo slept"})),
        Reply::text("done"),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    let nodes = "[node.a]\nprompt = \"x\"\nidle_timeout = \"400ms\"\nretry = { attempts = 1 }\n";
    assert_eq!(run(&sandbox, "", nodes).expect_code(0).stdout, "done\n");
}

#[test]
fn items_that_an_agent_found_are_bounded_before_anything_starts() {
    let answer = |count: usize| {
        let files: Vec<String> = (0..count).map(|n| format!("f{n}")).collect();
        Reply::tool("t1", "structured_output", json!({"files": files}))
    };
    let nodes = r#"
[node.find]
agent = "Explore"
prompt = "NODE-FIND"
[node.find.output]
type = "object"
required = ["files"]
properties = { files = { type = "array", items = { type = "string" } } }
[node.look]
agent = "Explore"
needs = ["find"]
prompt = "NODE-LOOK {{ item }}"
each = { items = "find.files", key = "{{ item }}", max = 5 }
"#;
    for (count, code) in [(5, 0), (6, 1), (0, 0)] {
        let provider = ScriptedProvider::new([
            Route::reply(answer(count)).contains("NODE-FIND").lacks("tool_result"),
            Route::reply(Reply::text("seen")),
        ]);
        let sandbox = Sandbox::anthropic(&provider);
        let output = run(&sandbox, "", nodes).expect_code(code);
        let looked = provider.requests_with("NODE-LOOK").len();
        assert_eq!(looked, if count > 5 { 0 } else { count }, "{output}");
    }
}

#[test]
fn the_key_of_the_provider_is_in_no_environment_that_a_model_or_a_command_sees() {
    let provider = ScriptedProvider::new([
        Route::reply(Reply::tool(
            "t1",
            "bash",
            json!({"command": "cat /proc/self/environ 2>&1 | tr '\\0' '\\n'; set; echo end"}),
        ))
        .times(1),
        Route::reply(Reply::text("looked")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    let nodes = r#"
[node.a]
prompt = "x"
[node.c]
kind = "command"
run = "env | grep -c sk-canary"
ok_exit = [0, 1]
"#;
    let output = start(&sandbox, "", nodes).args(["--output-format", "json"]).run(BOUND).expect_code(0);
    let counts = output.json()["result"]["c"].as_str().unwrap_or_default().to_owned();
    assert_eq!(counts.lines().next(), Some("0"), "{output}");
    assert_eq!(sandbox.files_with_canary(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_command_that_fails_tells_its_error_without_the_secret() {
    let sandbox = Sandbox::new();
    let head = "[inputs.token]\ntype = \"string\"\nsecret = true\n";
    let nodes = r#"
[node.use]
kind = "command"
run = "echo got $T >&2; exit 1"
env = { T = "{{ inputs.token }}" }
"#;
    let secret = format!("token={TOKEN}");
    let output = start(&sandbox, head, nodes).args(["--input", &secret]).run(BOUND).expect_code(1);
    assert!(output.stderr.contains("exit code 1: got [redacted]"), "{output}");
    assert!(!output.stderr.contains(TOKEN), "{output}");
    let told = claw_kit::run_program(&sandbox.project(), "grep", &["-rl", TOKEN, "."]).unwrap_or_default();
    assert_eq!(told, "", "the secret stands in a file of the run");
}

#[test]
fn a_merge_writes_below_the_workspace_and_nowhere_else() {
    let sandbox = Sandbox::new();
    let nodes = |path: &str| {
        format!(
            "[node.p]\nkind = \"set\"\nvalue = \"'{path}'\"\n[node.m]\nkind = \"merge\"\nneeds = [\"p\"]\nstrategy = \"concat\"\nfrom = [\"['one', 'two']\"]\nwrite = \"{{{{ p }}}}\"\n"
        )
    };
    run(&sandbox, "", &nodes("out/merged.txt")).expect_code(0);
    assert_eq!(sandbox.read("out/merged.txt"), "one\n\ntwo");
    for path in ["nodir/../../escaped.txt", "/tmp/claw-escaped.txt", "../escaped.txt", ".claw/settings.json"]
    {
        let output = run(&sandbox, "", &nodes(path)).expect_code(1);
        assert!(output.stderr.contains("write "), "{output}");
    }
    assert!(!sandbox.project().join("../escaped.txt").exists() && !sandbox.has("nodir"));
    assert!(!sandbox.has(".claw/settings.json"));
}

#[test]
fn an_output_that_breaks_its_schema_fails_a_command_and_a_set() {
    let sandbox = Sandbox::new();
    let schema = "[node.a.output]\ntype = \"object\"\nrequired = [\"x\"]\n";
    for node in ["kind = \"set\"\nvalue = \"{'y': 1}\"", "kind = \"command\"\nrun = \"echo '{}'\""] {
        let output = run(&sandbox, "", &format!("[node.a]\n{node}\n{schema}")).expect_code(1);
        assert!(output.stderr.contains("does not satisfy its schema"), "{output}");
    }
}
