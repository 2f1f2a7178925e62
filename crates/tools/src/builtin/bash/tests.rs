use super::Bash;
use crate::builtin::testing::{SECRET, Work, call, ok, refused};
use crate::error::ToolError;
use serde_json::json;
use std::time::{Duration, Instant};

#[tokio::test]
async fn the_working_folder_is_carried_on_and_variables_are_not() {
    let work = Work::new();
    let (a, b) = (work.agent("A"), work.agent("B"));
    let moved = ok(&Bash, &a, json!({"command": "mkdir -p x/y; cd x/y; V=1; exit 0"})).await;
    assert_eq!(moved.text, format!("[working folder is now {}]", work.path("x/y").display()));
    let next = ok(&Bash, &a, json!({"command": "pwd; echo \"<$V>\""})).await;
    assert_eq!(next.text, format!("{}\n<>", work.path("x/y").display()));
    assert_eq!(
        ok(&Bash, &b, json!({"command": "pwd"})).await.text,
        work.path("").display().to_string().trim_end_matches('/')
    );
    ok(&Bash, &a, json!({"command": "cd / && rm -rf \"$OLDPWD\""})).await;
    assert_eq!(ok(&Bash, &a, json!({"command": "pwd"})).await.text, "/");
}

#[tokio::test]
async fn what_a_code_means_is_said() {
    let work = Work::new();
    let agent = work.agent("A");
    let failed = ok(&Bash, &agent, json!({"command": "echo out; echo err >&2; exit 3"})).await;
    assert_eq!(failed.text, "out\n[stderr]\nerr\n[exit code 3]");
    assert!(failed.is_error);
    assert_eq!(failed.data["exitCode"], 3);
    assert_eq!((&failed.data["stdout"], &failed.data["stderr"]), (&json!("out\n"), &json!("err\n")));
    let missing = ok(&Bash, &agent, json!({"command": "no-such-program 2>/dev/null"})).await;
    assert_eq!(missing.text, "[exit code 127: command not found]");
    assert_eq!(
        ok(&Bash, &agent, json!({"command": "kill -9 $$"})).await.text,
        "[ended by SIGKILL (perhaps out of memory)]"
    );
    assert_eq!(ok(&Bash, &agent, json!({"command": "true"})).await.text, "[no output]");
}

#[tokio::test]
async fn a_timeout_gives_what_came_until_then() {
    let work = Work::new();
    let input = json!({"command": "echo some; sleep 305.1", "timeout": 200});
    let text = refused(&Bash, &work.agent("A"), input).await;
    assert_eq!(text, "timed out after 200 ms\nsome");
}

#[tokio::test]
async fn nobody_is_asked() {
    let work = Work::new();
    let agent = work.agent("A");
    let began = Instant::now();
    let setup = "git init -q r 2>&1; cd r && touch f && git add f && git -c user.name=a -c user.email=a@b commit; echo rc=$?";
    let text = ok(&Bash, &agent, json!({"command": setup})).await.text;
    assert!(text.contains("rc=128") || text.contains("rc=1"), "{text}");
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn long_output_is_cut_between_characters_at_every_offset() {
    let work = Work::new();
    let agent = work.agent("A");
    for n in (0..4).chain(29_996..=30_000) {
        let line = format!("head -c {n} /dev/zero | tr '\\0' a; yes 🦀 | head -n 20000 | tr -d '\\n'");
        let done = ok(&Bash, &agent, json!({"command": line})).await;
        assert!(!done.text.contains('\u{FFFD}'), "{n}");
        let shown = done.data["stdout"].as_str().unwrap();
        let kept = shown.matches('🦀').count();
        let letters = shown.split('[').next().unwrap().matches('a').count();
        let cut = (20_000 - kept) * 4 + (n - letters);
        if n + 20_000 <= 30_000 {
            assert_eq!(cut, 0, "{n}");
        } else {
            assert!(done.text.contains(&format!("[… {cut} bytes cut …]")), "{n} {cut}");
            let whole = std::fs::read(done.spilled.unwrap()).unwrap();
            assert_eq!(whole.len(), n + 80_000);
        }
    }
}

#[tokio::test]
async fn a_cancel_and_a_wrong_input_are_answered() {
    let work = Work::new();
    let agent = work.agent("A");
    agent.cancel.cancel();
    let cancelled = call(&Bash, &agent, json!({"command": "echo x"})).await;
    assert!(matches!(cancelled, Err(ToolError::Cancelled)));
    let text = refused(&Bash, &work.agent("A"), json!({"command": 1})).await;
    assert!(text.contains("invalid input for bash: command: "), "{text}");
}

#[tokio::test]
async fn what_claw_did_afterwards_is_said() {
    let work = Work::new();
    let agent = work.agent("A");
    let line = format!("sleep 306.{} & echo started", std::process::id());
    let left = ok(&Bash, &agent, json!({"command": line})).await;
    assert_eq!(left.text, "started\n[1 process(es) that the command left running were ended]");
    if agent.sandbox.status().is_walled() {
        let line = "echo x > .mcp.json; sleep 60";
        let text = refused(&Bash, &agent, json!({"command": line, "timeout": 300})).await;
        let path = work.path(".mcp.json");
        let says = format!("[not allowed and taken out of the workspace again: {}]", path.display());
        assert_eq!(text, format!("timed out after 300 ms\n{says}"));
        assert!(!path.exists());
    }
}

#[tokio::test]
async fn neither_the_answer_nor_the_file_with_the_whole_output_holds_a_secret() {
    let work = Work::new();
    work.put("keys.txt", format!("KEY={SECRET}\n"));
    for cut in [14_980, 14_995, 0] {
        let line = format!(
            "head -c {cut} /dev/zero | tr '\\0' a; cat keys.txt; head -c 40000 /dev/zero | tr '\\0' x"
        );
        let done = ok(&Bash, &work.agent("A"), json!({"command": line})).await;
        assert!(!done.text.contains("sk-") && !done.data.to_string().contains("sk-"), "{cut}");
        let whole = std::fs::read_to_string(done.spilled.unwrap()).unwrap();
        assert!(whole.contains("KEY=[redacted]\nxx") && !whole.contains("sk-"), "{cut}");
    }
}
