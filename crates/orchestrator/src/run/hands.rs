//! The hands of a run: start steps as supervised tasks, read items, write outputs. Decide nothing.

use super::agent_step::Attempt;
use super::items;
use super::locks::LockRoom;
use super::mailbox::Mailboxes;
use super::start::RunOptions;
use crate::addr::StepAddr;
use crate::journal::record::{Entry, OutputRef};
use crate::journal::store::JournalWriter;
use crate::ledger::Ledger;
use crate::manifest;
use crate::plan::model::Plan;
use crate::report::bus::EventBus;
use crate::rundir::RunDir;
use crate::scheduler::{
    ChildNews, Event, Folder, ItemsFailed, ItemsToRead, Launch, Outcome, Place, Prepared, RunMsg, RunRef,
    Settlement, StepIx,
};
use crate::worktree::Folders;
use claw_agents::services::AgentServices;
use claw_kernel::cancel::CancelToken;
use claw_kernel::durable::{self, Mode, Sync};
use claw_kernel::tasks;
use futures_util::FutureExt;
use futures_util::future::join;
use serde_json::Value;
use std::io;
use std::panic::AssertUnwindSafe;
use std::path::{Component, Path};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

/// What steps are carried out with.
pub(crate) struct Hands {
    pub plan: Arc<Plan>,
    pub run: RunDir,
    pub journal: Arc<JournalWriter>,
    pub bus: Arc<EventBus>,
    pub agents: Arc<AgentServices>,
    pub options: RunOptions,
    /// What steps may spend.
    pub ledger: Arc<Ledger>,
    /// Empty when the last manifest of the run is written.
    pub tracker: TaskTracker,
    /// Named locks that steps hold.
    pub locks: LockRoom,
    /// The kernel's boot id, for manifests.
    pub boot_id: String,
    /// Folders of steps and groups.
    pub folders: Folders,
    /// What persons say to running agents.
    pub mailboxes: Mailboxes,
    /// Where the ends of background agents are told. As many as agents that were started, which are limited.
    pub news: Option<mpsc::UnboundedSender<ChildNews>>,
}

impl Hands {
    /// Starts an attempt. It reports exactly once, also when it panics.
    pub fn start(self: &Arc<Self>, launch: Launch, token: CancelToken, run: RunRef) {
        let hands = Arc::clone(self);
        let (step, attempt) = (launch.step, launch.attempt);
        let phase = self.plan.nodes[launch.node.at()].phase.clone();
        self.bus.board().add(&launch.addr, launch.label.clone(), phase, u64::from(step.0));
        let guard = self.tracker.token();
        if matches!(launch.work, Prepared::Agent(_)) {
            self.mailboxes.open(step, launch.addr.clone());
        }
        tasks::spawn("step", async move {
            let _guard = guard;
            let working = hands.ledger.enter(launch.node);
            let (report, outcome) = oneshot::channel::<(Outcome, oneshot::Sender<Settlement>)>();
            // The work may panic: its report is dropped with it, and the other half tells of that.
            let work = AssertUnwindSafe(hands.work(launch, token, report, run.clone())).catch_unwind();
            let told = async {
                let (outcome, settle) = match outcome.await {
                    Ok(reported) => reported,
                    Err(_) => (super::agent_step::died(), oneshot::channel().0),
                };
                hands.mailboxes.close(step);
                drop(working);
                run.tell(RunMsg::Finished { step, attempt, outcome, settle });
            };
            // The work goes on after its report: its last manifest.
            let (_, ()) = join(work, told).await;
        });
    }

    /// Nobody works in this folder any more. The run waits for it; what could not be closed is said.
    pub fn close_folder(self: &Arc<Self>, folder: Folder) {
        let hands = Arc::clone(self);
        let guard = self.tracker.token();
        tasks::spawn("folder", async move {
            let _guard = guard;
            let told = match hands.folders.close(&folder).await {
                Ok(closed) => closed.and_then(|closed| closed.kept),
                Err(error) => Some(error.to_string()),
            };
            if let Some(why) = told {
                hands.bus.note(Some(&folder.owner), format!("its folder stays: {why}"));
            }
        });
    }

    async fn work(
        self: &Arc<Self>,
        launch: Launch,
        token: CancelToken,
        report: super::agent_step::Report,
        run: RunRef,
    ) {
        match &launch.work {
            Prepared::Agent(agent) => {
                let attempt = Attempt { hands: self, launch: &launch, run: &run };
                super::agent_step::run(attempt, agent, token, report).await;
            }
            Prepared::Command(command) => {
                super::command_step::run(self, &launch, command, token, report).await;
            }
            Prepared::GitMerge(merge) => super::git_step::run(self, &launch, merge, token, report).await,
            Prepared::Value(value) => super::value_step::run(self, &launch, value, report).await,
        }
    }

