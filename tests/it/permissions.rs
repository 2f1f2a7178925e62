//! Rules, the question at a terminal, and what happens where nobody is there.

use claw_kit::{Claw, Output, Pty, Reply, Route, Sandbox, ScriptedProvider};
use serde_json::{Value, json};
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(30);
const SECRET: &str = "FILE_SECRET_4417";

/// A model that makes these calls, one in each turn, and is done.
fn calling(calls: &[(&str, Value)]) -> ScriptedProvider {
    let call = |(at, (tool, input)): (usize, &(&str, Value))| {
        Route::reply(Reply::tool(&format!("t{at}"), tool, input.clone())).times(1)
    };
    let routes = calls.iter().enumerate().map(call).chain([Route::reply(Reply::text("done"))]);
    ScriptedProvider::new(routes)
}

fn commands(lines: &[&str]) -> ScriptedProvider {
    let calls: Vec<(&str, Value)> = lines.iter().map(|line| ("bash", json!({"command": line}))).collect();
    calling(&calls)
}

fn with_rules(provider: &ScriptedProvider, rules: &Value) -> Sandbox {
    let sandbox = Sandbox::anthropic(provider);
    sandbox.write_home(".claw/settings.json", json!({"permissions": rules}).to_string());
    sandbox
}

fn ask(sandbox: &Sandbox, flags: &[&str]) -> Output {
    let args = ["-p", "x", "--output-format", "json"].iter().chain(flags);
    Claw::new(CLAW, sandbox).args(args).run(BOUND)
}

fn denials(output: &Output) -> Vec<Value> {
    output.json()["permission_denials"].as_array().cloned().unwrap_or_default()
}

#[test]
fn an_allow_rule_lets_no_chained_substituted_or_prefixed_command_through() {
    for (rule, lines) in [
        (
            "Bash(git status:*)",
            &[
                "git status; touch PWNED",
                "git status && touch PWNED",
                "git status || touch PWNED",
                "git status | touch PWNED",
                "git status & touch PWNED",
                "git status\ntouch PWNED",
                "git status\r\ntouch PWNED",
            ][..],
        ),
        (
            "Bash(echo:*)",
            &[
                "echo \"$(touch PWNED)\"",
                "echo `touch PWNED`",
                "echo ${x:=$(touch PWNED)}",
                "echo $((a[$(touch PWNED)]))",
            ],
        ),
        ("Bash(cat:*)", &["cat <(touch PWNED)", "cat < <(touch PWNED)"]),
        ("Bash(git diff:*)", &["GIT_EXTERNAL_DIFF='touch PWNED;' git diff", "LD_PRELOAD=./x.so git diff"]),
    ] {
        let provider = commands(lines);
        let sandbox = with_rules(&provider, &json!({"allow": [rule]}));
        let output = ask(&sandbox, &[]).expect_code(0);
        let denied = denials(&output);
        assert_eq!(denied.len(), lines.len(), "{rule} {output}");
        let told = denied[0].to_string();
        assert!(told.contains(rule) && told.contains("settings.json:1:"), "{told}");
        assert!(!sandbox.has("PWNED"), "{rule}");
    }
}

#[test]
fn a_deny_rule_holds_through_wrappers_spellings_and_length() {
    let long = "true && ".repeat(60) + "touch PWNED";
    let lines = [
        "env touch PWNED",
        "command touch PWNED",
        "timeout 1 touch PWNED",
        "nice touch PWNED",
        "exec touch PWNED",
        "printf PWNED | xargs touch",
        "\\touch PWNED",
        "t\"ou\"ch PWNED",
        "$'\\x74ouch' PWNED",
        "{touch,PWNED}",
        "A=touch; $A PWNED",
        "touch$IFS\"\"PWNED",
        &long,
    ];
    let provider = commands(&lines);
    let sandbox = with_rules(&provider, &json!({"deny": ["Bash(touch:*)"]}));
    let output = ask(&sandbox, &["--permission-mode", "danger-full-access", "--allow-root"]).expect_code(0);
    assert_eq!(denials(&output).len(), lines.len(), "{output}");
    assert!(!sandbox.has("PWNED"));
}

