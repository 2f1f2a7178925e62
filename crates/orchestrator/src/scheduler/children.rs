//! Agents that agents start: through the same gate as all others, and how their parents wait for them.
//!
//! An agent that waits for its children alone gives its slot to others and takes one again before it hears the last of
//! them, so that no more agents work at once than the limit says, and none of them waits for itself.

use super::core::{Going, Schedule, lane_of, step_ix};
use super::event::{
    ChildEnd, ChildOrder, Command, Folder, Launch, Outcome, Prepared, PreparedAgent, PreparedChild, StepIx,
};
use super::gate::Lane;
use super::state::{Step, StepPhase, StepRole};
use crate::addr::{AddrPart, StepAddr};
use crate::journal::record::{EndState, Entry, SpawnedOrder};
use crate::plan::model::{Base, Work};
use claw_agents::effects::CallNo;
use claw_agents::outcome::FailureClass;
use claw_kernel::digest::Digest;
use claw_kernel::ids::AgentId;
use claw_providers::usage::Usage;
use std::sync::Arc;

/// Changes when the meaning of a child's key does.
const KEY_VERSION: &str = "claw child key 1";

/// What a step is that another agent started.
#[derive(Debug)]
pub(super) struct Child {
    pub parent: StepIx,
    pub order: ChildOrder,
    /// 1 for the child of a node's agent.
    pub depth: u32,
}

/// Who has the slot of an agent that waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Slot {
    /// It has it itself.
    #[default]
    Held,
    /// Others may have it.
    Lent,
    /// It stands in the queue for one.
    Wanted,
}

/// The agents that an agent started.
#[derive(Debug, Default)]
pub(super) struct Family {
    /// In order, over all attempts of this take.
    children: Vec<StepIx>,
    /// The last number given, over all takes.
    made: u32,
    /// Calls of this take and their children.
    calls: Vec<(CallNo, StepIx)>,
    /// Calls that wait.
    open: Vec<(CallNo, StepIx)>,
    /// Ends that are told when it has a slot again.
    ready: Vec<(CallNo, ChildEnd)>,
    slot: Slot,
    /// Calls run that are no children.
    is_busy: bool,
    /// Its attempt is over, and children of it still run.
    ending: Option<Outcome>,
}

impl Schedule {
    /// A model wants a child: refused at a limit, else the child of that call, a new one or that of an attempt that this
    /// one goes on from.
    pub(super) fn spawn(&mut self, parent: StepIx, attempt: u32, call: CallNo, order: ChildOrder) {
        let step = &self.steps[parent.at()];
        if step.phase != StepPhase::Running || step.attempt != attempt {
            return;
        }
        let key = child_key(&order);
        let child = match self.earlier_child(parent, call, &key) {
            Some(addr) => self.child_at(parent, addr, order),
            None => {
                if let Some(why) = self.no_more_children(parent) {
                    self.note(self.on_record(parent), why.clone());
                    return self.deliver(parent, call, ChildEnd::Failed(why));
                }
                let addr = self.next_child(parent);
                self.child_at(parent, addr, order)
            }
        };
        self.family(parent).calls.push((call, child));
        self.record_spawned(parent, attempt, call, child);
        let background = self.steps[child.at()].child.as_ref().is_some_and(|child| child.order.background);
        if background {
            self.begin_child(child, key);
            let waits = self.steps[child.at()].phase == StepPhase::Queued;
            let waiting = if waits { self.gate.waiting(Lane::Agents) } else { 0 };
            let step = self.steps[child.at()].addr.clone();
            return self.deliver(parent, call, ChildEnd::Begun { step, waiting });
        }
        self.family(parent).open.push((call, child));
        self.begin_child(child, key);
        self.lend(parent);
    }

