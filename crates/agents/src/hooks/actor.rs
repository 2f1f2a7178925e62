//! One hook run: an actor round one process. Its owner waits for the word it sends; when the owner is gone, the process
//! goes with it.

use super::config::HookSpec;
use super::payload::{Happening, Scene};
use super::reply::{Ended, Said};
use claw_kernel::cancel::CancelToken;
use claw_kernel::redact::Redactor;
use claw_kernel::supervise;
use claw_kernel::tasks::{self, panic_message};
use claw_tools::error::ToolError;
use claw_tools::process::{self, End, Finished, Job};
use claw_tools::sandbox::SandboxPolicy;
use futures_util::FutureExt;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::ffi::OsString;
use std::io::Read;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Bytes kept of each stream.
const KEEP: usize = 256 * 1024;
/// Shorter than the conversation waits: what does not obey is gone before its conversation is.
const GRACE: Duration = Duration::from_millis(1000);
/// What a hook leaves behind goes at once: nobody waits for it.
const LEFT_BEHIND: Duration = Duration::from_millis(100);

/// What all hooks of a process share.
#[derive(Clone, Debug)]
pub(super) struct Ground {
    pub(super) project: PathBuf,
    /// The user's own commands: as free as the user.
    pub(super) policy: Arc<SandboxPolicy>,
    pub(super) redactor: Arc<Redactor>,
}

impl Ground {
    /// The process of a hook.
    pub(super) fn job(&self, spec: &HookSpec, scene: &Scene, what: &Happening) -> Job {
        let (program, arguments) = program(&spec.command, spec.plugin.as_deref().unwrap_or(&self.project));
        // A folder of an agent may be gone at its end.
        let folder = if scene.cwd.is_dir() { scene.cwd.clone() } else { self.project.clone() };
        let mut job = Job::argv(program, arguments, folder, self.policy.clone());
        job.env = what.variables(&self.project, spec.plugin.as_deref());
        job.stdin = Some(what.payload(scene));
        job.time = Some(spec.timeout);
        job.keep = KEEP;
        job.redactor = self.redactor.clone();
        job.grace = GRACE;
        job.left_behind = LEFT_BEHIND;
        job
    }
}

/// A file is given to `sh`, so that it needs no execute bit; one that may be executed and names another interpreter is
/// executed. Anything else is a line for the shell.
fn program(command: &str, base: &Path) -> (OsString, Vec<OsString>) {
    let file = base.join(command);
    if !file.is_file() {
        return ("sh".into(), vec!["-lc".into(), command.into()]);
    }
    if is_for_another(&file) {
        return (file.into(), Vec::new());
    }
    ("sh".into(), vec![file.into()])
}

fn is_for_another(file: &Path) -> bool {
    let may_execute = rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok();
    let mut start = [0; 128];
    let read = std::fs::File::open(file).and_then(|mut file| file.read(&mut start)).unwrap_or(0);
    let first = start[..read].split(|byte| *byte == b'\n').next().unwrap_or_default();
    let first = String::from_utf8_lossy(first);
    let shell = |word: &str| matches!(word.rsplit('/').next(), Some("sh"));
    may_execute && first.starts_with("#!") && !first[2..].split_whitespace().any(shell)
}

enum HookMsg {
    /// Order: run.
    Start,
    /// Fact: the process is gone.
    Ended(Box<Result<Finished, ToolError>>),
    /// Fact: the task that ran it died.
    Died(String),
}

struct HookRunActor;

struct State {
    job: Option<Job>,
    cancel: CancelToken,
    reply: Option<oneshot::Sender<Said>>,
}

impl Actor for HookRunActor {
    type Msg = HookMsg;
    type State = State;
    type Arguments = State;

    async fn pre_start(&self, me: ActorRef<HookMsg>, state: State) -> Result<State, ActorProcessingErr> {
        me.cast(HookMsg::Start)?;
        Ok(state)
    }

    async fn handle(
        &self,
        me: ActorRef<HookMsg>,
        message: HookMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let said = match message {
            HookMsg::Start => {
                if let Some(job) = state.job.take() {
                    start(me, job, state.cancel.clone());
                }
                return Ok(());
            }
            HookMsg::Ended(over) => match *over {
                Ok(finished) => said(&finished),
                Err(ToolError::Cancelled) => ended(Ended::Cancelled),
                Err(error) => ended(Ended::Failed(error.to_string())),
            },
            HookMsg::Died(words) => ended(Ended::Failed(words)),
        };
        if let Some(reply) = state.reply.take() {
            // An owner that is gone has cancelled it.
            let _ = reply.send(said);
        }
        me.stop(None);
        Ok(())
    }

    async fn post_stop(&self, _: ActorRef<HookMsg>, state: &mut State) -> Result<(), ActorProcessingErr> {
        state.cancel.cancel();
        Ok(())
    }
}

fn start(me: ActorRef<HookMsg>, job: Job, cancel: CancelToken) {
    let task = tasks::spawn("hook", async move {
        let run = AssertUnwindSafe(process::run(job, &cancel)).catch_unwind().await;
        let fact = run.map_or_else(
            |panic| HookMsg::Died(panic_message(panic.as_ref())),
            |over| HookMsg::Ended(Box::new(over)),
        );
        // An actor that is gone has cancelled the job: nobody waits for its end.
        let _ = me.cast(fact);
    });
    // It ends by itself, by its time or by its token.
    drop(task);
}

fn ended(ended: Ended) -> Said {
    Said { ended, out: Vec::new(), missing: 0, err: String::new() }
}

fn said(finished: &Finished) -> Said {
    let how = match finished.end {
        End::Exited(code) => Ended::Exited(code),
        End::Signalled(signal) => Ended::Signalled(signal),
        End::TimedOut => Ended::TimedOut(Duration::ZERO),
        End::Cancelled => Ended::Cancelled,
    };
    Said {
        ended: how,
        out: finished.out.bytes(),
        missing: finished.out.missing(),
        err: finished.err.text(super::fire::MOST_STDERR),
    }
}

/// Runs a hook to its end. Dropping the future ends the process.
pub(super) async fn run(job: Job, cancel: &CancelToken) -> Said {
    let time = job.time.unwrap_or_default();
    let own = cancel.child_token();
    let _guard = own.clone().drop_guard();
    let (reply, word) = oneshot::channel();
    let state = State { job: Some(job), cancel: own, reply: Some(reply) };
    if let Err(error) = supervise::spawn_root("hook run", HookRunActor, state).await {
        return ended(Ended::Failed(error.to_string()));
    }
    let mut said = word.await.unwrap_or_else(|_| ended(Ended::Failed("its actor died".to_owned())));
    if let Ended::TimedOut(after) = &mut said.ended {
        *after = time;
    }
    said
}
