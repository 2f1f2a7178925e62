//! Folders of steps, their branches, merges of branches: whole runs in a real repository.

use claw_kit::{Claw, Output, Sandbox};
use serde_json::{Value, json};
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