    fn record_spawned(&mut self, parent: StepIx, attempt: u32, call: CallNo, child: StepIx) {
        let (of, call) = (self.on_record(parent), call.to_string());
        let step = &self.steps[child.at()];
        let order = step.child.as_ref().filter(|_| self.is_host(parent)).map(|child| {
            let order = &child.order;
            Box::new(SpawnedOrder {
                id: order.id.clone().unwrap_or_else(AgentId::fresh),
                agent: order.definition.name.clone(),
                prompt: order.prompt.clone(),
                label: order.label.clone(),
                model: order.model.clone(),
                background: order.background,
                isolated: order.isolated,
            })
        });
        let entry = Entry::Spawned { child: step.addr.clone(), call, order };
        let attempt = of.is_some().then_some(attempt);
        self.record(of, attempt, entry);
    }

    /// As records name a parent: the conversation of a session stands for the run.
    fn on_record(&self, parent: StepIx) -> Option<StepAddr> {
        (!self.is_host(parent)).then(|| self.steps[parent.at()].addr.clone())
    }

    /// The child that this call waits for.
    pub(super) fn waits_for(&self, parent: StepIx, call: CallNo) -> Option<StepIx> {
        let family = self.steps.get(parent.at())?.family.as_ref()?;
        family.open.iter().find(|(of, _)| *of == call).map(|(_, child)| *child)
    }

    /// Why this agent cannot start another one.
    fn no_more_children(&self, parent: StepIx) -> Option<String> {
        if !self.may_go_on(parent) {
            return Some("not started: the run is coming to its end".to_owned());
        }
        let most = self.most_depth(parent);
        if self.depth_of(parent) as usize >= most {
            return Some(format!(
                "not started: limits.depth = {most} is reached; agents at this depth start no others, so do the task yourself"
            ));
        }
        let level = self.frame(self.steps[parent.at()].frame).level;
        (!self.gate.has_agents_left(level)).then(|| self.agents_reached())
    }

    fn agents_reached(&self) -> String {
        format!("not started: limits.agents = {} is reached in this run", self.plan.limits.agents)
    }

    /// The smallest `limits.depth` of the files around a step.
    fn most_depth(&self, step: StepIx) -> usize {
        let mut most = self.plan.limits.depth as usize;
        let mut at = self.frame(self.steps[step.at()].frame).owner;
        while let Some(owner) = at {
            let group = &self.steps[owner.at()];
            if let Work::Group(work) = &self.plan.nodes[group.node.at()].work
                && let Some(nested) = &work.nested
            {
                most = most.min(nested.limits.depth as usize);
            }
            at = self.frame(group.frame).owner;
        }
        most
    }

    /// 0 for a node's own agent.
    pub(super) fn depth_of(&self, step: StepIx) -> u32 {
        self.steps[step.at()].child.as_ref().map_or(0, |child| child.depth)
    }

    /// The child that this call started in an attempt that the present one goes on from.
    fn earlier_child(&self, parent: StepIx, call: CallNo, key: &Digest) -> Option<StepAddr> {
        let step = &self.steps[parent.at()];
        step.goes_on_from?;
        let family = step.family.as_ref();
        let known = family.and_then(|family| family.calls.iter().rev().find(|(of, _)| *of == call));
        if let Some((_, child)) = known {
            let child = &self.steps[child.at()];
            return (child.key.as_ref() == Some(key)).then(|| child.addr.clone());
        }
        let name = call.to_string();
        let spawned = self.past.spawned(&step.addr);
        spawned.into_iter().rev().find(|(of, _)| *of == name).map(|(_, child)| child)
    }

    fn next_child(&mut self, parent: StepIx) -> StepAddr {
        let family = self.family(parent);
        family.made += 1;
        let part = AddrPart::Child(family.made);
        self.steps[parent.at()].addr.below(part)
    }

    fn family(&mut self, parent: StepIx) -> &mut Family {
        let spawned = match self.steps[parent.at()].family {
            Some(_) => Vec::new(),
            None => self.past.spawned(&self.steps[parent.at()].addr),
        };
        self.steps[parent.at()].family.get_or_insert_with(|| {
            let numbers = spawned.iter().filter_map(|(_, addr)| match addr.parts().last() {
                Some(AddrPart::Child(k)) => Some(*k),
                Some(AddrPart::Node { .. }) | None => None,
            });
            Box::new(Family { made: numbers.max().unwrap_or(0), ..Family::default() })
        })
    }