#[test]
fn a_denied_file_is_read_by_no_tool_under_no_name() {
    let provider = calling(&[
        ("read_file", json!({"path": "private/key.txt"})),
        ("read_file", json!({"path": "link"})),
        ("read_file", json!({"path": "hard"})),
        ("read_file", json!({"path": "./a/../private/key.txt"})),
        ("grep_search", json!({"pattern": ".", "path": "private/key.txt"})),
        ("grep_search", json!({"pattern": ".", "output_mode": "content"})),
        ("edit_file", json!({"path": "link", "old_string": "x", "new_string": "y"})),
        ("bash", json!({"command": "cat private/key.txt"})),
        ("bash", json!({"command": "cat < link"})),
        ("bash", json!({"command": "x=key.txt; cat private/$x || cat private/*"})),
        ("bash", json!({"command": "cat private/*; cat link | cat"})),
    ]);
    let sandbox = with_rules(&provider, &json!({"deny": ["Read(./private/key.txt)"]}));
    sandbox.write("private/key.txt", format!("{SECRET}\n"));
    sandbox.write("a/readme", "plain\n");
    std::os::unix::fs::symlink("private/key.txt", sandbox.project().join("link")).unwrap();
    std::fs::hard_link(sandbox.project().join("private/key.txt"), sandbox.project().join("hard")).unwrap();
    let output = ask(&sandbox, &[]).expect_code(0);
    let denied = denials(&output);
    assert!(denied.len() >= 8, "{output}");
    assert!(provider.requests_with(SECRET).is_empty(), "{output}");
}

