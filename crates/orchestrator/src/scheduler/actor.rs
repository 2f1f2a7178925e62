//! The actor of one run: hears facts, asks the core, writes the journal, then acts.
//!
//! Parent of nothing that decides: steps are supervised tasks of the run (`run::hands`), each of which reports exactly
//! once. Its own death ends the run: whoever waits for the report is told.

use super::core::Schedule;
use super::event::{ChildEnd, ChildOrder, Command, Event, Outcome, RunEnd, StepIx};
use super::status::NodeStanding;
use crate::journal::error::JournalError;
use crate::journal::record::{EndState, Entry};
use crate::journal::store::{JournalWriter, Ticket};
use crate::report::bus::EventBus;
use crate::report::event::RunEventKind;
use crate::run::NotTaken;
use crate::run::hands::Hands;
use claw_agents::NotSteered;
use claw_agents::effects::CallNo;
use claw_agents::outcome::FailureClass;
use claw_kernel::cancel::CancelToken;
use claw_kernel::supervise::{self, SpawnFailed};
use claw_kernel::tasks;
use claw_providers::usage::Usage;
use futures_util::FutureExt;
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// The end of an attempt is on record.
#[derive(Clone, Debug)]
pub(crate) struct Settlement {
    pub state: EndState,
    pub error: Option<String>,
    pub class: Option<FailureClass>,
    /// Spent on its children and theirs.
    pub children: Usage,
}

/// What the actor hears.
pub(crate) enum RunMsg {
    /// Fact: something happened.
    Fact(Event),
    /// Fact: an attempt ended. `settle` is told when that is on record.
    Finished { step: StepIx, attempt: u32, outcome: Outcome, settle: oneshot::Sender<Settlement> },
    /// Order of a person: a fact for the core, and who waits until it is on record or refused.
    Order { event: Event, reply: oneshot::Sender<Result<(), NotTaken>> },
    /// Fact: the model of an agent wants a child; `reply` is told how that ended.
    Spawn { parent: StepIx, attempt: u32, call: CallNo, order: ChildOrder, reply: oneshot::Sender<ChildEnd> },
    /// Fact: the records up to this batch are durable.
    Durable(u64),
    /// Fact: the journal cannot be written any longer.
    JournalFailed(JournalError),
}

/// What can be said to the actor. Cheap to clone.
#[derive(Clone)]
pub(crate) struct RunRef(ActorRef<RunMsg>);

impl RunRef {
    /// Starts the actor. It begins at `Event::Begin`: whoever wants to hear all of it listens before.
    pub async fn start(args: ActorArguments) -> Result<Self, SpawnFailed> {
        let (actor, _join) = supervise::spawn_root("the scheduler", RunActor, args).await?;
        Ok(Self(actor))
    }

    /// Says something. A run that is over does not hear it: nothing is left to be done then.
    pub fn tell(&self, message: RunMsg) {
        let _ = self.0.cast(message);
    }
}

/// What a run comes to.
pub(crate) struct RunFinish {
    pub end: RunEnd,
    pub nodes: Vec<NodeStanding>,
}

/// What the actor starts with.
pub(crate) struct ActorArguments {
    pub schedule: Schedule,
    pub journal: Arc<JournalWriter>,
    pub hands: Arc<Hands>,
    pub bus: Arc<EventBus>,
    /// Cancelled: every step stops.
    pub token: CancelToken,
    /// Spent in earlier takes.
    pub spent: Usage,
    pub done: oneshot::Sender<Result<RunFinish, JournalError>>,
}