    /// The step of a child, made where this take has none of that address.
    pub(super) fn child_at(&mut self, parent: StepIx, addr: StepAddr, order: ChildOrder) -> StepIx {
        let known = self.family(parent).children.clone();
        let known = known.into_iter().find(|child| self.steps[child.at()].addr == addr);
        known.unwrap_or_else(|| {
            let depth = self.depth_of(parent) + 1;
            let child = self.add_step(self.place_of(parent), addr, None, StepRole::Work);
            self.steps[child.at()].child = Some(Box::new(Child { parent, order, depth }));
            self.family(parent).children.push(child);
            child
        })
    }

    /// What it gave once stands for it; what it began goes on; else it starts.
    pub(super) fn begin_child(&mut self, child: StepIx, key: Digest) {
        let step = &mut self.steps[child.at()];
        match step.phase {
            StepPhase::Held => {}
            StepPhase::Final(EndState::Succeeded | EndState::Cached) => return self.child_closed(child),
            StepPhase::Final(_) => {
                // Its parent was stopped and goes on: so does it.
                step.called_off = false;
                step.goes_on_from = (step.attempt > 0).then_some(step.attempt);
                return self.queue(child);
            }
            StepPhase::Queued
            | StepPhase::Running
            | StepPhase::Backoff
            | StepPhase::Locking
            | StepPhase::Asking
            | StepPhase::Open => return,
        }
        step.key = Some(key);
        let addr = step.addr.clone();
        if let Some(success) = self.past.success(&addr, &key) {
            return self.cached(child, success);
        }
        if let Some(earlier) = self.past.transcript(&addr, &key) {
            self.steps[child.at()].goes_on_from = Some(earlier.attempt);
        }
        self.queue(child);
    }

    pub(super) fn child_launch(&self, ix: StepIx, child: &Child) -> Launch {
        let step = &self.steps[ix.at()];
        let (mut line, mut root) = (vec![Arc::clone(&child.order.definition)], child.parent);
        while let Some(above) = &self.steps[root.at()].child {
            line.push(Arc::clone(&above.order.definition));
            root = above.parent;
        }
        line.reverse();
        let agent = PreparedAgent {
            id: child.order.id.clone().unwrap_or_else(AgentId::fresh),
            prompt: child.order.prompt.clone(),
            system_append: None,
            readable: Vec::new(),
            attach: Vec::new(),
            goes_on_from: step.goes_on_from,
            fault: step.fault.clone(),
            child: Some(PreparedChild {
                line,
                model: child.order.model.clone(),
                parent: self.steps[child.parent.at()].agent.clone(),
            }),
        };
        let said = self.past.said(&step.addr).into_iter().chain(step.said.iter().cloned()).collect();
        Launch {
            warms: false,
            step: ix,
            node: step.node,
            addr: step.addr.clone(),
            attempt: step.attempt + 1,
            label: child.order.label.clone(),
            key: step.key.unwrap_or_else(|| child_key(&child.order)),
            work: Prepared::Agent(agent),
            write: None,
            artifacts: Vec::new(),
            folder: self.child_folder(step, child, root),
            said,
        }
    }

    /// Its own, where it was asked for; else that of the agents above it.
    fn child_folder(&self, step: &Step, child: &Child, root: StepIx) -> Option<Folder> {
        if child.order.isolated {
            return Some(Folder {
                owner: step.addr.clone(),
                attempt: step.attempt + 1,
                base: Base::ParentHead,
                goes_on_from: step.goes_on_from,
            });
        }
        if self.is_host(root) { None } else { self.folder(root, self.steps[root.at()].attempt) }
    }

    /// A child is final: the call that waits for it is told, the last one when its parent has a slot again.
    pub(super) fn child_closed(&mut self, child: StepIx) {
        let Some(parent) = self.steps[child.at()].child.as_ref().map(|child| child.parent) else { return };
        self.announce(child);
        let end = self.child_end(child);
        let family = self.family(parent);
        let (told, open): (Vec<_>, Vec<_>) = family.open.drain(..).partition(|(_, of)| *of == child);
        family.open = open;
        let is_last = family.open.is_empty();
        let slot = family.slot;
        for (call, _) in told {
            if is_last && slot != Slot::Held {
                self.family(parent).ready.push((call, end.clone()));
            } else {
                self.deliver(parent, call, end.clone());
            }
        }
        if is_last && slot == Slot::Lent {
            self.family(parent).slot = Slot::Wanted;
            let rank = self.rank(parent, u32::MAX);
            self.gate.queue(Lane::Agents, rank);
        }
    }

