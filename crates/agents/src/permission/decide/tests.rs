//! The order of decision, and the words.

use super::*;
use crate::permission::contain::Wall;
use crate::permission::rule::Kind;
use crate::settings::{Origin, Scope, Sourced};
use claw_tools::tool::Effect;
use serde_json::{Value, json};
use std::path::Path;

fn places() -> Places {
    Places {
        workspace: "/w/proj".into(),
        is_lent: false,
        writable: Vec::new(),
        readable: Vec::new(),
        protected: Vec::new(),
        wall: Wall::Holds,
    }
}

fn rules(all: &[(Kind, &str)]) -> RuleSet {
    let mut set = RuleSet::new();
    for (line, (kind, text)) in (1..).zip(all) {
        let origin = Origin {
            scope: Scope::User,
            file: Some("/home/u/.claw/settings.json".into()),
            line,
            column: 5,
            key: "permissions".into(),
        };
        set.add(*kind, Sourced { value: (*text).into(), origin }).unwrap();
    }
    set
}

struct Case {
    tool: &'static str,
    input: Value,
    effect: Effect,
}

fn bash(line: &str) -> Case {
    let effect = Effect { executes: Some(line.into()), ..Effect::default() };
    Case { tool: "bash", input: json!({"command": line}), effect }
}

fn write(path: &str) -> Case {
    let effect = Effect { writes: vec![path.into()], ..Effect::default() };
    Case { tool: "write", input: json!({"path": path}), effect }
}

fn judge(mode: &str, case: &Case, rules: &RuleSet, hook: &HookVerdict) -> Decision {
    let workspace = Path::new("/w/proj");
    let Case { tool, input, effect } = case;
    let call = Call { tool, aliases: &[], input, effect, workspace, folder: workspace };
    decide(mode.parse().unwrap(), &call, &places(), rules, hook)
}

fn word(decision: &Decision) -> &'static str {
    match decision {
        Decision::Allow { .. } => "allow",
        Decision::Ask(_) => "ask",
        Decision::Deny { .. } => "deny",
    }
}

fn hook_allows() -> HookVerdict {
    HookVerdict::Allow { hook: "PreToolUse hook `check.sh`".into() }
}

#[test]
fn deny_comes_before_a_hook_that_allows_and_before_every_mode() {
    let set = rules(&[(Kind::Deny, "Bash(touch:*)"), (Kind::Allow, "Bash")]);
    for mode in ["read-only", "workspace-write", "danger-full-access", "prompt", "dontAsk"] {
        let decision = judge(mode, &bash("touch x"), &set, &hook_allows());
        let Decision::Deny { reason, .. } = decision else { panic!("{mode} {decision:?}") };
        assert!(reason.contains("deny rule `Bash(touch:*)` (/home/u/.claw/settings.json:1:5)"), "{reason}");
    }
}

#[test]
fn a_hook_answers_the_question_of_the_mode_and_no_other() {
    let none = RuleSet::new();
    let asks = rules(&[(Kind::Ask, "Bash(git push:*)")]);
    assert_eq!(word(&judge("prompt", &bash("ls"), &none, &hook_allows())), "allow");
    assert_eq!(word(&judge("workspace-write", &write("/etc/x"), &none, &hook_allows())), "allow");
    assert_eq!(word(&judge("read-only", &write("/w/proj/x"), &none, &hook_allows())), "deny");
    assert_eq!(word(&judge("danger-full-access", &bash("git push"), &asks, &hook_allows())), "ask");
    assert_eq!(word(&judge("workspace-write", &write("/w/proj/.claw/x"), &none, &hook_allows())), "ask");
    let denies =
        HookVerdict::Deny { hook: "PreToolUse hook `check.sh`".into(), reason: "not on Fridays".into() };
    let decision = judge("danger-full-access", &bash("ls"), &rules(&[(Kind::Allow, "Bash")]), &denies);
    let Decision::Deny { reason, by } = decision else { panic!("{decision:?}") };
    assert!(
        reason.contains("the PreToolUse hook `check.sh` denies it: not on Fridays; mode in force"),
        "{reason}"
    );
    assert_eq!(by.as_deref(), Some("PreToolUse hook `check.sh`"));
    let asks = HookVerdict::Ask { hook: "PreToolUse hook `check.sh`".into(), reason: "sure?".into() };
    assert_eq!(word(&judge("danger-full-access", &bash("ls"), &none, &asks)), "ask");
}

#[test]
fn an_ask_rule_asks_in_every_mode_that_could_do_it() {
    let set = rules(&[(Kind::Ask, "Bash(git push:*)"), (Kind::Allow, "Bash")]);
    for (mode, wanted) in
        [("workspace-write", "ask"), ("danger-full-access", "ask"), ("read-only", "ask"), ("dontAsk", "deny")]
    {
        assert_eq!(word(&judge(mode, &bash("git push"), &set, &HookVerdict::None)), wanted, "{mode}");
        assert_eq!(word(&judge(mode, &bash("ls"), &set, &HookVerdict::None)), "allow", "{mode}");
    }
}

