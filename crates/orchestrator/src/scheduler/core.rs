//! The pure schedule: facts in, orders out. Holds the state; the files beside it change it.
//!
//! Knows nothing of time, tasks, files or models; see `actor.rs` for those.

use super::event::{Command, Event, StepIx};
use super::frame::{Frame, FrameIx, Place, Views};
use super::gate::{Gate, Lane, LevelIx, Rank};
use super::locks::Locks;
use super::state::{Aside, Past, Step, StepPhase};
use crate::addr::StepAddr;
use crate::expr::{Binding, Data, InputView, RunView, Scope, ScopeData};
use crate::journal::record::Entry;
use crate::plan::model::{MergeStrategy, Node, Plan, Work};
use crate::report::event::{RunEventKind, StepState};
use crate::report::status::EndSignal;
use claw_kernel::clock::Timestamp;
use indexmap::IndexMap;
use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// What a schedule is told about its surroundings.
#[derive(Clone, Debug)]
pub struct ScheduleContext {
    /// `inputs`.
    pub inputs: Arc<IndexMap<String, InputView>>,
    /// `run`.
    pub run: Arc<RunView>,
    /// For the fences of this run's prompts.
    pub nonce: String,
    /// Seed of the jitter.
    pub seed: u64,
    /// Somebody can be asked: at this terminal, or from another process.
    pub can_ask: bool,
}

/// Whether the run goes on.
#[derive(Debug, PartialEq)]
pub(super) enum Going {
    /// It does.
    On,
    /// Nothing new starts: somebody stopped it.
    Cancelling { signal: Option<EndSignal> },
    /// Nothing new starts: it waits for time or a person.
    Pausing {
        reason: String,
        until: Option<Timestamp>,
        /// The journal says so already.
        on_record: bool,
    },
    /// Nothing new starts: a limit is reached.
    Stopping { reason: String },
    /// `End` was ordered.
    Over,
}

/// The schedule of one run.
pub struct Schedule {
    pub(super) plan: Arc<Plan>,
    pub(super) context: ScheduleContext,
    pub(super) past: Box<dyn Past>,
    /// The run's own graph first.
    pub(super) frames: Vec<Frame>,
    pub(super) steps: Vec<Step>,
    pub(super) gate: Gate,
    pub(super) locks: Locks,
    /// Nodes whose needs are final.
    pub(super) due: VecDeque<Place>,
    /// Nodes of which a step became final.
    pub(super) touched: VecDeque<Place>,
    /// Bodies of which all nodes are final.
    pub(super) closed: VecDeque<FrameIx>,
    /// Loops whose next iteration may begin, with what it is handed.
    pub(super) again: VecDeque<(StepIx, Vec<(String, Data)>)>,
    /// Steps whose lock was let go by another.
    pub(super) freed: VecDeque<StepIx>,
    pub(super) going: Going,
    pub(super) orders: Vec<Command>,
    pub(super) dice: fastrand::Rng,
    /// Facts that will come by themselves: the ends of waits, items that are being read.
    pub(super) expected: usize,
    /// The steps of isolated nodes, whose branches a merge may ask for.
    pub(super) branches: HashMap<Place, Vec<StepIx>>,
    /// Steps that wait for an answer.
    pub(super) asking: Vec<StepIx>,
    /// Agents whose slots others have while they wait for their children.
    pub(super) lent: usize,
    /// Nodes of bodies that became final without a step.
    pub(super) aside: Vec<Aside>,
    /// An optional node of a body failed.
    pub(super) partial: bool,
    /// A limit stopped the rest, and final nodes no longer wait for it.
    pub(super) finals_freed: bool,
}

impl Schedule {
    /// A schedule that has not begun.
    pub fn new(plan: Arc<Plan>, context: ScheduleContext, past: Box<dyn Past>) -> Self {
        let nodes = Frame::nodes_of(&plan, plan.top);
        let root = Frame {
            owner: None,
            body: plan.top,
            open: nodes.len(),
            nodes,
            views: Views::default(),
            bindings: Arc::new([]),
            index: None,
            inputs: Arc::clone(&context.inputs),
            prefix: None,
            context: None,
            level: LevelIx::default(),
            called_off: false,
        };
        Self {
            gate: Gate::new(&plan.limits, if plan.host.is_some() { 0 } else { past.agents() }),
            dice: fastrand::Rng::with_seed(context.seed),
            frames: vec![root],
            steps: Vec::new(),
            locks: Locks::default(),
            due: VecDeque::new(),
            touched: VecDeque::new(),
            closed: VecDeque::new(),
            again: VecDeque::new(),
            freed: VecDeque::new(),
            going: Going::On,
            orders: Vec::new(),
            expected: 0,
            branches: HashMap::new(),
            asking: Vec::new(),
            lent: 0,
            aside: Vec::new(),
            partial: false,
            finals_freed: false,
            plan,
            context,
            past,
        }
    }