struct RunState {
    args: ActorArguments,
    done: Option<oneshot::Sender<Result<RunFinish, JournalError>>>,
    running: HashMap<StepIx, CancelToken>,
    settling: HashMap<(StepIx, u32), oneshot::Sender<Settlement>>,
    /// Calls of agents that wait for their children.
    waiting: HashMap<(StepIx, CallNo), oneshot::Sender<ChildEnd>>,
    /// Orders that wait until the records before them are durable, in their sequence.
    pending: VecDeque<(u64, Vec<Command>)>,
    /// The last batch of records.
    batch: u64,
    /// Persons who wait until that batch is durable.
    acknowledge: Vec<(u64, oneshot::Sender<Result<(), NotTaken>>)>,
    /// To the one that waits for the disk. As long as the batches that are on their way, which are bounded there.
    tickets: mpsc::UnboundedSender<(u64, Ticket)>,
}

/// The actor of one run.
struct RunActor;

impl Actor for RunActor {
    type Msg = RunMsg;
    type State = RunState;
    type Arguments = ActorArguments;

    async fn pre_start(
        &self,
        me: ActorRef<RunMsg>,
        mut args: ActorArguments,
    ) -> Result<RunState, ActorProcessingErr> {
        let (tickets, waiting) = mpsc::unbounded_channel();
        // It ends with this actor.
        drop(tasks::spawn("journal wait", wait_for_the_disk(waiting, me)));
        let (unused, _) = oneshot::channel();
        let done = Some(std::mem::replace(&mut args.done, unused));
        Ok(RunState {
            args,
            done,
            running: HashMap::new(),
            settling: HashMap::new(),
            waiting: HashMap::new(),
            pending: VecDeque::new(),
            batch: 0,
            acknowledge: Vec::new(),
            tickets,
        })
    }

    async fn handle(
        &self,
        me: ActorRef<RunMsg>,
        message: RunMsg,
        state: &mut RunState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            RunMsg::Fact(event) => {
                let orders = state.args.schedule.on(event);
                state.carry_out(&me, orders).await;
            }
            RunMsg::Finished { step, attempt, outcome, settle } => {
                state.running.remove(&step);
                state.waiting.retain(|(parent, _), _| *parent != step);
                state.settling.insert((step, attempt), settle);
                let orders = state.args.schedule.on(Event::Finished { step, attempt, outcome });
                state.carry_out(&me, orders).await;
            }
            RunMsg::Order { event, reply } => state.order(&me, event, reply).await,
            RunMsg::Spawn { parent, attempt, call, order, reply } => {
                state.waiting.insert((parent, call), reply);
                let orders = state.args.schedule.on(Event::Spawn { parent, attempt, call, order });
                state.carry_out(&me, orders).await;
            }
            RunMsg::Durable(batch) => state.act_up_to(&me, batch).await,
            RunMsg::JournalFailed(error) => state.give_up(&me, error),
        }
        Ok(())
    }

    /// Steps are tasks that report by themselves; an event of an actor below is no order to stop.
    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<RunMsg>,
        _event: SupervisionEvent,
        _state: &mut RunState,
    ) -> Result<(), ActorProcessingErr> {
        Ok(())
    }
}

/// Says up to which batch the journal is durable. Batches are durable in their order: of several at once, the last is
/// said.
async fn wait_for_the_disk(mut tickets: mpsc::UnboundedReceiver<(u64, Ticket)>, run: ActorRef<RunMsg>) {
    // The run may be over by now; then nobody needs to hear of it.
    let say = |message| drop(run.cast(message));
    while let Some((mut batch, ticket)) = tickets.recv().await {
        let mut written = ticket.done().await;
        while written.is_ok()
            && let Ok((number, ticket)) = tickets.try_recv()
        {
            let mut next = Box::pin(ticket.done());
            written = match next.as_mut().now_or_never() {
                Some(Ok(seq)) => Ok(seq),
                Some(Err(error)) => {
                    say(RunMsg::Durable(batch));
                    Err(error)
                }
                None => {
                    say(RunMsg::Durable(batch));
                    next.await
                }
            };
            batch = number;
        }
        match written {
            Ok(_) => say(RunMsg::Durable(batch)),
            Err(error) => return say(RunMsg::JournalFailed(error)),
        }
    }
}

