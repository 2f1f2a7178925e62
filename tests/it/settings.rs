//! Settings files: order, places, what stops the start, `claw config`, `claw login`.

use claw_kit::{CANARY, Claw, Output, Reply, Sandbox, ScriptedProvider};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(20);

fn claw(sandbox: &Sandbox, args: &[&str]) -> Output {
    Claw::new(CLAW, sandbox).args(args).run(BOUND)
}

fn model_of(provider: &ScriptedProvider) -> String {
    provider.last_request().body["model"].as_str().unwrap_or_default().to_owned()
}

/// Rows of `claw config SECTION`: key, value, place without its folder.
fn rows(sandbox: &Sandbox, section: &str) -> Vec<(String, Value, String)> {
    let output = claw(sandbox, &["config", section, "--output-format", "json"]).expect_code(0);
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let short = |from: String| from.rsplit('/').next().unwrap_or_default().to_owned();
    output.json()["settings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (text(row, "key"), row["value"].clone(), short(text(row, "from"))))
        .collect()
}

#[test]
fn a_provider_of_the_settings_is_asked_with_its_key_and_model() {
    let provider = ScriptedProvider::always(Reply::text("hello"));
    let sandbox = Sandbox::new().env("HOUSE_KEY", CANARY);
    let url = provider.openai_url();
    sandbox.write_home(
        ".claude/settings.json",
        format!(
            r#"{{
  // the house's own service
  "providers": {{"house": {{"base_url": "{url}", "api_key_env": "HOUSE_KEY", "models": ["big", "small"]}}}},
  "aliases": {{"quick": "house/small"}},
  "model": "quick",
}}"#
        ),
    );
    let output = claw(&sandbox, &["-p", "hi", "--output-format", "json"]).expect_code(0);
    assert_eq!(output.json()["result"], "hello");
    assert_eq!(model_of(&provider), "small");
    assert!(sandbox.files_with_canary().is_empty());
    claw(&sandbox, &["-p", "hi", "--model", "house/big"]).expect_code(0);
    assert_eq!(model_of(&provider), "big");
}

#[test]
fn what_cannot_be_used_stops_every_start_with_its_place_and_asks_no_model() {
    let provider = ScriptedProvider::always(Reply::text("never"));
    for (file, text, wanted) in [
        (
            ".claude/settings.json",
            "{\n  \"permissions\": {\n    \"deny\": [\"bash(rm:*)\", \"write_file\"],\n  \"hooks\": {}\n}\n",
            "settings.json:1:1: no valid JSON",
        ),
        (
            ".claw.json",
            r#"{"permissions":{"deny":"bash"}}"#,
            ".claw.json:1:24: permissions.deny: this is a text",
        ),
        (
            ".claw/settings.json",
            r#"{"permissions":{"deny":["bash"]},"permissions":{}}"#,
            "settings.json:1:34: permissions: the key stands twice",
        ),
        (
            ".claw/settings.local.json",
            r#"{"permissions":{"defaultMode":"read-onyl"}}"#,
            "did you mean `read-only`?",
        ),
    ] {
        let sandbox = Sandbox::anthropic(&provider);
        sandbox.write(file, text);
        let before = std::fs::read(sandbox.project().join(file)).unwrap();
        for args in [&["-p", "hi"][..], &["models"]] {
            let output = claw(&sandbox, args).expect_code(2);
            assert!(output.stderr.contains(wanted), "{wanted}\n{output}");
        }
        let shown = claw(&sandbox, &["config"]).expect_code(2);
        assert!(shown.stdout.contains(wanted), "{shown}");
        assert_eq!(std::fs::read(sandbox.project().join(file)).unwrap(), before);
    }
    assert_eq!(provider.count(), 0);
}