    /// Takes a fact; gives the orders that follow from it.
    pub fn on(&mut self, event: Event) -> Vec<Command> {
        match event {
            Event::Begin => self.begin(),
            Event::ItemsRead { place, items } => self.items_read(place, items),
            Event::Finished { step, attempt, outcome } => self.finished(step, attempt, outcome),
            Event::Woke { step, attempt } => self.woke(step, attempt),
            Event::Answered { step, answer } => self.answered(&step, answer),
            Event::GateExpired { step } => self.gate_expired(step),
            Event::Warmed { step } => self.warmed(step),
            Event::GroupExpired { step } => self.group_expired(step),
            Event::LockBusy { step, name } => self.lock_busy(step, name),
            Event::LocksHeld { step, result } => self.locks_held(step, result),
            Event::Spawn { parent, attempt, call, order } => self.spawn(parent, attempt, call, order),
            Event::Busy { step, attempt, is_busy } => self.busy(step, attempt, is_busy),
            Event::Steered { step, text } => self.steered(step, text),
            Event::CallOff { parent, call } => self.call_off_child(parent, call),
            Event::StopAgent { step } => self.stop_agent(&step),
            Event::Delivered { number } => self.delivered(number),
            Event::UserSpoke => self.user_spoke(),
            Event::Left => self.leave_session(),
            Event::BudgetSpent { reason } => self.stop_for(reason),
            Event::Pause { reason, until } => self.pause(reason, until),
            Event::Cancel { signal } => self.cancel(signal),
        }
        self.drive();
        std::mem::take(&mut self.orders)
    }

    fn begin(&mut self) {
        if let Some(host) = self.plan.host {
            return self.begin_session(host);
        }
        let roots = self.frame(FrameIx::ROOT).roots();
        let roots: Vec<Place> = roots.map(|node| Place { frame: FrameIx::ROOT, node }).collect();
        self.due.extend(roots);
    }

    /// Works off what is due until nothing follows by itself.
    fn drive(&mut self) {
        if self.going == Going::Over {
            return;
        }
        loop {
            self.drain();
            let open = self.frame(FrameIx::ROOT).open;
            if !self.gate.is_quiet() || self.lent > 0 {
                return;
            }
            if self.free_final_nodes() {
                continue;
            }
            let waits = self.expected == 0 && self.going == Going::On && open > 0;
            if waits && !self.asking.is_empty() && !self.context.can_ask {
                self.pause_for_answers();
            }
            if self.going != Going::On || open == 0 {
                self.end();
            }
            return;
        }
    }

    fn drain(&mut self) {
        loop {
            if let Some(place) = self.touched.pop_front() {
                self.step_closed(place);
            } else if let Some(frame) = self.closed.pop_front() {
                self.frame_closed(frame);
            } else if let Some((step, carried)) = self.again.pop_front() {
                if self.may_go_on(step) {
                    self.begin_iteration(step, carried);
                } else if self.steps[step.at()].called_off {
                    self.close_owner_cancelled(step);
                }
            } else if let Some(place) = self.next_due() {
                self.resolve(place);
            } else if let Some(step) = self.freed.pop_front() {
                self.try_locks(step);
            } else if let Some(step) = self.gate.admit(Lane::Agents) {
                self.admit(step, Lane::Agents);
            } else if let Some(step) = self.gate.admit(Lane::Commands) {
                self.admit(step, Lane::Commands);
            } else {
                return;
            }
        }
    }

    /// The next node that may be resolved; those that may not start any more are left as they are.
    fn next_due(&mut self) -> Option<Place> {
        loop {
            let place = self.due.pop_front()?;
            if self.may_start(place) || self.frame(place.frame).called_off {
                return Some(place);
            }
        }
    }