fn not_delivered(error: &NotSteered) -> String {
    format!("not delivered: {error}; it is on record for the next attempt")
}

impl RunState {
    /// Writes what is to be written; the rest waits until it is durable.
    async fn carry_out(&mut self, me: &ActorRef<RunMsg>, orders: Vec<Command>) {
        let mut acts = Vec::new();
        let mut records = Vec::new();
        for order in orders {
            match order {
                Command::Record { step, attempt, entry } => {
                    let entry = self.args.hands.with_output_kept(step.as_ref(), attempt, *entry);
                    records.push((step, attempt, entry));
                }
                act => acts.push(act),
            }
        }
        if records.is_empty() {
            // Orders keep their sequence: they stand behind those that wait.
            return match self.pending.back_mut() {
                Some((_, waiting)) => waiting.extend(acts),
                None => drop(self.act(me, acts).await),
            };
        }
        let ticket = match self.args.journal.record_all(records).await {
            Ok(ticket) => ticket,
            Err(error) => return self.give_up(me, error),
        };
        self.batch += 1;
        let batch = self.batch;
        self.pending.push_back((batch, acts));
        // A waiter that is gone has told of the failure; the run ends with that.
        let _ = self.tickets.send((batch, ticket));
    }

    /// A person's order: whoever gave it is told when its records are durable, or why it was refused.
    async fn order(
        &mut self,
        me: &ActorRef<RunMsg>,
        event: Event,
        reply: oneshot::Sender<Result<(), NotTaken>>,
    ) {
        let full = if let Event::Steered { step, .. } = &event {
            self.args.hands.mailboxes.refuses(step)
        } else {
            None
        };
        let mut orders = match full {
            Some(reason) => vec![Command::Refuse { reason }],
            None => self.args.schedule.on(event),
        };
        let refused = orders.iter().position(|order| matches!(order, Command::Refuse { .. }));
        if let Some(Command::Refuse { reason }) = refused.map(|at| orders.remove(at)) {
            // Whoever asked may have gone.
            let _ = reply.send(Err(NotTaken::Refused { reason }));
        } else if self.pending.is_empty() && !has_records(&orders) {
            let _ = reply.send(Ok(()));
        } else {
            let batch = self.batch + u64::from(has_records(&orders));
            self.acknowledge.push((batch, reply));
        }
        self.carry_out(me, orders).await;
    }

    /// The journal is written in order: what stands before a durable batch is durable too. Persons are told after it was
    /// acted on: a message is then on its way to its agent.
    async fn act_up_to(&mut self, me: &ActorRef<RunMsg>, batch: u64) {
        let mut unheard: HashMap<u64, String> = HashMap::new();
        while self.pending.front().is_some_and(|(number, _)| *number <= batch) {
            if let Some((number, orders)) = self.pending.pop_front()
                && let Some(reason) = self.act(me, orders).await
            {
                unheard.insert(number, reason);
            }
        }
        for (number, reply) in std::mem::take(&mut self.acknowledge) {
            if number > batch {
                self.acknowledge.push((number, reply));
            } else {
                let refused = unheard.get(&number).cloned();
                // Whoever asked may have gone.
                let _ = reply.send(refused.map_or(Ok(()), |reason| Err(NotTaken::Refused { reason })));
            }
        }
    }

    fn settle(&mut self, attempt: (StepIx, u32), settlement: Settlement) {
        if let Some(settle) = self.settling.remove(&attempt) {
            // The step's task may have died; its manifest is then rebuilt at the next open.
            let _ = settle.send(settlement);
        }
    }

