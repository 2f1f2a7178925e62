//! Files of agents, skills and commands, as people have written them for other programs.

use claw_kit::{Claw, Output, Reply, Route, Sandbox, ScriptedProvider};
use serde_json::json;
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(10);

fn claw(sandbox: &Sandbox, args: &[&str]) -> Output {
    Claw::new(CLAW, sandbox).args(args).run(BOUND)
}

/// One of each shape that public repositories have.
fn with_files() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(
        ".claude/agents/reviewer.md",
        "---\nname: reviewer\ndescription: Use this when: code changed. Examples: <example>a: b</example>\ntools: Read, Grep, Bash(git log:*)\nmodel: inherit\ncolor: blue\n---\nYou review.\n",
    );
    sandbox.write(
        ".claude/agents/team/lister.md",
        "---\r\nname: lister\r\ndescription: Lists.\r\ntools:\r\n  - Glob\r\n  - LS\r\n---\r\nYou list.\r\n",
    );
    sandbox.write(
        ".claude/agents/explore.md",
        "---\nname: Explore\ndescription: Mine.\ntools: '*'\npermissionMode: bypassPermissions\n---\nx\n",
    );
    sandbox.write(
        ".claude/agents/bad.md",
        "---\nname: bad\ndescription: x\npermissionMode: read-onyl\n---\nx\n",
    );
    sandbox.write(
        ".claude/skills/pdf/SKILL.md",
        "---\nname: pdf\ndescription: Reads PDF files.\nlicense: MIT\n---\nUse pdftotext.\n",
    );
    sandbox.write(
        ".claude/commands/git/commit.md",
        "---\nargument-hint: [message]\nallowed-tools: Bash(git add:*)\n---\nCommit with $ARGUMENTS\n",
    );
    sandbox
}

#[test]
fn agents_of_files_are_listed_beside_the_built_in_ones() {
    let sandbox = with_files();
    let output = claw(&sandbox, &["agents", "list"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let out = &output.stdout;
    for word in ["general-purpose", "reviewer", "lister", "project"] {
        assert!(out.contains(word), "{word}: {out}");
    }
    assert!(!out.contains("\nbad "), "{out}");
    assert!(output.stderr.contains("claw agents validate"), "{}", output.stderr);
}

#[test]
fn an_agent_is_shown_with_its_file_and_a_built_ins_name_gives_no_more_rights() {
    let sandbox = with_files();
    let shown = claw(&sandbox, &["agents", "show", "REVIEWER"]);
    let out = &shown.stdout;
    for word in ["reviewer.md", "read_file, grep_search, bash", "You review."] {
        assert!(out.contains(word), "{word}: {out}");
    }
    let explore = claw(&sandbox, &["agents", "show", "Explore"]);
    assert!(explore.stdout.contains("mode: read-only"), "{}", explore.stdout);
    let unknown = claw(&sandbox, &["agents", "show", "reviewr"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("did you mean `reviewer`"), "{}", unknown.stderr);
}

#[test]
fn validate_names_file_line_and_what_to_do_and_fails_where_a_file_is_left_out() {
    let sandbox = with_files();
    let output = claw(&sandbox, &["agents", "validate"]);
    assert_eq!(output.code, Some(1));
    let out = &output.stdout;
    assert!(
        out.contains("bad.md:4: error: unknown permission mode `read-onyl` (did you mean `read-only`?)"),
        "{out}"
    );
    assert!(out.contains("reviewer.md:2: warning: the head is not valid YAML"), "{out}");
    assert!(out.contains("3 agents, 1 skills, 1 commands read"), "{out}");
    let json = claw(&sandbox, &["agents", "validate", "--output-format", "json"]);
    let report: serde_json::Value = json.json();
    assert_eq!(report["problems"][0]["severity"], "error", "{report}");
}

#[test]
fn skills_are_listed() {
    let sandbox = with_files();
    let output = claw(&sandbox, &["skills", "list"]);
    assert!(output.stdout.contains("pdf  project    Reads PDF files."), "{}", output.stdout);
}

#[test]
fn an_agent_loads_a_skill_and_a_workflow_starts_an_agent_of_a_file() {
    let provider = ScriptedProvider::new([
        Route::reply(Reply::tool("t", "skill", json!({"skill": "pdf", "args": "x.pdf"}))).times(1),
        Route::reply(Reply::text("DONE")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write(
        ".claude/skills/pdf/SKILL.md",
        "---\nname: pdf\ndescription: Reads PDF.\n---\nUse PDFTOTEXT-MARK.\n",
    );
    sandbox.write(
        ".claude/agents/lister.md",
        "---\nname: lister\ndescription: Lists.\ntools: Glob\n---\nYou list: LISTER-MARK.\n",
    );
    claw(&sandbox, &["-p", "read x.pdf"]).expect_code(0);
    let last = provider.last_request();
    assert!(
        last.body.to_string().contains("PDFTOTEXT-MARK")
            && last.body.to_string().contains("ARGUMENTS: x.pdf")
    );
    sandbox.write(
        "wf.toml",
        "schema = 1\n[workflow]\nname = \"w\"\n[node.a]\nagent = \"lister\"\nprompt = \"list\"\n",
    );
    claw(&sandbox, &["run", "wf.toml"]).expect_code(0);
    assert!(provider.last_request().body.to_string().contains("LISTER-MARK"));
}
