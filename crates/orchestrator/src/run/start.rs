//! From a plan to a running run: folder, lock, journal, past, schedule, actor. And the handle of whoever waits.

use super::error::RunError;
use super::given::Given;
use super::hands::Hands;
use super::locks::LockRoom;
use super::mailbox::Mailboxes;
use super::orders::RunOrders;
use super::past::RunPast;
use super::select::{Again, Selection};
use super::stub::Stubs;
use crate::control::{self, Listener, Server};
use crate::expr::{InputView, RunView};
use crate::journal::history::History;
use crate::journal::record::{Entry, Take};
use crate::journal::store::{self, JournalWriter, Opened};
use crate::ledger::{Ledger, LedgerNews};
use crate::manifest;
use crate::plan::model::Plan;
use crate::report::board::Board;
use crate::report::bus::EventBus;
use crate::report::event::{RunEvent, RunEventKind};
use crate::report::{RunReport, markdown};
use crate::rundir::{self, InputOnDisk, KeptPlan, NewRun, RunDir, Runs, TakeFiles};
use crate::scheduler::{
    ActorArguments, ChildNews, Event, NoPast, Past, RunFinish, RunMsg, RunRef, Schedule, ScheduleContext,
};
use crate::worktree::Folders;
use claw_agents::permission::Permission;
use claw_agents::services::AgentServices;
use claw_kernel::cancel::CancelToken;
use claw_kernel::clock::{self, Timestamp};
use claw_kernel::digest::Digest;
use claw_kernel::durable::{self, FileLock, LogWriter, Mode, Sync};
use claw_kernel::ids::{RunId, SessionId};
use claw_providers::usage::Usage;
use indexmap::IndexMap;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio_util::task::TaskTracker;

/// The field of a take's limits that says that a file answered.
const STUBBED: &str = "stubs";

/// What a run works with.
#[derive(Clone)]
pub struct RunServices {
    /// Agents.
    pub agents: Arc<AgentServices>,
    /// The writer thread of all logs.
    pub logs: LogWriter,
}

/// Which run to go on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResumeFrom {
    /// The newest of this file.
    Newest,
    /// This one: its id, or a part of it that names it alone.
    Run(String),
}

/// How a run is to go.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Top of the work tree, else the working folder: agents work here.
    pub workspace: PathBuf,
    /// Where runs lie.
    pub runs: Runs,
    /// Where folders of steps lie: `worktrees` in claw's state folder of the user.
    pub worktrees: PathBuf,
    /// The user's key for digests of secrets.
    pub secret_key: PathBuf,
    /// `None`: a new run.
    pub resume: Option<ResumeFrom>,
    /// Lines of the journal that are lost are given up; their steps are in doubt.
    pub accept_damage: bool,
    /// What of a run that is gone on with is to run again.
    pub again: Option<Again>,
    /// Answers agents in place of a model: the same that is [`AgentServices::model`].
    pub stubs: Option<Arc<Stubs>>,
    /// `--max-usd`: the run's ceiling in this take, where the file has none that is lower.
    pub max_usd: Option<f64>,
    /// At most this, for every step.
    pub permission: Permission,
    /// For agents to which neither the file nor their definition gives one.
    pub model: Option<String>,
    /// Whether there is somebody whom gates can ask.
    pub can_ask: bool,
    /// Of claw.
    pub version: String,
    /// The user's runtime directory, where the run's socket is to lie; `None`: below the system's temporary files.
    pub runtime_dir: Option<PathBuf>,
}

/// A run that goes on. Dropping it leaves the run going.
pub struct RunHandle {
    /// Which run.
    pub id: RunId,
    /// Its folder.
    pub folder: PathBuf,
    /// The take, from 1.
    pub take: u32,
    /// What the journal lost at its end, and what else is worth a word.
    pub notes: Vec<String>,
    pub(super) bus: Arc<EventBus>,
    actor: RunRef,
    done: oneshot::Receiver<Result<RunFinish, crate::journal::error::JournalError>>,
    tracker: TaskTracker,
    token: CancelToken,
    pub(super) plan: Arc<Plan>,
    pub(super) run: RunDir,
    pub(super) started: Timestamp,
    pub(super) spent: Usage,
    /// The session whose agents run.
    pub(super) session: Option<SessionId>,
    begun: bool,
    /// Where others watch it and give orders.
    listener: Option<Listener>,
    /// Held until the report is written.
    lock: FileLock,
}