    /// An attempt of a child is over: that of its parent may have waited for it.
    pub(super) fn let_parent_end(&mut self, child: StepIx) {
        let Some(parent) = self.steps[child.at()].child.as_ref().map(|child| child.parent) else { return };
        if let Some(outcome) = self.family(parent).ending.take() {
            self.end_attempt(parent, outcome);
        }
    }

    pub(super) fn child_end(&self, child: StepIx) -> ChildEnd {
        let step = &self.steps[child.at()];
        match (step.phase.ended(), &step.output) {
            (Some(EndState::Succeeded | EndState::Cached), Some(output)) => ChildEnd::Done {
                step: step.addr.clone(),
                value: Arc::clone(output.json()),
                file: step.file.clone(),
                usage: step.usage.plus(&step.before).plus(&self.spent_on_children(child)),
            },
            (ended, _) => {
                let state = ended.unwrap_or(EndState::Interrupted).as_str();
                let why = step.error.as_deref().unwrap_or("no more is known");
                ChildEnd::Failed(format!("{} {state}: {why}", step.addr))
            }
        }
    }

    fn deliver(&mut self, parent: StepIx, call: CallNo, end: ChildEnd) {
        self.orders.push(Command::Deliver { parent, call, end: Box::new(end) });
    }

    /// Spent in this take on what a step's agents started.
    pub(super) fn spent_on_children(&self, step: StepIx) -> Usage {
        let children = self.steps[step.at()].family.iter().flat_map(|family| &family.children);
        children.fold(Usage::NOTHING, |sum, child| {
            let usage = self.steps[child.at()].usage;
            sum.plus(&usage).plus(&self.spent_on_children(*child))
        })
    }

    /// Other calls of an agent began, or the last of them ended.
    pub(super) fn busy(&mut self, step: StepIx, attempt: u32, is_busy: bool) {
        if self.steps[step.at()].attempt == attempt && self.steps[step.at()].phase == StepPhase::Running {
            self.family(step).is_busy = is_busy;
            self.lend(step);
        }
    }

    /// An agent that does nothing but wait for its children gives its slot to others.
    fn lend(&mut self, parent: StepIx) {
        if self.is_host(parent) {
            // It has none.
            return;
        }
        let level = self.frame(self.steps[parent.at()].frame).level;
        let family = self.family(parent);
        if family.slot == Slot::Held && !family.is_busy && !family.open.is_empty() {
            family.slot = Slot::Lent;
            self.lent += 1;
            self.gate.release(Lane::Agents, level);
        }
    }

    /// True: the slot is for an agent that has heard of all its children. It works on.
    pub(super) fn takes_its_slot_again(&mut self, ix: StepIx) -> bool {
        let step = &mut self.steps[ix.at()];
        let Some(family) = step.family.as_mut().filter(|family| family.slot == Slot::Wanted) else {
            return false;
        };
        if step.phase != StepPhase::Running {
            return false;
        }
        family.slot = Slot::Held;
        self.lent -= 1;
        for (call, end) in std::mem::take(&mut self.family(ix).ready) {
            self.deliver(ix, call, end);
        }
        self.lend(ix);
        true
    }