    /// Reads the items of a node.
    pub fn read_items(self: &Arc<Self>, place: Place, source: ItemsToRead, run: RunRef) {
        let workspace = self.options.workspace.clone();
        tasks::spawn("items", async move {
            let read = tasks::blocking("items", move || items::read(&source, &workspace)).await;
            let items = read.unwrap_or_else(|gone| Err(ItemsFailed { message: gone.to_string() }));
            run.tell(RunMsg::Fact(Event::ItemsRead { place, items }));
        });
    }

    /// Takes named locks against other processes of this project, in the order given.
    pub fn lock(&self, step: StepIx, names: Vec<String>, run: RunRef) {
        let folder = self.options.runs.folder().join("locks");
        let waiting = run.clone();
        let busy = move |name| waiting.tell(RunMsg::Fact(Event::LockBusy { step, name }));
        self.locks.take(step, folder, names, busy, move |result| {
            run.tell(RunMsg::Fact(Event::LocksHeld { step, result }));
        });
    }

    /// Hands a person's words to the agent of a running attempt. They are on record; one that ended meanwhile has not
    /// heard them, which is said.
    pub fn steer(&self, step: StepIx, text: String) -> Result<(), claw_agents::NotSteered> {
        self.mailboxes.put(step, text)
    }

    /// Tells the session of the end of a background agent. One that is left is told at the next resume.
    pub fn announce(&self, news: ChildNews) {
        if let Some(session) = &self.news {
            let _ = session.send(news);
        }
    }

    /// Writes a value to a file below the run's folder. A failure is said: the value is in the journal's reach all the
    /// same, or the record that names the file is not written.
    pub fn write_output(&self, path: &str, value: &Value) {
        let path = self.run.root().join(path);
        let written = path
            .parent()
            .map_or(Ok(()), durable::private_dir)
            .and_then(|()| durable::replace(&path, value.to_string().as_bytes(), Mode::Private, Sync::No));
        if let Err(error) = written {
            self.bus.note(None, format!("cannot write {}: {error}", path.display()));
        }
    }

    /// Writes a step's output to a file of the folder that it works in: below it, and nothing that governs. A text as it is, else JSON.
    pub fn write_file(&self, root: &Path, path: &str, value: &Value) -> io::Result<()> {
        let text = match value {
            Value::String(text) => text.clone(),
            other => format!("{other:#}\n"),
        };
        self.write_below(root, path, text.as_bytes())
    }

    fn write_below(&self, root: &Path, path: &str, bytes: &[u8]) -> io::Result<()> {
        // Names only: what climbs or starts at the root is not looked at any further.
        let is_below =
            Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !is_below {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "not a path below the workspace"));
        }
        let policy =
            self.agents.sandboxes.policy(self.options.permission.reach, root, &self.agents.protected);
        let workspace = root.canonicalize()?;
        let wanted = workspace.join(path);
        let folder = wanted.parent().unwrap_or(&workspace);
        let inside = |folder: &Path| folder.starts_with(&workspace);
        // The nearest folder that is there: what a link leads out of the workspace is not made.
        let there = folder.ancestors().find(|folder| folder.exists()).unwrap_or(&workspace).canonicalize()?;
        if !inside(&there) || !policy.may_write(&wanted) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "not writable in the mode in force"));
        }
        std::fs::create_dir_all(folder)?;
        let target = wanted.canonicalize().unwrap_or_else(|_| wanted.clone());
        if !inside(&target) || !policy.may_write(&target) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it leads out of the workspace"));
        }
        durable::replace(&target, bytes, Mode::Keep, Sync::No)
    }

    /// An output that is too long for a line of the journal goes to a file, which the record names.
    /// Attempts have done so before they reported.
    pub fn with_output_kept(&self, step: Option<&StepAddr>, attempt: Option<u32>, mut entry: Entry) -> Entry {
        if let (Some(step), None, Entry::Ended(ended)) = (step, attempt, &mut entry)
            && let Some(OutputRef::Inline(value)) = &ended.output
        {
            ended.output = Some(self.keep(step, 0, value));
        }
        entry
    }

    /// In the record where it is short, else in a file that is on disk when this returns.
    pub fn keep(&self, step: &StepAddr, attempt: u32, value: &Arc<Value>) -> OutputRef {
        match manifest::output::keep(&self.run, step, attempt, Arc::clone(value)) {
            Ok(kept) => kept,
            Err(error) => {
                // It stays in the line: longer than it should be, and whole.
                self.bus.note(Some(step), format!("cannot write its output to a file: {error}"));
                OutputRef::Inline(Arc::clone(value))
            }
        }
    }
}