/// Makes a run ready, or one that was there before. It begins when its report is asked for, so that whoever subscribes
/// before hears all of it.
///
/// # Errors
/// Where the run is held by another process, its state cannot be read or written, or there is none to go on with.
pub async fn start(
    services: RunServices,
    plan: Arc<Plan>,
    options: RunOptions,
) -> Result<RunHandle, RunError> {
    start_of(services, plan, options, None).await
}

/// The session that a run belongs to.
pub(super) struct OfSession {
    pub id: SessionId,
    /// Its run, where it has one.
    pub run: Option<RunId>,
    /// Hears of the agents in the background.
    pub news: mpsc::UnboundedSender<ChildNews>,
}

pub(super) async fn start_of(
    services: RunServices,
    plan: Arc<Plan>,
    options: RunOptions,
    session: Option<OfSession>,
) -> Result<RunHandle, RunError> {
    let Ready { run, lock, listener, journal, history, base_commit, notes } =
        open(&services, &plan, &options, session.as_ref()).await?;
    let folders =
        Folders::new(run.clone(), &options.workspace, &options.worktrees, Arc::clone(&services.agents));
    let Begun { take, given, selection, notes: said } =
        begin_take(&plan, &options, &run, &journal, &history).await?;
    let notes: Vec<String> = notes.into_iter().chain(said).chain(folders.sweep().await).collect();
    let spent = history.usage();
    let ledger = Ledger::new(&plan, &history, options.max_usd);
    let bus = Arc::new(EventBus::new(run.id(), board(&plan, spent)));
    let (tracker, token) = (TaskTracker::new(), CancelToken::new());
    let past = past(take, history, &run, &plan, selection);
    let schedule =
        Schedule::new(Arc::clone(&plan), context(&run, given.views, base_commit, options.can_ask), past);
    let hands = Arc::new(Hands {
        plan: Arc::clone(&plan),
        run: run.clone(),
        journal: Arc::clone(&journal),
        bus: Arc::clone(&bus),
        agents: Arc::clone(&services.agents),
        options,
        ledger: Arc::clone(&ledger),
        tracker: tracker.clone(),
        locks: LockRoom::default(),
        boot_id: rundir::boot_id(),
        folders,
        mailboxes: Mailboxes::default(),
        news: session.as_ref().map(|session| session.news.clone()),
    });
    let (reply, done) = oneshot::channel();
    let (told, ends) = (Arc::clone(&bus), token.clone());
    let args = ActorArguments { schedule, journal, hands, bus: told, token: ends, spent, done: reply };
    let actor = RunRef::start(args).await?;
    listen(&ledger, actor.clone(), Arc::clone(&bus));
    Ok(RunHandle {
        id: run.id(),
        folder: run.root().to_owned(),
        take,
        notes,
        bus,
        actor,
        done,
        tracker,
        token,
        plan,
        run,
        started: clock::now(),
        spent,
        session: session.map(|session| session.id),
        begun: false,
        listener,
        lock,
    })
}

fn board(plan: &Plan, spent: Usage) -> Arc<Board> {
    Arc::new(Board::new(plan.name.clone(), plan.top.nodes().len(), clock::now(), spent))
}

fn past(take: u32, history: History, run: &RunDir, plan: &Arc<Plan>, selection: Selection) -> Box<dyn Past> {
    match take {
        0 | 1 => Box::new(NoPast),
        _ => Box::new(RunPast::new(history, run.clone(), Arc::clone(plan), selection)),
    }
}

/// The ledger's news become facts and notes of the run.
fn listen(ledger: &Ledger, actor: RunRef, bus: Arc<EventBus>) {
    ledger.listen(move |news| match news {
        LedgerNews::Spent(reason) => actor.tell(RunMsg::Fact(Event::BudgetSpent { reason })),
        LedgerNews::Note(text) => bus.note(None, text),
    });
}

struct Ready {
    run: RunDir,
    lock: FileLock,
    listener: Option<Listener>,
    journal: Arc<JournalWriter>,
    history: History,
    /// As it was when the run was made.
    base_commit: Option<String>,
    notes: Vec<String>,
}