    /// An attempt is over: its slot is free, and its children end with it. `None`: some of them still run, it is looked
    /// at again when they have ended.
    pub(super) fn when_children_are_over(&mut self, ix: StepIx, outcome: Outcome) -> Option<Outcome> {
        let children = match self.steps[ix.at()].family.as_mut() {
            Some(family) => {
                family.open.clear();
                family.ready.clear();
                family.children.clone()
            }
            None => return Some(outcome),
        };
        let goes_on_later = matches!(self.going, Going::Pausing { .. }) && !self.steps[ix.at()].called_off;
        for child in &children {
            let step = &self.steps[child.at()];
            match step.phase {
                StepPhase::Final(_) => {}
                StepPhase::Running if goes_on_later => self.orders.push(Command::Stop(*child)),
                // They go on when their parent does.
                StepPhase::Held | StepPhase::Queued | StepPhase::Backoff if goes_on_later => {}
                StepPhase::Held
                | StepPhase::Queued
                | StepPhase::Running
                | StepPhase::Backoff
                | StepPhase::Locking
                | StepPhase::Asking
                | StepPhase::Open => self.call_off_step(*child),
            }
        }
        if children.iter().any(|child| self.steps[child.at()].phase == StepPhase::Running) {
            self.family(ix).ending = Some(outcome);
            return None;
        }
        Some(outcome)
    }

    pub(super) fn give_slot_back(&mut self, ix: StepIx) {
        let step = &mut self.steps[ix.at()];
        let lane = lane_of(&self.plan.nodes[step.node.at()]);
        let level = self.frames[step.frame.at()].level;
        let Some(family) = step.family.as_mut() else { return self.gate.release(lane, level) };
        if std::mem::replace(&mut family.slot, Slot::Held) == Slot::Held {
            self.gate.release(lane, level);
        } else {
            self.lent -= 1;
        }
        family.is_busy = false;
    }

    /// One agent more than the run may start: this child is not, its parent goes on.
    pub(super) fn too_many_agents(&mut self, ix: StepIx) {
        let why = self.agents_reached();
        self.fail_step(ix, FailureClass::Limit, why);
    }

    /// Its next attempt may not begin. A child is over then: its parent waits for it.
    pub(super) fn leave_child(&mut self, ix: StepIx) {
        let step = &self.steps[ix.at()];
        if step.child.is_some()
            && step.phase == StepPhase::Backoff
            && matches!(self.going, Going::Stopping { .. })
        {
            self.drop_step(ix);
        }
    }

    /// Nothing new starts: agents that wait for a child that is not running stop, and go on with it later.
    pub(super) fn pause_families(&mut self) {
        let idle = |child: &StepIx| {
            matches!(self.steps[child.at()].phase, StepPhase::Queued | StepPhase::Backoff | StepPhase::Held)
        };
        let mut stopped = Vec::new();
        for (at, step) in self.steps.iter().enumerate() {
            let Some(family) = &step.family else { continue };
            let waits = family.open.iter().any(|(_, child)| idle(child)) || family.slot == Slot::Wanted;
            if step.phase == StepPhase::Running && waits {
                stopped.push(step_ix(at));
            }
        }
        self.orders.extend(stopped.into_iter().map(Command::Stop));
    }

    /// Only final nodes start from here on: children that have not begun never will, their parents are told and finish.
    pub(super) fn stop_families(&mut self) {
        for ix in (0..self.steps.len()).map(step_ix) {
            let step = &self.steps[ix.at()];
            let waits = step.child.is_some() && matches!(step.phase, StepPhase::Queued | StepPhase::Backoff);
            if waits && !self.may_go_on(ix) {
                self.drop_step(ix);
            }
        }
        // The queue was emptied: those that stood in it for their slot stand there again.
        for ix in (0..self.steps.len()).map(step_ix) {
            let wants = self.steps[ix.at()].family.as_ref().is_some_and(|family| family.slot == Slot::Wanted);
            if wants && self.steps[ix.at()].phase == StepPhase::Running {
                let rank = self.rank(ix, u32::MAX);
                self.gate.queue(Lane::Agents, rank);
            }
        }
    }
}

/// What a child is made for.
pub(super) fn child_key(order: &ChildOrder) -> Digest {
    let definition = &order.definition;
    let model = order.model.as_deref().unwrap_or_default();
    Digest::of_parts([
        KEY_VERSION.as_bytes().to_vec(),
        format!("{definition:?}").into_bytes(),
        order.prompt.as_bytes().to_vec(),
        model.as_bytes().to_vec(),
    ])
}
