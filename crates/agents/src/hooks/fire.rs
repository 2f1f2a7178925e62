//! An event happens: its hooks run at the same time, and their answers become one.

use super::actor::{Ground, run};
use super::config::{HookSet, HookSpec};
use super::event::HookEvent;
use super::fold::Verdict;
use super::news::{HookNews, HookState};
use super::payload::{Happening, Scene};
use super::reply::{Ended, Reply, Who};
use crate::event::{AgentEvent, EventSink};
use claw_kernel::cancel::CancelToken;
use claw_kernel::redact::Redactor;
use claw_tools::sandbox::SandboxPolicy;
use futures_util::future::join_all;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Hooks of a process that run at once; the others wait, and their time with them.
const AT_ONCE: usize = 64;
/// Characters of a hook's standard error that are kept.
pub(super) const MOST_STDERR: usize = 16_000;

/// All hooks of a process.
#[derive(Debug)]
pub struct Hooks {
    set: HookSet,
    fails_open: bool,
    ground: Option<Ground>,
    room: Arc<Semaphore>,
}

/// An event with all that belongs to it.
pub(crate) struct Moment<'a> {
    /// Whose.
    pub(crate) scene: &'a Scene,
    /// What happens.
    pub(crate) what: Happening,
    /// Who watches.
    pub(crate) events: &'a dyn EventSink,
    /// Ends it.
    pub(crate) cancel: &'a CancelToken,
    /// The most that any hook may take here; `None`: its own time.
    pub(crate) most: Option<Duration>,
}

impl Hooks {
    /// No hooks.
    pub fn none() -> Self {
        Self {
            set: HookSet::default(),
            fails_open: false,
            ground: None,
            room: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    /// `project`: absolute, the folder that hooks are told of. `fails_open`: the user's word that a guard that fails is
    /// passed over with a warning.
    pub fn new(set: HookSet, project: &Path, fails_open: bool, redactor: Arc<Redactor>) -> Self {
        let policy = Arc::new(SandboxPolicy::full(project));
        let ground = Some(Ground { project: project.to_owned(), policy, redactor });
        Self { set, fails_open, ground, room: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// These, and those of an agent's definition or of a workflow file.
    pub fn with(&self, more: HookSet) -> Self {
        Self {
            set: self.set.clone().and(more),
            fails_open: self.fails_open,
            ground: self.ground.clone(),
            room: self.room.clone(),
        }
    }

    /// Whether any hook waits for this event.
    pub fn has(&self, event: HookEvent) -> bool {
        self.ground.is_some() && self.set.has(event)
    }

    /// The project's folder.
    pub fn project(&self) -> Option<&PathBuf> {
        self.ground.as_ref().map(|ground| &ground.project)
    }

    /// Runs the hooks of an event. Done when all of them are gone.
    pub(crate) async fn fire(&self, moment: Moment<'_>) -> Verdict {
        let event = moment.what.event();
        let Some(ground) = &self.ground else { return Verdict::default() };
        let specs = self.set.of(event, &moment.what.names(moment.scene));
        if specs.is_empty() {
            return Verdict::default();
        }
        let runs = specs.iter().map(|spec| self.one(ground, spec, &moment));
        let replies = join_all(runs).await;
        let verdict = Verdict::of(event, replies);
        for warning in &verdict.warnings {
            moment.events.send(AgentEvent::Note(warning.clone())).await;
        }
        verdict
    }

    async fn one(&self, ground: &Ground, spec: &Arc<HookSpec>, moment: &Moment<'_>) -> (String, Reply) {
        let Moment { scene, what, events, cancel, most } = moment;
        let command = spec.command.clone();
        let who =
            Who { event: spec.event, command: &command, tool: what.tool(), fails_open: self.fails_open };
        let news = |state| {
            let tool = what.tool().map(str::to_owned);
            events.send(AgentEvent::Hook(HookNews {
                event: spec.event,
                command: command.clone(),
                tool,
                state,
            }))
        };
        let permit = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            // The semaphore is never closed.
            permit = self.room.acquire() => permit.ok(),
        };
        let Some(_permit) = permit else {
            let reply = Reply { cancelled: Some(who.cancelled()), ..Reply::default() };
            return (command, reply);
        };
        let began = Instant::now();
        news(HookState::Started).await;
        let mut job = ground.job(spec, scene, what);
        if let (Some(time), Some(most)) = (job.time, most) {
            job.time = Some(time.min(*most));
        }
        let said = run(job, cancel).await;
        let reply = who.read(&said);
        let state = match said.ended {
            Ended::Cancelled => HookState::Cancelled,
            Ended::Exited(_) | Ended::Signalled(_) | Ended::TimedOut(_) | Ended::Failed(_) => {
                HookState::Finished { is_denial: reply.is_no(), took: began.elapsed() }
            }
        };
        news(state).await;
        tracing::debug!(agent = %scene.agent_id, event = %spec.event, hook = %command, ?state, "hook ended");
        (command, reply)
    }
}

impl Reply {
    fn is_no(&self) -> bool {
        self.decision == Some(super::fold::HookDecision::Deny) || !self.warnings.is_empty()
    }
}