/// The run's folder: a new one, or the one that is gone on with.
fn folder_of(plan: &Plan, options: &RunOptions, session: Option<&OfSession>) -> Result<RunDir, RunError> {
    if let Some(run) = session.and_then(|session| session.run) {
        return Ok(options.runs.open(run)?.0);
    }
    let workflow = rundir::workflow_name_in(&options.workspace, &plan.file);
    Ok(match &options.resume {
        None => options.runs.create(NewRun {
            name: plan.name.clone(),
            workflow: session.is_none().then_some(workflow),
            claw_version: options.version.clone(),
            parent_session: session.map(|session| session.id),
            base_commit: super::base::commit(&options.workspace),
        })?,
        Some(ResumeFrom::Newest) => options.runs.newest_of(&workflow)?.0,
        Some(ResumeFrom::Run(wanted)) => {
            let (run, file) = options.runs.find(wanted)?;
            if file.workflow.as_ref() != Some(&workflow) {
                return Err(RunError::OtherWorkflow { run: run.id(), ran: file.workflow, asked: workflow });
            }
            run
        }
    })
}

async fn open(
    services: &RunServices,
    plan: &Plan,
    options: &RunOptions,
    session: Option<&OfSession>,
) -> Result<Ready, RunError> {
    let run = folder_of(plan, options, session)?;
    let mut notes = Vec::new();
    // Before the lock names it: whoever reads the name finds somebody there.
    let listener = Listener::bind(options.runtime_dir.as_deref(), run.id())
        .map_err(|error| notes.push(format!("the run cannot be watched from another process: {error}")))
        .ok();
    let socket = listener.as_ref().map(|listener| listener.path().to_owned());
    let before = rundir::named_owner(&run).and_then(|owner| owner.socket);
    let lock = rundir::take_from_the_dead(&run, socket.clone()).await?;
    control::forget(before, socket.as_deref());
    if options.accept_damage {
        for step in store::accept_damage(&run)? {
            notes.push(format!("records of {step} are lost: it is in doubt"));
        }
    }
    let Opened { writer, records, torn } = JournalWriter::open(&services.logs, &run).await?;
    if let Some(torn) = torn {
        notes.push(format!(
            "the journal's last line was torn at byte {}; its {} bytes are kept in {}",
            torn.offset,
            torn.bytes,
            run.journal_torn().display()
        ));
    }
    let base_commit = options.runs.open(run.id())?.1.base_commit;
    let mut history = History::of(&records);
    notes.extend(super::git_step::recover(services, options, &run, &writer, &mut history).await?);
    Ok(Ready { run, lock, listener, journal: Arc::new(writer), history, base_commit, notes })
}

/// A take that is on record.
struct Begun {
    take: u32,
    given: Given,
    selection: Selection,
    notes: Vec<String>,
}

/// Finds what is to run again, and writes what the take was given. Nothing is written where a step that was named is not
/// there.
async fn begin_take(
    plan: &Plan,
    options: &RunOptions,
    run: &RunDir,
    journal: &JournalWriter,
    history: &History,
) -> Result<Begun, RunError> {
    let selection = Selection::new(options.again.as_ref(), plan, history)?;
    let mut notes = selection.notes().to_vec();
    let take = history.takes() + 1;
    if take > 1
        && let Err(error) = manifest::rebuild::rebuild(run, history)
    {
        notes.push(error.to_string());
    }
    let given = write_take(plan, options, run, take, journal).await?;
    if take > 1 {
        notes.extend(given.differing_secrets(run, take - 1));
        notes.extend(stubs_before(run, take, options));
    }
    Ok(Begun { take, given, selection, notes })
}

