//! Real processes: time, groups, pipes, and what reaches those who watch.

use super::payload::{Happening, Scene};
use super::*;
use crate::event::AgentEvent;
use crate::settings::Origin;
use claw_kernel::cancel::CancelToken;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

struct Stage {
    folder: tempfile::TempDir,
    scene: Scene,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let cwd = folder.path().canonicalize().unwrap();
        let scene = Scene {
            session: "s1".into(),
            transcript: cwd.join("t.jsonl"),
            cwd,
            permission_mode: "workspace-write".into(),
            agent_id: "a1".into(),
            agent_type: "lead".into(),
        };
        Self { folder, scene }
    }

    fn hooks(&self, section: &Value, fails_open: bool) -> Hooks {
        let source = HookSource { origin: Origin::flag("hooks"), plugin: None };
        let (set, problems) = HookSet::parse(section, &source);
        assert_eq!(problems, []);
        Hooks::new(set, &self.scene.cwd, fails_open, Arc::default())
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    async fn fire(&self, hooks: &Hooks, input: Value) -> (Verdict, Vec<AgentEvent>) {
        self.fire_until(hooks, input, &CancelToken::new()).await
    }

    async fn fire_until(
        &self,
        hooks: &Hooks,
        input: Value,
        cancel: &CancelToken,
    ) -> (Verdict, Vec<AgentEvent>) {
        let (sender, mut events) = mpsc::channel(256);
        let what = Happening::BeforeCall {
            tool: "bash".into(),
            aliases: vec!["Bash".into()],
            input,
            call: "1.1".into(),
        };
        let moment = Moment { scene: &self.scene, what, events: &sender, cancel, most: None };
        let verdict = hooks.fire(moment).await;
        let mut seen = Vec::new();
        while let Ok(event) = events.try_recv() {
            seen.push(event);
        }
        (verdict, seen)
    }
}

fn one(command: &str, timeout: f64) -> Value {
    json!({"PreToolUse": [{"hooks": [{"type": "command", "command": command, "timeout": timeout}]}]})
}

fn lives(marker: &str) -> bool {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .any(|line| String::from_utf8_lossy(&line).replace('\0', " ").contains(marker))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_payload_reaches_a_hook_whole_and_one_that_does_not_read_is_no_failure() {
    let stage = Stage::new();
    let big = json!({"command": "x".repeat(300_000)});
    let seen = stage.path("seen");
    let hooks = stage.hooks(&one(&format!("cat > {}", seen.display()), 20.0), false);
    let (verdict, _) = stage.fire(&hooks, big.clone()).await;
    assert_eq!(verdict, Verdict::default());
    let told: Value = serde_json::from_slice(&std::fs::read(&seen).unwrap()).unwrap();
    assert_eq!(told["tool_input"], big);
    let (verdict, _) = stage.fire(&stage.hooks(&one("exit 0", 20.0), false), big.clone()).await;
    assert_eq!(verdict, Verdict::default());
    let (verdict, _) =
        stage.fire(&stage.hooks(&one("echo no thanks >&2; exit 2", 20.0), false), big.clone()).await;
    assert_eq!((verdict.is_denial(), verdict.text().as_deref()), (true, Some("no thanks")));
    let began = Instant::now();
    let (verdict, _) = stage.fire(&stage.hooks(&one("exec sleep 600", 0.5), false), big).await;
    assert!(verdict.is_denial() && verdict.messages[0].contains("0.5 s"), "{verdict:?}");
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_hook_leaves_behind_holds_nothing_up_and_is_ended() {
    let stage = Stage::new();
    let began = Instant::now();
    let (verdict, _) = stage.fire(&stage.hooks(&one("sleep 30101 & exit 0", 20.0), false), json!({})).await;
    assert_eq!(verdict, Verdict::default());
    assert!(began.elapsed() < Duration::from_millis(1_500), "{:?}", began.elapsed());
    let stubborn = "trap '' TERM INT HUP; sleep 30102 & while :; do sleep 0.2; done";
    let began = Instant::now();
    let (verdict, _) = stage.fire(&stage.hooks(&one(stubborn, 0.3), false), json!({})).await;
    assert!(verdict.is_denial(), "{verdict:?}");
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert!(!lives("sleep 30101") && !lives("sleep 30102"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_ends_the_hook_and_says_so() {
    let stage = Stage::new();
    let ready = stage.path("ready");
    let command = format!("touch {}; sleep 30103", ready.display());
    let hooks = stage.hooks(&one(&command, 60.0), false);
    let cancel = CancelToken::new();
    let watch = async {
        while !ready.exists() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    };
    let ((verdict, events), ()) = tokio::join!(stage.fire_until(&hooks, json!({}), &cancel), watch);
    let words = format!("PreToolUse hook {command} cancelled while handling bash");
    assert_eq!(verdict.cancelled, Some(words));
    let states: Vec<&HookState> = events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::Hook(news) => Some(&news.state),
            _ => None,
        })
        .collect();
    assert_eq!(states, [&HookState::Started, &HookState::Cancelled]);
    assert!(!lives("sleep 30103"));
    let before = stage.fire_until(&hooks, json!({}), &cancel).await.0;
    assert!(before.cancelled.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hooks_run_at_the_same_time_and_answer_in_their_order() {
    let stage = Stage::new();
    let (a, b) = (stage.path("a"), stage.path("b"));
    // Each waits for the other: one after the other they would never end.
    let wait = |own: &Path, other: &Path, word: &str| {
        format!("touch {}; until [ -e {} ]; do sleep 0.02; done; echo {word}", own.display(), other.display())
    };
    let section = json!({"PreToolUse": [wait(&a, &b, "first"), wait(&b, &a, "second")]});
    let (verdict, _) = stage.fire(&stage.hooks(&section, false), json!({})).await;
    assert_eq!(verdict.messages, ["first", "second"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_need_no_execute_bit_and_the_environment_holds_no_key() {
    let stage = Stage::new();
    let script = "echo \"$HOOK_EVENT $HOOK_TOOL_NAME $HOOK_TOOL_INPUT ${CLAUDE_PROJECT_DIR:+dir}\"; env | grep -c API_KEY";
    claw_kernel::durable::create(&stage.scene.cwd.join("guard.sh"), script.as_bytes()).unwrap();
    let (verdict, _) =
        stage.fire(&stage.hooks(&json!({"PreToolUse": ["guard.sh"]}), true), json!({"a": 1})).await;
    assert!(verdict.warnings[0].contains("PreToolUse bash {\"a\":1} dir\n0"), "{verdict:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_output_is_bounded() {
    let stage = Stage::new();
    let flood = "head -c 3000000 /dev/zero | tr '\\0' x";
    let (verdict, _) = stage.fire(&stage.hooks(&one(flood, 20.0), false), json!({})).await;
    assert!(verdict.messages[0].len() < 20_000 && !verdict.is_denial());
    let cut = format!("printf '{{\"decision\":\"block\",\"reason\":\"'; {flood}; printf '\"}}'");
    let (verdict, _) = stage.fire(&stage.hooks(&one(&cut, 20.0), false), json!({})).await;
    assert!(verdict.is_denial() && verdict.messages[0].contains("too long"), "{verdict:?}");
}
