//! Folders of steps, their branches, merges of branches: whole runs in a real repository.

use claw_kit::{Claw, Output, Reply, Route, RunFolder, Sandbox, ScriptedProvider, Wire, wait_until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(60);

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new().with_git();
    sandbox.write("a.txt", "one\ntwo\nthree\n");
    sandbox.write(".gitignore", ".claw/\nwf.toml\n*.log\n");
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-q", "-m", "first"]);
    sandbox
}

fn claw(sandbox: &Sandbox, nodes: &str) -> Claw {
    sandbox.write("wf.toml", format!("schema = 1\n[workflow]\nname = \"wf\"\n{nodes}"));
    Claw::new(CLAW, sandbox).args(["run", "wf.toml", "--output-format", "json", "--no-ask"])
}

fn run(sandbox: &Sandbox, nodes: &str) -> Output {
    claw(sandbox, nodes).run(BOUND)
}

fn manifest(sandbox: &Sandbox, step: &str) -> Value {
    let path = sandbox.newest_run().path().join(format!("nodes/{step}/manifest.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn worktrees(sandbox: &Sandbox) -> usize {
    sandbox.git(&["worktree", "list"]).lines().count() - 1
}

#[test]
fn two_writers_at_once_touch_nothing_and_a_merge_lands_what_does_not_conflict() {
    let sandbox = sandbox();
    let nodes = r#"
[node.w]
kind = "command"
isolation = "worktree"
run = "pwd; echo {} > $CLAW_STEP.txt; echo $CLAW_STEP > a.txt; git add -A; git -c user.name=x -c user.email=x@example.org commit -qm mine; echo late > late-$CLAW_STEP.txt"
[node.w.each]
items = ["x", "y"]
key = "{{ item }}"
[node.status]
kind = "command"
needs = ["w"]
run = ["git", "status", "--porcelain"]
[node.land]
kind = "merge"
strategy = "git"
needs = ["w", "status"]
from = ["w"]
verify = ["test", "-e", "a.txt"]
[node.out]
kind = "set"
needs = ["land", "status"]
value = "{'land': land, 'status': status}"
"#;
    let output = run(&sandbox, nodes).expect_code(0);
    let result = &output.json()["result"];
    assert_eq!(result["status"], "", "{result}");
    assert_eq!(result["land"]["applied"], json!(["w=x"]));
    assert_eq!(result["land"]["backed_out"], json!(["w=y"]));
    assert_eq!(result["land"]["conflicts"][0]["files"], json!(["a.txt"]));
    assert_eq!(result["land"]["commit"], Value::Null);
    assert_eq!(sandbox.read("a.txt"), "w=x\n");
    assert_eq!(sandbox.read("late-w=x.txt"), "late\n");
    assert!(!sandbox.has("w=y.txt"));
    let manifest = manifest(&sandbox, "w=y.1");
    let branch = manifest["branch"].as_str().unwrap();
    assert!(branch.ends_with("/w=y.1"), "{manifest}");
    assert_eq!(manifest["baseCommit"].as_str(), Some(sandbox.git(&["rev-parse", "HEAD"]).trim()));
    assert!(sandbox.git(&["show", &format!("{branch}:late-w=y.txt")]).contains("late"));
    assert_eq!(worktrees(&sandbox), 0);
    let patch = sandbox.newest_run().path().join("nodes/w=y.1/patch.diff");
    assert!(std::fs::read_to_string(patch).unwrap().contains("+++ b/a.txt"));
}

#[test]
fn a_command_in_its_folder_writes_neither_the_workspace_nor_what_governs_git() {
    let sandbox = sandbox();
    let top = sandbox.project();
    let top = top.display();
    let nodes = format!(
        r#"
[node.evil]
kind = "command"
isolation = "worktree"
run = '''
tried() {{ if "$@" 2>/dev/null; then echo "DONE $*"; fi; }}
tried sh -c 'echo x > {top}/a.txt'
tried sh -c 'echo x > {top}/.git/config'
tried sh -c 'echo x > {top}/.git/hooks/post-checkout'
tried sh -c 'echo x > {top}/.git/refs/heads/evil'
tried sh -c 'echo x > {top}/.git/HEAD'
tried sh -c 'echo x > .git'
tried sh -c "echo x > $(git rev-parse --git-dir)/commondir"
tried sh -c "echo x > $(git rev-parse --git-dir)/gitdir"
tried git branch evil
tried git config core.pager evil
tried git update-ref refs/heads/main HEAD~0 --create-reflog
echo fine > fine.txt
git add -A && git -c user.name=x -c user.email=x@example.org commit -qm fine && echo committed
'''
"#
    );
    let output = run(&sandbox, &nodes).expect_code(0);
    let text = output.json()["result"].as_str().map(str::to_owned).unwrap_or_default();
    assert!(text.contains("committed"), "{text}");
    let done: Vec<&str> = text.lines().filter(|line| line.starts_with("DONE")).collect();
    // To write the same commit to a branch changes nothing.
    assert!(done.iter().all(|line| line.contains("update-ref")), "{text}");
    assert_eq!(sandbox.git(&["status", "--porcelain"]).trim(), "");
    assert_eq!(sandbox.git(&["branch", "--list", "evil"]).trim(), "");
}

#[test]
fn a_group_has_one_folder_for_all_its_iterations_and_its_merge_may_commit() {
    let sandbox = sandbox();
    let nodes = r#"
[node.fix]
kind = "group"
isolation = "worktree"
base = "parent_head"
result = "count"
[node.fix.loop]
max = 5
until = "count == '3'"
[node.fix.body.edit]
kind = "command"
run = "echo x >> grown.txt"
[node.fix.body.count]
kind = "command"
needs = ["edit"]
run = "wc -l < grown.txt | tr -d ' '"
[node.land]
kind = "merge"
strategy = "git"
needs = ["fix"]
from = ["fix"]
apply = "squash"
"#;
    let output = run(&sandbox, nodes).expect_code(0);
    let result = output.json()["result"].clone();
    assert_eq!(result["applied"], json!(["fix"]), "{result}");
    assert_eq!(result["commit"].as_str(), Some(sandbox.git(&["rev-parse", "HEAD"]).trim()));
    assert_eq!(sandbox.read("grown.txt"), "x\nx\nx\n");
    assert_eq!(sandbox.git(&["status", "--porcelain"]).trim(), "");
    assert_eq!(worktrees(&sandbox), 0);
}

#[test]
fn a_conflict_at_a_gate_pauses_the_run_and_keep_lands_the_rest() {
    let sandbox = sandbox();
    let nodes = r#"
[node.w]
kind = "command"
isolation = "worktree"
run = "echo $CLAW_STEP > a.txt"
[node.w.each]
items = ["x", "y"]
key = "{{ item }}"
[node.land]
kind = "merge"
strategy = "git"
needs = ["w"]
from = ["w"]
on_conflict = "gate"
"#;
    run(&sandbox, nodes).expect_code(4);
    assert_eq!(sandbox.read("a.txt"), "one\ntwo\nthree\n");
}

#[test]
fn a_merge_that_must_not_conflict_fails_and_changes_nothing() {
    let sandbox = sandbox();
    let nodes = r#"
[node.w]
kind = "command"
isolation = "worktree"
run = "echo $CLAW_STEP > a.txt"
[node.w.each]
items = ["x", "y"]
key = "{{ item }}"
[node.land]
kind = "merge"
strategy = "git"
needs = ["w"]
from = ["w"]
on_conflict = "fail"
"#;
    let output = run(&sandbox, nodes).expect_code(1);
    let steps = output.json()["steps"].clone();
    let land = steps.as_array().unwrap().iter().find(|step| step["step"] == "land").unwrap().clone();
    assert!(land["error"].to_string().contains("a.txt"), "{land}");
    assert_eq!(sandbox.read("a.txt"), "one\ntwo\nthree\n");
}

#[test]
fn outside_of_a_repository_an_isolated_step_says_what_to_do() {
    let sandbox = Sandbox::new();
    let nodes = "[node.a]\nkind = \"command\"\nisolation = \"worktree\"\nrun = [\"true\"]\n";
    let output = run(&sandbox, nodes).expect_code(1);
    assert!(output.json().to_string().contains("git init"), "{}", output.json());
}

/// What stands in the workspace, but for git's own files and claw's.
fn tree(folder: &Path, below: &str, into: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if [".git", ".claw"].contains(&name.as_str()) {
            continue;
        }
        if entry.path().is_dir() {
            tree(&entry.path(), &format!("{below}{name}/"), into);
        } else if let Ok(text) = std::fs::read_to_string(entry.path()) {
            into.insert(format!("{below}{name}"), text);
        }
    }
}

/// Twenty writers, of whom the third and the fourth, the ninth and the tenth want the same line.
fn twenty() -> (ScriptedProvider, Sandbox) {
    let provider = ScriptedProvider::new([Route::answer(|request| {
        let text = request.text.split("WRITER-").nth(1).unwrap_or_default();
        let n: usize = text.split('.').next().unwrap().parse().unwrap();
        if request.messages().last().is_some_and(|last| last.to_string().contains("tool_result")) {
            return Reply::text(format!("writer {n} is done"));
        }
        let file = match n {
            4 => 3,
            10 => 9,
            n => n,
        };
        let edit = json!({"path": format!("part-{file}.txt"), "content": format!("by {n}\n")});
        let new = json!({"path": format!("new/{n}.txt"), "content": "made\n"});
        Reply::tool("t0", "read_file", json!({"path": format!("part-{file}.txt")}))
            .with_tool("t1", "write_file", edit)
            .with_tool("t2", "write_file", new)
    })]);
    let sandbox = sandbox().with_provider(&provider, Wire::Anthropic);
    for n in 0..20 {
        sandbox.write(&format!("part-{n}.txt"), "as it was\n");
    }
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-q", "-m", "parts"]);
    (provider, sandbox)
}

const TWENTY: &str = r#"
[limits]
concurrency = 8
[node.w]
isolation = "worktree"
prompt = "WRITER-{{ item }}."
each = { range = 20, key = "{{ item }}" }
[node.land]
kind = "merge"
strategy = "git"
needs = ["w"]
from = ["w"]
verify = ["test", "-e", "a.txt"]
"#;

#[test]
fn twenty_writers_touch_nothing_until_their_merge_lands_and_losers_keep_their_branches() {
    let (_provider, sandbox) = twenty();
    let mut before = BTreeMap::new();
    let running = claw(&sandbox, TWENTY).spawn();
    tree(&sandbox.project(), "", &mut before);
    let begins = |run: &RunFolder| run.path().join("landing/land.1/landing.json").exists();
    let mut looks = 0;
    wait_until("the end", BOUND, || {
        let has_begun = sandbox.runs().pop().is_some_and(|run| begins(&run));
        let is_running = running.is_running();
        let mut now = BTreeMap::new();
        tree(&sandbox.project(), "", &mut now);
        let may_land = has_begun || sandbox.runs().pop().is_some_and(|run| begins(&run));
        let landed = sandbox
            .runs()
            .pop()
            .is_some_and(|run| run.events("ended").iter().any(|record| record["step"] == "land"));
        if is_running && !may_land && !landed {
            assert_eq!(now, before, "the workspace was touched before the merge landed");
            looks += 1;
        }
        // A file is what it was or what it will be.
        for (path, text) in &now {
            let by: &[&str] = if path.starts_with("part-") { &["as it was\n", "by "] } else { &[] };
            assert!(
                by.is_empty() || by.iter().any(|by| text.starts_with(by)),
                "{path} is half there: {text}"
            );
        }
        !is_running
    });
    let output = running.wait(BOUND).expect_code(0);
    assert!(looks > 3, "the watcher saw too little");
    let result = output.json()["result"].clone();
    assert_eq!(result["backed_out"], json!(["w=4", "w=10"]), "{result}");
    assert_eq!(result["applied"].as_array().map(Vec::len), Some(18));
    let run = sandbox.newest_run().id();
    for n in 0..20 {
        let is_back = [4, 10].contains(&n);
        assert_eq!(sandbox.read(&format!("part-{n}.txt")).starts_with("by "), !is_back, "{n}");
        assert_eq!(sandbox.has(&format!("new/{n}.txt")), !is_back, "{n}");
        if is_back {
            let part = if n == 4 { 3 } else { 9 };
            let kept = sandbox.git(&["show", &format!("claw/{run}/w={n}.1:part-{part}.txt")]);
            assert_eq!(kept, format!("by {n}\n"));
        }
    }
    assert_eq!(worktrees(&sandbox), 0);
}