/// Writes what this take was given, and the record that a process took the run.
async fn write_take(
    plan: &Plan,
    options: &RunOptions,
    run: &RunDir,
    take: u32,
    journal: &JournalWriter,
) -> Result<Given, RunError> {
    let given = Given::of(plan, options, run)?;
    let static_keys: IndexMap<String, Digest> =
        plan.paths().map(|(ix, path)| (path, plan.nodes[ix.at()].static_key)).collect();
    let kept = KeptPlan { plan: plan.json(), static_keys };
    let limits = serde_json::json!({ "concurrency": plan.limits.concurrency, "commands": plan.limits.commands,
        "agents": plan.limits.agents, "depth": plan.limits.depth, "providers": plan.limits.providers,
        STUBBED: options.stubs.is_some() });
    TakeFiles { source: &plan.source, plan: &kept, inputs: &given.on_disk, limits: &limits }
        .write(run, take)?;
    let static_parts = kept.static_keys.values().map(Digest::as_bytes);
    let entry = Entry::Take(Take {
        take,
        pid: std::process::id(),
        boot_id: rundir::boot_id(),
        version: options.version.clone(),
        file: Digest::of(plan.source.as_bytes()),
        plan: Digest::of_parts(static_parts),
        inputs: InputOnDisk::digest(&given.on_disk).map_err(crate::journal::error::JournalError::Encode)?,
    });
    journal.record(None, None, entry).await?.done().await?;
    Ok(given)
}

/// What a file answered is no model's word: a take with models is told what it builds on.
fn stubs_before(run: &RunDir, take: u32, options: &RunOptions) -> Option<String> {
    let stubbed = |take: &u32| {
        let path = run.take(*take).join("limits.json");
        let bytes = rundir::read_small(&path).ok()?;
        serde_json::from_slice::<serde_json::Value>(&bytes).ok()?.get(STUBBED)?.as_bool()
    };
    let before = (1..take).find(|take| stubbed(take) == Some(true)).filter(|_| options.stubs.is_none())?;
    Some(format!(
        "agents of take {before} were answered from a stub file, and what they gave is kept; --from STEP has them asked"
    ))
}

fn context(
    run: &RunDir,
    inputs: IndexMap<String, InputView>,
    base_commit: Option<String>,
    can_ask: bool,
) -> ScheduleContext {
    let run = RunView { id: run.id().to_string(), dir: run.root().to_owned(), base_commit };
    ScheduleContext {
        inputs: Arc::new(inputs),
        run: Arc::new(run),
        nonce: format!("{:016x}", rand_seed()),
        seed: rand_seed(),
        can_ask,
    }
}

fn rand_seed() -> u64 {
    u64::from_le_bytes(Digest::of(RunId::fresh().to_string()).as_bytes()[..8].try_into().unwrap_or_default())
}

impl RunHandle {
    /// The live board.
    pub fn board(&self) -> &Arc<Board> {
        self.bus.board()
    }

    /// Events from now on. Whoever is too far behind is told how many it missed.
    pub fn subscribe(&self) -> broadcast::Receiver<RunEvent> {
        self.bus.subscribe()
    }

    /// What can be said to the run while somebody waits for its report.
    pub fn orders(&self) -> RunOrders {
        RunOrders::new(self.actor.clone(), self.token.clone())
    }

    /// Says that it begins, once.
    pub(super) fn begin(&mut self) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let (workflow, nodes) = (self.plan.name.clone(), self.plan.top.nodes().len());
        self.bus.tell(None, None, RunEventKind::RunStarted { workflow, nodes, take: self.take });
        self.actor.tell(RunMsg::Fact(Event::Begin));
    }

    /// What can be said to the scheduler.
    pub(super) fn scheduler(&self) -> RunRef {
        self.actor.clone()
    }

    /// Begins; waits for the end; writes `report.md`; lets the run go.
    ///
    /// # Errors
    /// Where the journal could not be written, or the scheduler died.
    pub async fn report(mut self) -> Result<RunReport, RunError> {
        self.begin();
        let (orders, bus) = (self.orders(), Arc::clone(&self.bus));
        let server = self.listener.take().map(|listener| Server::start(listener, orders, bus));
        let finish = (&mut self.done).await;
        self.tracker.close();
        if !matches!(finish, Ok(Ok(_))) {
            self.token.cancel();
        }
        self.tracker.wait().await;
        let finish = finish.map_err(|_| RunError::Crashed)??;
        let report = super::summing::report(&self, finish);
        let path = self.run.report();
        let text = markdown::render(&report);
        durable::replace(&path, text.as_bytes(), Mode::Private, Sync::No)
            .map_err(|source| RunError::Write { path, source })?;
        if let Some(server) = server {
            server.close().await;
        }
        drop(self.lock);
        Ok(report)
    }
}
