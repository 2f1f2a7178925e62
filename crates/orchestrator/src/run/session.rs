//! The agents of a session: the run that they live in, and the door by which the session's conversation reaches them.
//!
//! The run is made at the first agent, or opened again where the session had one. Requests are taken in their order by
//! one task, so that agents are numbered as they were asked for. Decides nothing: the schedule does.

use super::RunError;
use super::children::{order_of, said, spent, told};
use super::orders::{NotTaken, RunOrders};
use super::start::{OfSession, RunHandle, RunOptions, RunServices, start_of};
use crate::addr::StepAddr;
use crate::journal::record::EndState;
use crate::plan::model::Plan;
use crate::plan::session::SessionPlan;
use crate::report::RunReport;
use crate::report::board::Board;
use crate::report::event::RunEvent;
use crate::rundir::RunDir;
use crate::scheduler::{ChildEnd, ChildNews, ChildOrder, Event, RunMsg, RunRef, StepIx};
use claw_agents::children::{Background, ChildSaid, SpawnRequest, Spawner};
use claw_agents::definition::AgentDefinition;
use claw_agents::effects::CallNo;
use claw_kernel::ids::{AgentId, RunId, SessionId};
use claw_kernel::redact::Redactor;
use claw_kernel::tasks;
use futures_util::future::BoxFuture;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

/// What a team is made from.
pub struct TeamOptions {
    /// Agents and logs.
    pub services: RunServices,
    /// As of a workflow's run: workspace, folder of runs, mode.
    pub run: RunOptions,
    /// Whose agents they are.
    pub session: SessionId,
    /// The session's run, where it has one: it is opened at once.
    pub earlier: Option<RunId>,
    /// Who may be started, and how many.
    pub plan: SessionPlan,
}

/// What a session hears of its agents.
#[derive(Debug)]
pub enum TeamNews {
    /// The run was made, or opened again: the session's log names it.
    Opened(TeamRun),
    /// An agent in the background ended. Once it is in the session's log: [`SessionTeam::delivered`].
    Ended(TeamEnd),
    /// A word for people.
    Note(String),
    /// The run could not be made, or its journal could not be written: agents cannot be started.
    Failed(RunError),
}

/// The run of a session.
#[derive(Clone, Debug)]
pub struct TeamRun {
    /// Which.
    pub id: RunId,
    /// Its folder.
    pub folder: PathBuf,
    /// What its agents do.
    pub board: Arc<Board>,
}

/// The end of an agent in the background.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamEnd {
    /// The run: with the number it names the message, which is told once.
    pub run: RunId,
    /// From 1 within the run.
    pub number: u32,
    /// Which agent.
    pub agent: Option<AgentId>,
    /// Its name.
    pub label: String,
    /// How it ended.
    pub state: EndState,
    /// For the session's model.
    pub text: String,
}

/// Starts the agents of a session and speaks with them. Cheap to clone.
#[derive(Clone)]
pub struct SessionTeam {
    /// As many as calls of one conversation, which are bounded.
    requests: mpsc::UnboundedSender<Request>,
    roster: Arc<Roster>,
    startable: Arc<[Arc<AgentDefinition>]>,
    redactor: Arc<Redactor>,
}

enum Request {
    Spawn { call: CallNo, order: Box<ChildOrder>, reply: oneshot::Sender<ChildEnd> },
    Fact(Event),
    Order { event: Event, reply: oneshot::Sender<Result<(), NotTaken>> },
    Cancel,
    Leave { reply: oneshot::Sender<Option<Result<RunReport, RunError>>> },
}

/// The agents that were started in the background, in their order.
#[derive(Default)]
struct Roster(Mutex<Vec<Mate>>);

struct Mate {
    id: Option<AgentId>,
    step: StepAddr,
    label: String,
    said: watch::Sender<Option<ChildSaid>>,
}

