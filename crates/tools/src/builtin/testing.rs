//! For the tests of tools: a workspace, agents in it, calls.

use crate::error::ToolError;
use crate::folder::WorkingFolder;
use crate::output::ToolOutput;
use crate::ports::{Answer, Messenger, Person, PlanReply, Ports, Question, UserMessage};
use crate::read_state::ReadState;
use crate::sandbox::{Reach, SandboxPolicy};
use crate::tool::{Tool, ToolContext};
use claw_kernel::cancel::CancelToken;
use claw_kernel::durable::{Mode, Sync, replace};
use claw_kernel::redact::Redactor;
use futures_util::future::BoxFuture;
use rustix::fs::{CWD, mkfifoat};
use serde_json::Value;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

/// What no tool shows a part of.
pub(super) const SECRET: &str = "sk-canary-0123456789-9876543210";

pub(super) struct Work {
    pub(super) folder: TempDir,
    policy: Arc<SandboxPolicy>,
}

impl Work {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("w")).unwrap();
        let policy = Arc::new(SandboxPolicy::new(Reach::WorkspaceWrite, folder.path().join("w")));
        Self { folder, policy }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.policy.workspace().join(name)
    }

    pub(super) fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        replace(&path, bytes.as_ref(), Mode::Keep, Sync::No).unwrap();
        path
    }

    pub(super) fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub(super) fn agent(&self, name: &str) -> ToolContext {
        ToolContext {
            folder: Arc::new(WorkingFolder::new(self.policy.workspace())),
            agent: name.into(),
            reads: Arc::new(ReadState::new()),
            cancel: CancelToken::new(),
            hidden: crate::tool::Hidden::default(),
            sandbox: Arc::clone(&self.policy),
            spill: Arc::new(self.folder.path().join("spill")),
            redactor: Arc::new(Redactor::new([SECRET.to_owned()])),
            env: Arc::new([]),
            state: Arc::default(),
            ports: Arc::default(),
            messenger: None,
        }
    }
}

/// A person who answers as it was written down, and keeps what was asked and told.
#[derive(Default)]
pub(super) struct Scripted {
    answers: Mutex<VecDeque<Answer>>,
    plans: Mutex<VecDeque<PlanReply>>,
    asked: Mutex<Vec<Question>>,
    told: Mutex<Vec<UserMessage>>,
}

impl Scripted {
    pub(super) fn answering(answers: impl IntoIterator<Item = Answer>) -> Arc<Self> {
        Arc::new(Self { answers: Mutex::new(answers.into_iter().collect()), ..Self::default() })
    }

    pub(super) fn judging(plans: impl IntoIterator<Item = PlanReply>) -> Arc<Self> {
        Arc::new(Self { plans: Mutex::new(plans.into_iter().collect()), ..Self::default() })
    }

    pub(super) fn ports(self: &Arc<Self>) -> Arc<Ports> {
        let person: Arc<dyn Person> = Arc::<Self>::clone(self);
        Arc::new(Ports { person: Some(person), ..Ports::default() })
    }

    pub(super) fn asked(&self) -> Vec<Question> {
        self.asked.lock().unwrap().clone()
    }

    pub(super) fn told(&self) -> Vec<UserMessage> {
        self.told.lock().unwrap().clone()
    }
}

impl Person for Scripted {
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        self.asked.lock().unwrap().push(question);
        Box::pin(std::future::ready(self.answers.lock().unwrap().pop_front().unwrap_or(Answer::Nothing)))
    }
    fn judge_plan(&self, _: &str, _: &str) -> BoxFuture<'_, PlanReply> {
        Box::pin(std::future::ready(
            self.plans.lock().unwrap().pop_front().unwrap_or(PlanReply::Refused(None)),
        ))
    }
}

impl Messenger for Scripted {
    fn tell(&self, message: UserMessage) -> BoxFuture<'_, ()> {
        self.told.lock().unwrap().push(message);
        Box::pin(std::future::ready(()))
    }
}

pub(super) async fn call(tool: &dyn Tool, ctx: &ToolContext, input: Value) -> Result<ToolOutput, ToolError> {
    let judged = tool.effect(ctx, &input)?;
    tokio::time::timeout(Duration::from_secs(20), tool.call(ctx, &judged, input)).await.expect("it hangs")
}

pub(super) async fn ok(tool: &dyn Tool, ctx: &ToolContext, input: Value) -> ToolOutput {
    call(tool, ctx, input).await.unwrap()
}

pub(super) async fn refused(tool: &dyn Tool, ctx: &ToolContext, input: Value) -> String {
    call(tool, ctx, input).await.unwrap_err().to_string()
}

/// A workspace to search in.
pub(super) fn tree() -> Work {
    let work = Work::new();
    work.put(".gitignore", "target\n");
    work.put("target/a.rs", "needle");
    work.put(".git/config", "needle");
    work.put("src/a.rs", "one\nNeedle two\nthree\n");
    work.put("src/deep/b.rs", "needle\nneedle\n");
    work.put("src/c.txt", "needle 🦀\n");
    work.put("bin", b"\0needle");
    mkfifoat(CWD, work.path("src/pipe"), rustix::fs::Mode::RWXU).unwrap();
    work
}