    fn woke(&mut self, step: StepIx, attempt: u32) {
        self.expected = self.expected.saturating_sub(1);
        let current = &self.steps[step.at()];
        if current.phase == StepPhase::Backoff && current.attempt + 1 == attempt && self.may_go_on(step) {
            self.queue(step);
        } else {
            self.leave_child(step);
        }
    }

    /// A person said something to an agent.
    fn steered(&mut self, addr: StepAddr, text: String) {
        let runs =
            |step: &Step| step.phase == StepPhase::Running && step.agent.is_some() && step.addr == addr;
        let Some(at) = self.steps.iter().position(runs) else {
            return self.refuse(format!("no agent of {addr} is running"));
        };
        let earlier = self.past.said(&addr).len();
        let step = &mut self.steps[at];
        step.said.push(text.clone());
        let number = u32::try_from(earlier + step.said.len()).unwrap_or(u32::MAX);
        let attempt = Some(step.attempt);
        self.record(Some(addr), attempt, Entry::Steered { number, text: text.clone() });
        self.orders.push(Command::Steer { step: step_ix(at), text });
    }

    pub(super) fn refuse(&mut self, reason: String) {
        self.orders.push(Command::Refuse { reason });
    }

    /// Hands a step to the gate.
    pub(super) fn queue(&mut self, ix: StepIx) {
        let plan = Arc::clone(&self.plan);
        let planned = &plan.nodes[self.steps[ix.at()].node.at()];
        let rank = self.rank(ix, self.depth_of(ix));
        let position = self.gate.queue(lane_of(planned), rank);
        let step = &mut self.steps[ix.at()];
        step.phase = StepPhase::Queued;
        let addr = step.addr.clone();
        self.tell(addr, None, StepState::Ready { position });
    }

    pub(super) fn rank(&self, ix: StepIx, kin: u32) -> Rank {
        let step = &self.steps[ix.at()];
        let planned = &self.plan.nodes[step.node.at()];
        Rank {
            kin,
            priority: planned.priority,
            critical_path: planned.critical_path,
            order: Reverse((step.node.0, ix.0)),
            step: ix,
            level: self.frame(step.frame).level,
        }
    }

    pub(super) fn tell(&mut self, addr: StepAddr, attempt: Option<u32>, state: StepState) {
        self.orders.push(Command::Tell { step: Some(addr), attempt, kind: RunEventKind::StepState(state) });
    }

    pub(super) fn note(&mut self, step: Option<StepAddr>, text: String) {
        self.orders.push(Command::Tell { step, attempt: None, kind: RunEventKind::Note(text) });
    }

    pub(super) fn record(&mut self, step: Option<StepAddr>, attempt: Option<u32>, entry: Entry) {
        self.orders.push(Command::Record { step, attempt, entry: Box::new(entry) });
    }

    /// What an evaluation in a frame sees, beside names that are bound for it alone.
    pub(super) fn scope(&self, frame: FrameIx, bindings: Vec<Binding>, index: Option<usize>) -> Scope {
        let around = self.frame(frame);
        let bindings = if bindings.is_empty() { around.bindings.to_vec() } else { bindings };
        self.scope_with(frame, Arc::clone(&around.views), bindings, index.or(around.index))
    }

    /// The same over other views, with all its bindings given.
    pub(super) fn scope_with(
        &self,
        frame: FrameIx,
        nodes: Views,
        bindings: Vec<Binding>,
        index: Option<usize>,
    ) -> Scope {
        let inputs = Arc::clone(&self.frame(frame).inputs);
        Scope::new(ScopeData { inputs, nodes, bindings, index, run: Arc::clone(&self.context.run) })
    }
}

/// The slots that a node's steps take.
pub(super) fn lane_of(node: &Node) -> Lane {
    match &node.work {
        Work::Command(_) | Work::Set { .. } | Work::Group(_) | Work::Gate(_) => Lane::Commands,
        Work::Agent(_) => Lane::Agents,
        Work::Merge(merge) => match merge.strategy {
            MergeStrategy::Agent { .. } => Lane::Agents,
            MergeStrategy::List
            | MergeStrategy::Concat
            | MergeStrategy::Dedupe { .. }
            | MergeStrategy::Git(_) => Lane::Commands,
        },
    }
}

pub(super) fn step_ix(at: usize) -> StepIx {
    StepIx(u32::try_from(at).unwrap_or(u32::MAX))
}