impl Roster {
    fn all(&self) -> MutexGuard<'_, Vec<Mate>> {
        // Every change is whole: a panic elsewhere leaves it usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, id: Option<AgentId>, step: StepAddr, label: String) {
        let mut all = self.all();
        if !all.iter().any(|mate| mate.step == step) {
            all.push(Mate { id, step, label, said: watch::Sender::new(None) });
        }
    }

    fn ended(&self, step: &StepAddr, said: ChildSaid) {
        if let Some(mate) = self.all().iter().find(|mate| mate.step == *step) {
            mate.said.send_replace(Some(said));
        }
    }

    /// The one agent that a model means.
    fn find(&self, wanted: &str) -> Result<(StepAddr, watch::Receiver<Option<ChildSaid>>), ChildSaid> {
        let wanted = wanted.trim();
        let all = self.all();
        let is_it = |mate: &&Mate| {
            mate.id.as_ref().is_some_and(|id| id.as_str() == wanted) || mate.step.to_string() == wanted
        };
        let found: Vec<&Mate> = match all.iter().find(is_it) {
            Some(mate) => vec![mate],
            None => all.iter().filter(|mate| mate.label.eq_ignore_ascii_case(wanted)).collect(),
        };
        match found.as_slice() {
            [mate] => Ok((mate.step.clone(), mate.said.subscribe())),
            [] => {
                let known: Vec<String> =
                    all.iter().map(|mate| format!("{} ({})", mate.step, mate.label)).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                Err(ChildSaid::error(format!("there is no agent `{wanted}`; in the background: {known}")))
            }
            [..] => {
                let known: Vec<String> = found.iter().map(|mate| mate.step.to_string()).collect();
                let text = format!("`{wanted}` names several agents: {}", known.join(", "));
                Err(ChildSaid::error(text))
            }
        }
    }
}

impl SessionTeam {
    /// A team without a run, or with the one that the session had. Within a runtime.
    pub fn start(options: TeamOptions, news: mpsc::Sender<TeamNews>) -> Self {
        let (requests, taken) = mpsc::unbounded_channel();
        let team = Self {
            requests,
            roster: Arc::new(Roster::default()),
            startable: options.plan.startable.clone().into(),
            redactor: Arc::clone(&options.services.agents.redactor),
        };
        let room = Room { roster: Arc::clone(&team.roster), news, options: Some(options), going: None };
        // It ends when the session leaves, or drops the last of these.
        drop(tasks::spawn("team", room.serve(taken)));
        team
    }

    fn ask(&self, request: Request) {
        // A room that is gone has told of its end.
        let _ = self.requests.send(request);
    }

    /// The user has said something: limits count from here.
    pub fn user_spoke(&self) {
        self.ask(Request::Fact(Event::UserSpoke));
    }

    /// This message is in the session's log.
    pub fn delivered(&self, number: u32) {
        self.ask(Request::Fact(Event::Delivered { number }));
    }

    /// Everything stops, agents in the background too.
    pub fn cancel(&self) {
        self.ask(Request::Cancel);
    }

    /// Done when no agent in the background works any more.
    pub async fn all_ended(&self) {
        let all: Vec<_> = self.roster.all().iter().map(|mate| mate.said.subscribe()).collect();
        for mut mate in all {
            // A roster that is gone has nobody who works.
            let _ = mate.wait_for(Option::is_some).await;
        }
    }

    /// The session is left: what still runs stops, and goes on when the session does. `None`: there was no run.
    pub async fn leave(&self) -> Option<Result<RunReport, RunError>> {
        let (reply, left) = oneshot::channel();
        self.ask(Request::Leave { reply });
        left.await.ok().flatten()
    }

    async fn order(&self, event: Event) -> ChildSaid {
        let (reply, taken) = oneshot::channel();
        self.ask(Request::Order { event, reply });
        match taken.await.unwrap_or(Err(NotTaken::Over)) {
            Ok(()) => ChildSaid { text: "done".to_owned(), is_error: false },
            Err(why) => ChildSaid::error(why.to_string()),
        }
    }
}

/// Tells the schedule of a call that nobody waits for any more.
struct CallGuard {
    requests: mpsc::UnboundedSender<Request>,
    call: Option<CallNo>,
}

impl CallGuard {
    /// The call was answered.
    fn over(&mut self) {
        self.call = None;
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            let _ = self.requests.send(Request::Fact(Event::CallOff { parent: HOST, call }));
        }
    }
}

/// The step of a session's conversation.
const HOST: StepIx = StepIx(0);