#[test]
fn what_the_sandbox_contains_is_not_asked_in_the_default_mode() {
    let none = RuleSet::new();
    for case in [bash("A=b make > out.txt; $X"), bash("cat .env"), write("/w/proj/x")] {
        assert_eq!(word(&judge("workspace-write", &case, &none, &HookVerdict::None)), "allow");
    }
    assert_eq!(word(&judge("workspace-write", &write("/w/proj-evil/x"), &none, &HookVerdict::None)), "ask");
    assert_eq!(
        word(&judge("workspace-write", &write("/w/proj/../proj-evil/x"), &none, &HookVerdict::None)),
        "ask"
    );
}

#[test]
fn an_allow_rule_answers_what_it_names_and_stays_in_the_sandbox() {
    let named = rules(&[(Kind::Allow, "Write(//etc/x)"), (Kind::Allow, "Bash(make:*)")]);
    let whole = rules(&[(Kind::Allow, "Write")]);
    assert_eq!(word(&judge("workspace-write", &write("/etc/x"), &named, &HookVerdict::None)), "allow");
    assert_eq!(word(&judge("workspace-write", &write("/etc/y"), &named, &HookVerdict::None)), "ask");
    assert_eq!(word(&judge("workspace-write", &write("/etc/x"), &whole, &HookVerdict::None)), "ask");
    assert_eq!(word(&judge("prompt", &write("/w/proj/x"), &whole, &HookVerdict::None)), "allow");
    assert_eq!(word(&judge("prompt", &bash("make all"), &named, &HookVerdict::None)), "allow");
    assert_eq!(word(&judge("dontAsk", &bash("make all"), &named, &HookVerdict::None)), "allow");
    assert_eq!(word(&judge("read-only", &write("/etc/x"), &named, &HookVerdict::None)), "deny");
    let governs = rules(&[(Kind::Allow, "Write(./.claw/**)")]);
    assert_eq!(
        word(&judge("danger-full-access", &write("/w/proj/.claw/x"), &governs, &HookVerdict::None)),
        "ask"
    );
}

#[test]
fn a_question_names_the_mode_the_parts_and_the_way_out() {
    let set = rules(&[(Kind::Allow, "Bash(git status:*)")]);
    let decision = judge("workspace-write", &bash("git status; touch PWNED"), &set, &HookVerdict::None);
    let Decision::Ask(question) = decision else { panic!("{decision:?}") };
    assert_eq!(question.parts, ["git status", "touch PWNED"]);
    assert!(
        question.why.contains("does not cover `touch PWNED`; mode in force: workspace-write"),
        "{question:?}"
    );
    assert_eq!(question.rule.as_deref(), Some("bash(git status; touch PWNED)"));
    let again = rules(&[(Kind::Allow, &question.rule.unwrap())]);
    assert_eq!(word(&judge("prompt", &bash("git status; touch PWNED"), &again, &HookVerdict::None)), "allow");
    let decision = judge("workspace-write", &write("/etc/(x)"), &RuleSet::new(), &HookVerdict::None);
    let Decision::Ask(question) = decision else { panic!("{decision:?}") };
    assert!(
        question.why.contains("/etc/(x), outside the workspace /w/proj; needed: danger-full-access"),
        "{question:?}"
    );
    assert_eq!(question.rule.as_deref(), Some(r"write(//etc/\(x\))"));
}

#[test]
fn a_field_of_the_model_that_loosens_is_asked_and_has_no_rule() {
    let mut case = bash("touch ../PWNED");
    case.input["dangerouslyDisableSandbox"] = json!(true);
    let set = rules(&[(Kind::Allow, "Bash")]);
    let decision = judge("workspace-write", &case, &set, &HookVerdict::None);
    let Decision::Ask(question) = decision else { panic!("{decision:?}") };
    assert!(question.why.contains("dangerouslyDisableSandbox") && question.rule.is_none(), "{question:?}");
    case.input["dangerouslyDisableSandbox"] = json!(false);
    assert_eq!(word(&judge("workspace-write", &case, &set, &HookVerdict::None)), "allow");
}

#[test]
fn the_strictness_of_asking_is_applied_last() {
    let none = RuleSet::new();
    assert_eq!(word(&judge("prompt", &write("/w/proj/x"), &none, &HookVerdict::None)), "ask");
    let reads = Case {
        tool: "read",
        input: json!({}),
        effect: Effect { reads: vec!["/w/proj/x".into()], ..Effect::default() },
    };
    assert_eq!(word(&judge("prompt", &reads, &none, &HookVerdict::None)), "allow");
    let denied = judge("dontAsk", &write("/etc/x"), &none, &HookVerdict::None);
    let Decision::Deny { reason, .. } = denied else { panic!("{denied:?}") };
    assert!(reason.contains("--permission-mode danger-full-access"), "{reason}");
    let denied = judge("read-only", &write("/w/proj/x"), &none, &HookVerdict::None);
    let Decision::Deny { reason, .. } = denied else { panic!("{denied:?}") };
    assert!(reason.contains("mode in force: read-only, needed: workspace-write"), "{reason}");
}