#[test]
fn a_path_beside_the_workspace_is_no_part_of_it() {
    let provider = calling(&[
        ("write_file", json!({"path": "../proj-evil/x", "content": "x"})),
        ("write_file", json!({"path": "lnk/x", "content": "x"})),
        ("write_file", json!({"path": ".claw/settings.json", "content": "{}"})),
        ("write_file", json!({"path": "../out/allowed.txt", "content": "x"})),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    let beside = sandbox.project().parent().unwrap().to_owned();
    std::fs::create_dir(beside.join("proj-evil")).unwrap();
    std::fs::create_dir(beside.join("out")).unwrap();
    std::os::unix::fs::symlink(beside.join("proj-evil"), sandbox.project().join("lnk")).unwrap();
    let rule = format!("Write(/{}/**)", beside.join("out").display());
    sandbox.write_home(".claw/settings.json", json!({"permissions": {"allow": [rule]}}).to_string());
    let output = ask(&sandbox, &[]).expect_code(0);
    let denied = denials(&output);
    assert_eq!(denied.len(), 3, "{output}");
    let told = denied[1].to_string();
    assert!(told.contains("proj-evil/x, outside the workspace") && told.contains("write_file(//"), "{told}");
    assert!(denied[2].to_string().contains("a person's word"), "{output}");
    assert!(!beside.join("proj-evil/x").exists() && !sandbox.has(".claw/settings.json"));
    assert!(beside.join("out/allowed.txt").exists(), "{output}");
}

#[test]
fn flags_take_rules_and_a_model_cannot_loosen_its_sandbox() {
    let lines = ["git --version", "ls; touch PWNED"];
    let provider = commands(&lines);
    let sandbox = Sandbox::anthropic(&provider);
    let output = ask(&sandbox, &["--allowedTools", "Bash(git --version),Read"]).expect_code(0);
    assert_eq!(denials(&output).len(), 1, "{output}");
    assert!(denials(&output)[0].to_string().contains("--allowedTools"), "{output}");
    let mut offered: Vec<String> =
        provider.requests()[0].tool_names().into_iter().map(str::to_owned).collect();
    offered.sort();
    assert_eq!(offered, ["bash", "read_file"]);

    let call = json!({"command": "touch ../PWNED", "dangerouslyDisableSandbox": true, "timeout": 1000});
    let provider = calling(&[("bash", call)]);
    let sandbox = Sandbox::anthropic(&provider);
    let output = ask(&sandbox, &[]).expect_code(0);
    assert!(denials(&output)[0].to_string().contains("dangerouslyDisableSandbox"), "{output}");
    assert!(!sandbox.project().parent().unwrap().join("PWNED").exists());
}

#[test]
fn a_broken_rule_stops_the_start_and_names_its_place() {
    let provider = ScriptedProvider::always(Reply::text("never"));
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write_home(".claw/settings.json", "{\n  \"permissions\": {\"deny\": [\"Bash(rm\"]}\n}\n");
    let output = Claw::new(CLAW, &sandbox).args(["-p", "x"]).run(BOUND).expect_code(2);
    assert!(output.stderr.contains("settings.json:2:") && output.stderr.contains("Bash(rm"), "{output}");
    let sandbox = Sandbox::anthropic(&provider);
    let flags = ["-p", "x", "--allowedTools", "Bash(ls"];
    let output = Claw::new(CLAW, &sandbox).args(flags).run(BOUND).expect_code(2);
    assert!(output.stderr.contains("--allowedTools"), "{output}");
    assert_eq!(provider.count(), 0);
}

#[test]
fn what_a_file_claims_and_the_rules_refuse_fails_before_anything_starts() {
    let provider = ScriptedProvider::always(Reply::text("never"));
    let sandbox = with_rules(&provider, &json!({"deny": ["Bash(touch:*)", "Edit"]}));
    sandbox.write(
        "wf.toml",
        "schema = 1\n[workflow]\nname = \"w\"\n[node.a]\nkind = \"command\"\nrun = \"env touch PWNED\"\n[node.b]\nprompt = \"x\"\ntools = [\"Edit\"]\n",
    );
    let output = Claw::new(CLAW, &sandbox).args(["run", "wf.toml"]).run(BOUND).expect_code(2);
    assert_eq!(output.stderr.matches("E187").count(), 2, "{output}");
    assert!(output.stderr.contains("Bash(touch:*)"), "{output}");
    assert!(!sandbox.has("PWNED") && provider.count() == 0);
}

const ONE: &str =
    "schema = 1\n[workflow]\nname = \"one\"\n[node.a]\nlabel = \"maker\"\nprompt = \"make it\"\n";

#[test]
fn a_person_sees_each_command_and_an_answer_for_always_is_kept() {
    let lines = ["git --version; touch made", "git --version; touch made"];
    let provider = commands(&lines);
    let sandbox = with_rules(&provider, &json!({"allow": ["Bash(git --version)"]}));
    sandbox.write("wf.toml", ONE);
    let mut terminal = Pty::new(CLAW, &sandbox).args(["run", "wf.toml"]).start();
    let screen = terminal.wait_for_text("Allow it?", BOUND);
    for text in ["maker wants to use bash", "- git --version", "- touch made", "workspace-write"] {
        assert!(screen.contains(text), "{text}: {}", screen.text());
    }
    terminal.send("a\r");
    let output = terminal.wait(BOUND);
    assert_eq!(output.code, 0, "{}", output.raw);
    assert!(sandbox.has("made") && output.cooked && !output.screen.cursor_hidden);
    assert_eq!(output.raw.matches("Allow it?").count(), 1, "{}", output.raw);
    let kept = sandbox.read(".claw/settings.local.json");
    assert!(kept.contains("bash(git --version; touch made)"), "{kept}");
    // From now on it runs where nobody is there, too.
    let provider = commands(&lines[..1]);
    let again = sandbox.with_provider(&provider, claw_kit::Wire::Anthropic);
    let output = ask(&again, &[]).expect_code(0);
    assert_eq!(denials(&output).len(), 0, "{output}");
}

#[test]
fn two_agents_ask_one_after_another_and_a_no_with_words_reaches_the_model() {
    let call = |mark: &str| Reply::tool("t1", "bash", json!({"command": format!("touch {mark}")}));
    let provider = ScriptedProvider::new([
        Route::reply(call("made-a")).contains("ITEM a").times(1),
        Route::reply(call("made-b")).contains("ITEM b").times(1),
        Route::reply(Reply::text("done")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write(
        "wf.toml",
        "schema = 1\n[workflow]\nname = \"two\"\n[node.look]\nlabel = \"at {{ item }}\"\nprompt = \"ITEM {{ item }}\"\neach = { items = [\"a\", \"b\"], key = \"{{ item }}\" }\n",
    );
    let mut terminal =
        Pty::new(CLAW, &sandbox).args(["run", "wf.toml", "--permission-mode", "prompt"]).start();
    let first = terminal.wait_for_text("Allow it?", BOUND);
    assert_eq!(first.text().matches("wants to use").count(), 1, "{}", first.text());
    let is_a = first.contains("made-a");
    terminal.send("s\r");
    // An answer for the session is not inherited by the other agent.
    let other = if is_a { "touch made-b" } else { "touch made-a" };
    terminal.wait_for_screen("the second question", BOUND, |screen| {
        screen.contains(other) && screen.text().matches("Allow it?").count() >= 1
    });
    terminal.send("use the cache\r");
    let output = terminal.wait(BOUND);
    assert_eq!(output.code, 0, "{}", output.raw);
    assert_ne!(sandbox.has("made-a"), sandbox.has("made-b"), "{}", output.raw);
    assert!(!provider.requests_with("use the cache").is_empty(), "{}", output.raw);
}