impl Spawner for SessionTeam {
    fn spawn(&self, request: SpawnRequest) -> BoxFuture<'_, ChildSaid> {
        let SpawnRequest { call, task } = request;
        let order = match order_of(task, &self.startable, &self.redactor) {
            Ok(order) => ChildOrder { id: Some(AgentId::fresh()), ..order },
            Err(refused) => return Box::pin(std::future::ready(refused)),
        };
        let (id, label, background) = (order.id.clone(), order.label.clone(), order.background);
        let (reply, end) = oneshot::channel();
        self.ask(Request::Spawn { call, order: Box::new(order), reply });
        let mut guard = CallGuard { requests: self.requests.clone(), call: Some(call) };
        Box::pin(async move {
            let end = end.await;
            guard.over();
            match end {
                Ok(ChildEnd::Begun { step, waiting }) if background => {
                    self.roster.add(id.clone(), step.clone(), label);
                    let said = told(ChildEnd::Begun { step, waiting });
                    let id = id.map(|id| format!("\nagentId: {id}")).unwrap_or_default();
                    ChildSaid { text: format!("{}{id}\nYou will be told when it ends.", said.text), ..said }
                }
                Ok(end) => told(end),
                Err(_) => ChildSaid::error("cancelled"),
            }
        })
    }

    fn background(&self) -> Option<&dyn Background> {
        Some(self)
    }
}

impl Background for SessionTeam {
    fn output(&self, agent: String, wait: Duration) -> BoxFuture<'_, ChildSaid> {
        Box::pin(async move {
            let (step, mut said) = match self.roster.find(&agent) {
                Ok(found) => found,
                Err(unknown) => return unknown,
            };
            let ended = said.wait_for(Option::is_some);
            match tokio::time::timeout(wait, ended).await {
                Ok(Ok(said)) => said.clone().unwrap_or_else(|| ChildSaid::error("gone")),
                Ok(Err(_)) => ChildSaid::error(format!("{step} is gone")),
                Err(_) => ChildSaid { text: format!("{step} still works"), is_error: false },
            }
        })
    }

    fn message(&self, agent: String, text: String) -> BoxFuture<'_, ChildSaid> {
        Box::pin(async move {
            match self.roster.find(&agent) {
                Ok((step, _)) => self.order(Event::Steered { step, text }).await,
                Err(unknown) => unknown,
            }
        })
    }

    fn stop(&self, agent: String) -> BoxFuture<'_, ChildSaid> {
        Box::pin(async move {
            match self.roster.find(&agent) {
                Ok((step, _)) => self.order(Event::StopAgent { step }).await,
                Err(unknown) => unknown,
            }
        })
    }
}

/// The task behind a team.
struct Room {
    roster: Arc<Roster>,
    news: mpsc::Sender<TeamNews>,
    /// `None`: the run was opened, or could not be.
    options: Option<TeamOptions>,
    going: Option<Going>,
}

/// A run that goes on.
struct Going {
    actor: RunRef,
    orders: RunOrders,
    attempt: u32,
    report: tasks::TaskHandle<Result<RunReport, RunError>>,
}

impl Room {
    async fn serve(mut self, mut requests: mpsc::UnboundedReceiver<Request>) {
        if self.options.as_ref().is_some_and(|options| options.earlier.is_some()) {
            self.open().await;
        }
        while let Some(request) = requests.recv().await {
            match request {
                Request::Spawn { call, order, reply } => {
                    self.open().await;
                    // Without a run the reply is dropped: the call is told so.
                    let Some(going) = &self.going else { continue };
                    let (parent, attempt) = (HOST, going.attempt);
                    going.actor.tell(RunMsg::Spawn { parent, attempt, call, order: *order, reply });
                }
                Request::Fact(event) => {
                    if let Some(going) = &self.going {
                        going.actor.tell(RunMsg::Fact(event));
                    }
                }
                Request::Order { event, reply } => {
                    if let Some(going) = &self.going {
                        going.actor.tell(RunMsg::Order { event, reply });
                    }
                }
                Request::Cancel => {
                    if let Some(going) = &self.going {
                        going.orders.cancel(None);
                    }
                }
                Request::Leave { reply } => return self.leave(reply).await,
            }
        }
        self.leave(oneshot::channel().0).await;
    }

    async fn leave(self, reply: oneshot::Sender<Option<Result<RunReport, RunError>>>) {
        let report = match self.going {
            Some(going) => {
                going.actor.tell(RunMsg::Fact(Event::Left));
                Some(going.report.await.unwrap_or(Err(RunError::Crashed)))
            }
            None => None,
        };
        // Whoever left may be gone.
        let _ = reply.send(report);
    }

    /// Makes the run, once.
    async fn open(&mut self) {
        let Some(options) = self.options.take() else { return };
        match self.begin(options).await {
            Ok(going) => self.going = Some(going),
            Err(error) => self.tell(TeamNews::Failed(error)).await,
        }
    }