#[test]
fn unknown_keys_warn_with_the_near_one_and_nothing_else_happens() {
    let provider = ScriptedProvider::always(Reply::text("hello"));
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write_home(".claw/settings.json", r#"{"modle": "x", "outputStyle": "y"}"#);
    let output = claw(&sandbox, &["-p", "hi"]).expect_code(0);
    assert!(output.stderr.contains("settings.json:1:2: modle: unknown key"), "{output}");
    assert!(
        output.stderr.contains("did you mean `model`?") && !output.stderr.contains("outputStyle"),
        "{output}"
    );
}

#[test]
fn config_shows_each_value_with_file_and_line_and_what_it_shadows() {
    let sandbox = Sandbox::new().env("CLAW_MODEL", "from-a-variable");
    sandbox.write_home(".claude.json", r#"{"numStartups": 5, "theme": "light"}"#);
    sandbox.write_home(".claude/settings.json", "{\n  \"model\": \"a\",\n  \"permissions\": {\"deny\": [\"bash(rm:*)\"]},\n  \"env\": {\"X_API_KEY\": \"sk-hidden\", \"PLAIN\": \"seen\"}\n}");
    sandbox.write(
        ".claude/settings.json",
        "{\"permissions\": {\n  \"deny\": [\"bash(curl:*)\", \"bash(rm:*)\"]},\n \"model\": \"b\"}",
    );
    assert_eq!(
        rows(&sandbox, "permissions"),
        [
            ("permissions.deny".into(), json!("bash(rm:*)"), "settings.json:3:28".into()),
            ("permissions.deny".into(), json!("bash(curl:*)"), "settings.json:2:12".into()),
        ]
    );
    let all = claw(&sandbox, &["config"]).expect_code(0);
    let model = "model = \"from-a-variable\"\n    CLAW_MODEL (environment)\n    shadows \"b\"  ";
    assert!(all.stdout.contains(model) && all.stdout.contains("shadows \"a\"  "), "{all}");
    assert!(!all.stdout.contains("sk-hidden") && all.stdout.contains("env.PLAIN = \"seen\""), "{all}");
    let json = claw(&sandbox, &["config", "--output-format", "json"]).expect_code(0);
    assert!(json.json()["settings"].is_array() && !json.stdout.contains("sk-hidden"));
    let near = claw(&sandbox, &["config", "permisions"]).expect_code(2);
    assert!(near.stderr.contains("did you mean `permissions`?"), "{near}");
}

#[test]
fn config_set_keeps_comments_and_refuses_what_would_break_the_file() {
    let sandbox = Sandbox::new();
    let file = sandbox.write_home(".claw/settings.json", "{\n  // mine\n  \"theme\": \"dark\"\n}\n");
    claw(&sandbox, &["config", "set", "theme", "light"]).expect_code(0);
    claw(&sandbox, &["config", "set", "limits.concurrency", "4"]).expect_code(0);
    claw(&sandbox, &["config", "set", "model", "5"]).expect_code(0);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("{\n  // mine\n  \"theme\": \"light\""), "{text}");
    assert!(text.contains("\"concurrency\": 4") && text.contains("\"model\": \"5\""), "{text}");
    for (key, value, wanted) in [
        ("theme", "drak", "did you mean `dark`?"),
        ("limits.concurrency", "0", "whole number from 1"),
        ("thme", "x", "did you mean `theme`?"),
        ("limits.deep", "1", "unknown key"),
    ] {
        let output = claw(&sandbox, &["config", "set", key, value]).expect_code(2);
        assert!(output.stderr.contains(wanted), "{wanted}\n{output}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    let private =
        claw(&sandbox, &["config", "set", "hooksFailOpen", "true", "--scope", "project"]).expect_code(2);
    assert!(private.stderr.contains("your own settings"), "{private}");
    assert!(!sandbox.has(".claw"));
}

#[test]
fn a_rule_that_the_user_sets_in_his_local_file_counts_at_once() {
    let sandbox = Sandbox::new().with_git();
    claw(&sandbox, &["config", "set", "permissions.allow", "[\"Bash(make:*)\"]", "--scope", "local"])
        .expect_code(0);
    assert_eq!(rows(&sandbox, "permissions").len(), 1);
    sandbox
        .write(".claw/settings.local.json", r#"{"permissions": {"allow": ["Bash(make:*)", "Bash(rm:*)"]}}"#);
    let left = rows(&sandbox, "permissions");
    assert_eq!((left.len(), &left[0].1), (1, &json!("Bash(make:*)")));
}

#[test]
fn the_folder_of_settings_is_where_the_variables_say() {
    let set = |sandbox: Sandbox| {
        claw(&sandbox, &["config", "set", "theme", "none"]).expect_code(0);
        sandbox
    };
    let bare = || Sandbox::new().without_env("CLAW_CONFIG_HOME");
    assert!(set(bare()).home().join(".config/claw/settings.json").is_file());
    assert!(set(bare().without_env("XDG_CONFIG_HOME")).home().join(".claw/settings.json").is_file());
    let other = bare();
    let folder = other.home().join("other");
    assert!(
        set(other.env("CLAUDE_CONFIG_HOME", &folder.to_string_lossy()))
            .home()
            .join("other/settings.json")
            .is_file()
    );
}

#[test]
fn settings_of_a_flag_go_before_files() {
    let provider = ScriptedProvider::always(Reply::text("hello"));
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write_home(".claw/settings.json", r#"{"model": "a"}"#);
    sandbox.write("more.json", r#"{"model": "b"}"#);
    claw(&sandbox, &["-p", "hi", "--settings", "more.json"]).expect_code(0);
    assert_eq!(model_of(&provider), "b");
    claw(&sandbox, &["-p", "hi", "--settings", r#"{"model": "c"}"#]).expect_code(0);
    assert_eq!(model_of(&provider), "c");
    claw(&sandbox, &["-p", "hi", "--settings", r#"{"model": "c"}"#, "--model", "d"]).expect_code(0);
    assert_eq!(model_of(&provider), "d");
    let missing = claw(&sandbox, &["-p", "hi", "--settings", "absent.json"]).expect_code(2);
    assert!(missing.stderr.contains("absent.json"), "{missing}");
    assert_eq!(provider.count(), 3);
}

#[test]
fn the_mode_of_the_users_settings_holds_and_a_flag_goes_before_it() {
    let write = || Reply::tool("call-1", "write_file", json!({"path": "made.txt", "content": "x"}));
    let provider = ScriptedProvider::queue([write(), Reply::text("done"), write(), Reply::text("done")]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write_home(".claw/settings.json", r#"{"permissions": {"defaultMode": "plan"}}"#);
    claw(&sandbox, &["-p", "hi"]).expect_code(0);
    assert!(!sandbox.has("made.txt"));
    claw(&sandbox, &["-p", "hi", "--permission-mode", "workspace-write"]).expect_code(0);
    assert!(sandbox.has("made.txt"));
}

#[test]
fn variables_of_the_users_settings_reach_commands_and_keys_do_not() {
    let provider = ScriptedProvider::queue([
        Reply::tool(
            "call-1",
            "bash",
            json!({"command": "echo \"flag=$MY_FLAG key=$ANTHROPIC_API_KEY\" > seen.txt"}),
        ),
        Reply::text("done"),
    ]);
    let sandbox = Sandbox::new();
    let url = provider.anthropic_url();
    sandbox.write_home(
        ".claude/settings.json",
        format!(r#"{{"env": {{"MY_FLAG": "on", "ANTHROPIC_API_KEY": "{CANARY}", "ANTHROPIC_BASE_URL": "{url}"}}}}"#),
    );
    claw(&sandbox, &["-p", "hi"]).expect_code(0);
    assert_eq!(sandbox.read("seen.txt"), "flag=on key=\n");
    let holders = sandbox.files_with_canary();
    assert!(holders.iter().all(|path| path.ends_with(".claude/settings.json")), "{holders:?}");
}

#[test]
fn limits_of_the_settings_hold_where_a_workflow_says_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write_home(".claw/settings.json", r#"{"limits": {"concurrency": 3, "agents": 1}}"#);
    sandbox.write(
        "wf.toml",
        "schema = 1\n[workflow]\nname = \"w\"\n[node.a]\nagent = \"Explore\"\nprompt = \"x\"\n[node.b]\nagent = \"Explore\"\nprompt = \"x\"\n",
    );
    let output = claw(&sandbox, &["run", "wf.toml", "--plan"]).expect_code(2);
    assert!(output.stderr.contains("the plan needs 2 agents, the limit is 1"), "{output}");
    claw(&sandbox, &["config", "set", "limits.agents", "5"]).expect_code(0);
    let output = claw(&sandbox, &["run", "wf.toml", "--plan", "--output-format", "json"]).expect_code(0);
    assert!(output.stdout.contains("\"concurrency\":3"), "{output}");
}

#[test]
fn login_keeps_a_key_for_the_user_alone_and_logout_removes_it() {
    let provider = ScriptedProvider::always(Reply::text("hello"));
    let sandbox = Sandbox::new().env("ANTHROPIC_BASE_URL", &provider.anthropic_url());
    let file = sandbox.write_home(".claw/credentials.json", r#"{"other": 1}"#);
    let kept =
        Claw::new(CLAW, &sandbox).args(["login"]).stdin(format!("{CANARY}\n")).run(BOUND).expect_code(0);
    assert!(kept.stdout.is_empty() && !kept.stderr.contains(CANARY), "{kept}");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    claw(&sandbox, &["-p", "hi"]).expect_code(0);
    assert_eq!(provider.last_request().header("x-api-key"), Some(CANARY));
    let holders = sandbox.files_with_canary();
    assert_eq!(holders, std::slice::from_ref(&file));
    claw(&sandbox, &["logout", "anthropic"]).expect_code(0);
    assert_eq!(std::fs::read_to_string(&file).unwrap().trim().replace([' ', '\n'], ""), r#"{"other":1}"#);
    claw(&sandbox, &["-p", "hi"]).expect_code(0);
    assert_eq!(provider.last_request().header("x-api-key"), None, "a server on this machine needs none");
    let wrong = Claw::new(CLAW, &sandbox).args(["login", "antropic"]).stdin("x\n").run(BOUND).expect_code(2);
    assert!(wrong.stderr.contains("did you mean `anthropic`?"), "{wrong}");
    assert_eq!(
        Path::new(&file)
            .parent()
            .unwrap()
            .read_dir()
            .unwrap()
            .flatten()
            .filter(|f| f.path().extension().is_some_and(|e| e == "tmp"))
            .count(),
        0
    );
}

#[test]
fn the_users_hooks_run_before_those_of_a_repository_that_is_trusted() {
    let call = || Reply::tool("call-1", "bash", json!({"command": "true"}));
    let provider = ScriptedProvider::queue([call(), Reply::text("done"), call(), Reply::text("done")]);
    let sandbox = Sandbox::anthropic(&provider).with_git();
    let hook = |who: &str| format!(r#"{{"hooks": {{"PreToolUse": ["echo {who}"]}}}}"#);
    sandbox.write_home(".claude/settings.json", hook("from-the-user"));
    sandbox.write(".claude/settings.json", hook("from-the-project"));
    let told = |args: &[&str]| {
        claw(&sandbox, args).expect_code(0);
        provider.last_request().text.clone()
    };
    let untrusting = told(&["-p", "hi"]);
    assert!(untrusting.contains("from-the-user") && !untrusting.contains("from-the-project"), "{untrusting}");
    let trusting = told(&["-p", "hi", "--trust"]);
    let at = |word: &str| trusting.find(word).unwrap_or_else(|| panic!("no {word} in {trusting}"));
    assert!(at("from-the-user") < at("from-the-project"));
}

#[test]
fn what_claw_keeps_of_the_user_is_his_alone_whatever_the_umask() {
    let sandbox = Sandbox::new().with_git();
    sandbox.write(".claude/settings.json", r#"{"hooks": {"Stop": ["true"]}}"#);
    let program = format!(
        "umask 000; cd {:?}; {CLAW:?} config set theme none && {CLAW:?} trust accept --all && echo sk-x | {CLAW:?} login openai",
        sandbox.project()
    );
    let output = Claw::new("/bin/sh", &sandbox).args(["-c", &program]).run(BOUND).expect_code(0);
    for name in
        ["settings.json", "trust.json", "credentials.json", "settings.lock", "trust.lock", "credentials.lock"]
    {
        let meta = sandbox
            .home()
            .join(".claw")
            .join(name)
            .metadata()
            .unwrap_or_else(|e| panic!("{name}: {e}\n{output}"));
        assert_eq!(meta.permissions().mode() & 0o777, 0o600, "{name}");
    }
}

#[test]
fn a_folder_that_the_user_adds_is_written_and_one_that_a_repository_adds_is_not() {
    let more = tempfile::tempdir().unwrap();
    let folder = more.path().display().to_string();
    let write =
        || Reply::tool("call-1", "write_file", json!({"path": format!("{folder}/made.txt"), "content": "x"}));
    let provider = ScriptedProvider::queue([write(), Reply::text("done"), write(), Reply::text("done")]);
    let sandbox = Sandbox::anthropic(&provider).with_git();
    let text = format!(r#"{{"permissions": {{"additionalDirectories": ["{folder}"]}}}}"#);
    sandbox.write(".claude/settings.json", &text);
    claw(&sandbox, &["-p", "hi"]).expect_code(0);
    assert!(!more.path().join("made.txt").exists());
    sandbox.write_home(".claw/settings.json", &text);
    claw(&sandbox, &["-p", "hi"]).expect_code(0);
    assert!(more.path().join("made.txt").exists());
}
