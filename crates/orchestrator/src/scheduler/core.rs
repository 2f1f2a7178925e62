//! The pure schedule: facts in, orders out. Holds the state; `resolve`, `prepare` and `settle` change it.
//!
//! Knows nothing of time, tasks, files or models; see `actor.rs` for those.

use super::event::{Command, Event, StepIx};
use super::gate::{Gate, Lane, Rank};
use super::state::{NodePhase, NodeRun, Past, Step, StepPhase};
use crate::addr::StepAddr;
use crate::expr::{Binding, InputView, NodeView, RunView, Scope, ScopeData};
use crate::journal::record::Entry;
use crate::plan::model::{MergeStrategy, Node, NodeIx, Plan, Work};
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
}

/// Whether the run goes on.
#[derive(Debug, PartialEq)]
pub(super) enum Going {
    /// It does.
    On,
    /// Nothing new starts: somebody stopped it.
    Cancelling { signal: Option<EndSignal> },
    /// Nothing new starts: it waits for time or a person.
    Pausing { reason: String, until: Option<Timestamp> },
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
    pub(super) nodes: Vec<NodeRun>,
    pub(super) steps: Vec<Step>,
    pub(super) views: Arc<HashMap<String, Arc<NodeView>>>,
    pub(super) gate: Gate,
    /// Nodes whose needs are final.
    pub(super) due: VecDeque<NodeIx>,
    /// Nodes of which a step became final.
    pub(super) touched: VecDeque<NodeIx>,
    pub(super) going: Going,
    pub(super) orders: Vec<Command>,
    pub(super) dice: fastrand::Rng,
    /// Nodes that are not final.
    pub(super) open: usize,
    /// Facts that will come by themselves: the ends of waits, items that are being read.
    pub(super) expected: usize,
    /// Steps that a person has to decide on.
    pub(super) doubts: Vec<StepIx>,
}

impl Schedule {
    /// A schedule that has not begun.
    pub fn new(plan: Arc<Plan>, context: ScheduleContext, past: Box<dyn Past>) -> Self {
        let nodes = plan
            .nodes
            .iter()
            .map(|node| NodeRun {
                phase: NodePhase::Waiting,
                open_needs: node.needs.len() + node.after.len(),
            })
            .collect();
        Self {
            gate: Gate::new(&plan.limits, past.agents()),
            open: plan.nodes.len(),
            dice: fastrand::Rng::with_seed(context.seed),
            nodes,
            steps: Vec::new(),
            views: Arc::new(HashMap::new()),
            due: VecDeque::new(),
            touched: VecDeque::new(),
            going: Going::On,
            orders: Vec::new(),
            expected: 0,
            doubts: Vec::new(),
            plan,
            context,
            past,
        }
    }

    /// Takes a fact; gives the orders that follow from it.
    pub fn on(&mut self, event: Event) -> Vec<Command> {
        match event {
            Event::Begin => self.begin(),
            Event::ItemsRead { node, items } => self.items_read(node, items),
            Event::Finished { step, attempt, outcome } => self.finished(step, attempt, outcome),
            Event::Woke { step, attempt } => self.woke(step, attempt),
            Event::Answered { .. }
            | Event::GateExpired { .. }
            | Event::LocksHeld { .. }
            | Event::GroupExpired { .. }
            | Event::Steered { .. }
            | Event::BudgetSpent { .. }
            | Event::Pause { .. } => {}
            Event::Cancel { signal } => self.cancel(signal),
        }
        self.drive();
        std::mem::take(&mut self.orders)
    }

    fn begin(&mut self) {
        let roots = (0..self.plan.nodes.len()).filter(|at| self.nodes[*at].open_needs == 0);
        self.due.extend(roots.map(node_ix));
    }

    /// Works off what is due until nothing follows by itself.
    fn drive(&mut self) {
        if self.going == Going::Over {
            return;
        }
        loop {
            if let Some(node) = self.touched.pop_front() {
                self.step_closed(node);
            } else if self.going != Going::On {
                break;
            } else if let Some(node) = self.due.pop_front() {
                self.resolve(node);
            } else if let Some(step) = self.gate.admit(Lane::Agents) {
                self.admit(step, Lane::Agents);
            } else if let Some(step) = self.gate.admit(Lane::Commands) {
                self.admit(step, Lane::Commands);
            } else {
                break;
            }
        }
        let waits_for_a_person = !self.doubts.is_empty() && self.expected == 0 && self.going == Going::On;
        if self.gate.is_quiet() && waits_for_a_person && self.open > 0 {
            self.pause_for_doubts();
        }
        if self.gate.is_quiet() && (self.going != Going::On || self.open == 0) {
            self.end();
        }
    }

    fn woke(&mut self, step: StepIx, attempt: u32) {
        self.expected = self.expected.saturating_sub(1);
        let current = &self.steps[step.at()];
        if current.phase == StepPhase::Backoff && current.attempt + 1 == attempt && self.going == Going::On {
            self.queue(step);
        }
    }

    fn cancel(&mut self, signal: Option<EndSignal>) {
        match self.going {
            Going::On | Going::Pausing { .. } | Going::Stopping { .. } => {
                self.going = Going::Cancelling { signal };
                self.stop_running();
            }
            Going::Cancelling { .. } | Going::Over => {}
        }
    }

    fn stop_running(&mut self) {
        self.gate.drain();
        for (at, step) in self.steps.iter().enumerate() {
            if step.phase == StepPhase::Running {
                self.orders.push(Command::Stop(step_ix(at)));
            }
        }
    }

    /// Hands a step to the gate.
    pub(super) fn queue(&mut self, ix: StepIx) {
        let node = self.steps[ix.at()].node;
        let plan = Arc::clone(&self.plan);
        let planned = &plan.nodes[node.at()];
        let rank = Rank {
            priority: planned.priority,
            critical_path: planned.critical_path,
            order: Reverse((node.0, ix.0)),
            step: ix,
        };
        let position = self.gate.queue(lane_of(planned), rank);
        let step = &mut self.steps[ix.at()];
        step.phase = StepPhase::Queued;
        let addr = step.addr.clone();
        self.tell(addr, None, StepState::Ready { position });
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

    /// What an evaluation for a node sees, without an item.
    pub(super) fn scope(&self, bindings: Vec<Binding>, index: Option<usize>) -> Scope {
        Scope::new(ScopeData {
            inputs: Arc::clone(&self.context.inputs),
            nodes: Arc::clone(&self.views),
            bindings,
            index,
            run: Arc::clone(&self.context.run),
        })
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

pub(super) fn node_ix(at: usize) -> NodeIx {
    // A plan has at most u32::MAX nodes: it is held to that when it is made.
    NodeIx(u32::try_from(at).unwrap_or(u32::MAX))
}

pub(super) fn step_ix(at: usize) -> StepIx {
    StepIx(u32::try_from(at).unwrap_or(u32::MAX))
}