    /// The value: why a message among them was not delivered.
    async fn act(&mut self, me: &ActorRef<RunMsg>, orders: Vec<Command>) -> Option<String> {
        let mut unheard = None;
        for order in orders {
            match order {
                // Records never reach this place: `carry_out` has written them.
                Command::Record { .. } => {}
                Command::Start(launch) => {
                    let token = self.args.token.child_token();
                    self.running.insert(launch.step, token.clone());
                    self.args.hands.start(*launch, token, RunRef(me.clone()));
                }
                Command::ReadItems { place, source } => {
                    self.args.hands.read_items(place, source, RunRef(me.clone()))
                }
                Command::WakeAfter { step, attempt, delay } => {
                    me.send_after(delay, move || RunMsg::Fact(Event::Woke { step, attempt }));
                }
                Command::ExpireGate { step, delay } => {
                    me.send_after(delay, move || RunMsg::Fact(Event::GateExpired { step }));
                }
                Command::ExpireWarming { step, delay } => {
                    me.send_after(delay, move || RunMsg::Fact(Event::Warmed { step }));
                }
                Command::ExpireGroup { step, delay } => {
                    me.send_after(delay, move || RunMsg::Fact(Event::GroupExpired { step }));
                }
                Command::Lock { step, names } => self.args.hands.lock(step, names, RunRef(me.clone())),
                Command::Unlock { step } => self.args.hands.locks.let_go(step),
                Command::CloseFolder(folder) => self.args.hands.close_folder(folder),
                Command::Steer { step, text } => {
                    let failed = self.args.hands.steer(step, text).err();
                    unheard = failed.map(|error| not_delivered(&error)).or(unheard);
                }
                // A fact of claw's own that the core does not take changes nothing.
                Command::Refuse { .. } => {}
                Command::Deliver { parent, call, end } => {
                    if let Some(reply) = self.waiting.remove(&(parent, call)) {
                        // A call that was cancelled meanwhile has its result already.
                        let _ = reply.send(*end);
                    }
                }
                Command::Announce(news) => self.args.hands.announce(*news),
                // One that is not running has reported its end meanwhile.
                Command::Stop(step) => {
                    if let Some(token) = self.running.get(&step) {
                        token.cancel();
                    }
                }
                Command::Settled { step, attempt, state, error, class, children } => {
                    self.settle((step, attempt), Settlement { state, error, class, children });
                }
                Command::WriteOutput { path, value } => self.args.hands.write_output(&path, &value),
                Command::Tell { step, attempt, kind } => self.args.bus.tell(step, attempt, kind),
                Command::NodeClosed => self.args.bus.board().node_done(),
                // It is the last order.
                Command::End(end) => self.end(me, end).await,
            }
        }
        unheard
    }

    async fn end(&mut self, me: &ActorRef<RunMsg>, end: RunEnd) {
        let nodes = self.args.schedule.report();
        let usage = nodes
            .iter()
            .flat_map(|node| &node.steps)
            .fold(self.args.spent, |sum, step| sum.plus(&step.usage));
        let entry = Entry::RunEnded { status: end.status, exit_code: end.exit_code, usage };
        let written = match self.args.journal.record(None, None, entry).await {
            Ok(ticket) => ticket.done().await.map(drop),
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            return self.give_up(me, error);
        }
        let kind = RunEventKind::RunEnded { status: end.status, exit_code: end.exit_code };
        self.args.bus.tell(None, None, kind);
        self.finish(me, Ok(RunFinish { end, nodes }));
    }

    /// The journal cannot be written: children are stopped, nothing else is started.
    fn give_up(&mut self, me: &ActorRef<RunMsg>, error: JournalError) {
        self.args.token.cancel();
        self.finish(me, Err(error));
    }

    fn finish(&mut self, me: &ActorRef<RunMsg>, finish: Result<RunFinish, JournalError>) {
        if let Some(done) = self.done.take() {
            // Whoever started the run may have gone; the journal has it all.
            let _ = done.send(finish);
        }
        self.settling.clear();
        self.waiting.clear();
        me.stop(None);
    }
}

fn has_records(orders: &[Command]) -> bool {
    orders.iter().any(|order| matches!(order, Command::Record { .. }))
}