    async fn begin(&self, options: TeamOptions) -> Result<Going, RunError> {
        let TeamOptions { services, run, session, earlier, plan } = options;
        let plan = Plan::of_session(plan).map_err(|_| RunError::Crashed)?;
        let (sender, ends) = mpsc::unbounded_channel();
        let of = OfSession { id: session, run: earlier, news: sender };
        let mut handle: RunHandle = start_of(services, Arc::new(plan), run, Some(of)).await?;
        for note in &handle.notes {
            self.tell(TeamNews::Note(note.clone())).await;
        }
        let view =
            TeamRun { id: handle.id, folder: handle.folder.clone(), board: Arc::clone(handle.board()) };
        self.tell(TeamNews::Opened(view)).await;
        let pump = Pump {
            run: handle.id,
            folder: handle.run.clone(),
            roster: Arc::clone(&self.roster),
            news: self.news.clone(),
        };
        let notes = handle.subscribe();
        drop(tasks::spawn("team news", pump.serve(ends)));
        drop(tasks::spawn("team notes", pass_on_notes(notes, self.news.clone())));
        handle.begin();
        Ok(Going {
            actor: handle.scheduler(),
            orders: handle.orders(),
            attempt: handle.take,
            report: tasks::spawn("session run", handle.report()),
        })
    }

    async fn tell(&self, news: TeamNews) {
        // A session that is gone hears nothing.
        let _ = self.news.send(news).await;
    }
}

async fn pass_on_notes(mut events: broadcast::Receiver<RunEvent>, news: mpsc::Sender<TeamNews>) {
    loop {
        match events.recv().await {
            Ok(event) => {
                if let crate::report::event::RunEventKind::Note(text) = event.kind {
                    let text = event.step.map_or_else(|| text.clone(), |step| format!("{step}: {text}"));
                    if news.send(TeamNews::Note(text)).await.is_err() {
                        return;
                    }
                }
            }
            // What was missed was news for the screen, which reads the board.
            Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}

/// Takes the ends of agents to the session.
struct Pump {
    run: RunId,
    folder: RunDir,
    roster: Arc<Roster>,
    news: mpsc::Sender<TeamNews>,
}

impl Pump {
    async fn serve(self, mut ends: mpsc::UnboundedReceiver<ChildNews>) {
        while let Some(child) = ends.recv().await {
            self.roster.add(child.agent.clone(), child.step.clone(), child.label.clone());
            if matches!(child.end, ChildEnd::Begun { .. }) {
                continue;
            }
            let text = self.message(&child);
            let is_error = matches!(child.end, ChildEnd::Failed(_));
            self.roster.ended(&child.step, ChildSaid { text: text.clone(), is_error });
            let end = TeamEnd {
                run: self.run,
                number: child.number,
                agent: child.agent,
                label: child.label,
                state: child.state,
                text,
            };
            if self.news.send(TeamNews::Ended(end)).await.is_err() {
                return;
            }
        }
    }

    /// One message: who, how, what it gave, where the rest is.
    fn message(&self, child: &ChildNews) -> String {
        let ChildNews { step, label, subagent_type, attempt, state, end, .. } = child;
        let status = match state {
            EndState::Succeeded | EndState::Cached => "completed",
            EndState::Failed | EndState::Skipped => "failed",
            EndState::Cancelled => "cancelled",
            EndState::Interrupted => "interrupted",
        };
        let id = child.agent.as_ref().map(|id| format!(", {id}")).unwrap_or_default();
        let head = format!("Agent {step} \"{label}\" ({subagent_type}{id}) {status}");
        let manifest = self.folder.manifest(step, *attempt);
        let place = format!("manifest: {}", manifest.display());
        match end {
            ChildEnd::Done { value, file, usage, .. } => {
                let output = file.as_ref().map(|file| format!("\noutput: {}", file.display()));
                let (said, output) = (said(value, file.as_deref()), output.unwrap_or_default());
                format!("{head}; {}.\n\n{said}\n\n{place}{output}", spent(usage))
            }
            ChildEnd::Begun { .. } => head,
            ChildEnd::Failed(why) if *attempt == 0 => format!("{head}: {why}"),
            ChildEnd::Failed(why) => format!("{head}: {why}\n\n{place}"),
        }
    }
}
