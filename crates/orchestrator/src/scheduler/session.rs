//! The agents of a session: started by a conversation that is no step of the run, in the foreground or the background.
//!
//! That conversation is the run's only node, and has one step that takes no slot and stands on no record. All else is
//! as for the children of a workflow's agents. Owns what is different; see `children.rs` for the rest.

use super::children::child_key;
use super::core::{Going, Schedule, step_ix};
use super::event::{ChildEnd, ChildNews, ChildOrder, Command, StepIx};
use super::frame::{FrameIx, Place};
use super::state::{NodeFinal, NodePhase, PastMate, Step, StepPhase, StepRole};
use crate::addr::{AddrPart, StepAddr};
use crate::journal::record::{EndState, Entry, SpawnedOrder};
use crate::plan::model::{NodeIx, Work};
use claw_agents::effects::CallNo;
use std::sync::Arc;

/// The step of the conversation itself.
pub(super) const HOST: StepIx = StepIx(0);

impl Schedule {
    /// Whether the plan is a session's.
    pub(super) fn is_session(&self) -> bool {
        self.plan.host.is_some()
    }

    /// Whether it is the conversation above all agents of a session.
    pub(super) fn is_host(&self, ix: StepIx) -> bool {
        ix == HOST && self.is_session()
    }

    /// The conversation goes on. Agents in the background that have no end on record go on too; an end that nobody was
    /// told is told again.
    pub(super) fn begin_session(&mut self, host: NodeIx) {
        let place = Place { frame: FrameIx::ROOT, node: host };
        let ix = self.add_step(place, StepAddr::session(), None, StepRole::Work);
        let before = self.past.takes();
        let step = &mut self.steps[ix.at()];
        step.phase = StepPhase::Running;
        step.attempt = before + 1;
        step.goes_on_from = (before > 0).then_some(before);
        for mate in self.past.team() {
            self.rejoin(mate);
        }
    }

    fn rejoin(&mut self, mate: PastMate) {
        let PastMate { addr, order, end, error, is_told } = mate;
        if !order.background || is_told {
            return;
        }
        let Some(order) = self.ordered(&order) else {
            let text = format!("{addr} does not go on: there is no agent `{}` any more", order.agent);
            return self.note(Some(addr), text);
        };
        let key = child_key(&order);
        let child = self.child_at(HOST, addr, order);
        match end {
            // Success is found by its content, as everywhere.
            None | Some(EndState::Succeeded | EndState::Cached | EndState::Interrupted) => {
                let begun = ChildEnd::Begun { step: self.steps[child.at()].addr.clone(), waiting: 0 };
                if let Some(news) = self.news_of(child, begun) {
                    self.orders.push(Command::Announce(Box::new(news)));
                }
                self.begin_child(child, key);
            }
            Some(state @ (EndState::Failed | EndState::Cancelled | EndState::Skipped)) => {
                let step = &mut self.steps[child.at()];
                step.phase = StepPhase::Final(state);
                step.error = error;
                self.announce(child);
            }
        }
    }

    fn ordered(&self, order: &SpawnedOrder) -> Option<ChildOrder> {
        let host = self.plan.host?;
        let Work::Agent(work) = &self.plan.nodes[host.at()].work else { return None };
        let definition = work.startable.iter().find(|agent| agent.name == order.agent)?;
        Some(ChildOrder {
            id: Some(order.id.clone()),
            definition: Arc::clone(definition),
            prompt: order.prompt.clone(),
            label: order.label.clone(),
            model: order.model.clone(),
            background: order.background,
            isolated: order.isolated,
        })
    }

    /// The end of an agent in the background: on record that it is to be told, then told.
    pub(super) fn announce(&mut self, child: StepIx) {
        let Some(news) = self.news_of(child, self.child_end(child)) else { return };
        self.record(Some(news.step.clone()), None, Entry::MergeEnqueued { number: news.number });
        self.orders.push(Command::Announce(Box::new(news)));
    }

    /// `None`: it works in nobody's background.
    fn news_of(&self, child: StepIx, end: ChildEnd) -> Option<ChildNews> {
        let step = &self.steps[child.at()];
        let kin = step.child.as_ref().filter(|kin| kin.order.background)?;
        Some(ChildNews {
            number: number_of(&step.addr)?,
            step: step.addr.clone(),
            agent: kin.order.id.clone(),
            label: kin.order.label.clone(),
            subagent_type: kin.order.definition.name.clone(),
            attempt: step.attempt,
            state: step.phase.ended().unwrap_or(EndState::Interrupted),
            end,
        })
    }

    /// The conversation has it in its log.
    pub(super) fn delivered(&mut self, number: u32) {
        self.record(None, None, Entry::MergeDelivered { number });
    }

    /// The user has said something: what the session may start counts from here.
    pub(super) fn user_spoke(&mut self) {
        self.gate.count_anew(self.plan.limits.agents);
    }

    /// Nobody waits for this agent any more: it ends.
    pub(super) fn stop_agent(&mut self, addr: &StepAddr) {
        let known = self.steps.iter().position(|step| step.addr == *addr && step.child.is_some());
        match known.map(step_ix) {
            Some(ix) if self.steps[ix.at()].phase.ended().is_none() => self.call_off_step(ix),
            Some(_) => self.refuse(format!("{addr} has ended already")),
            None => self.refuse(format!("there is no agent {addr}")),
        }
    }

    /// The call of a session's conversation that waited for this child was cancelled: so is the child.
    pub(super) fn call_off_child(&mut self, parent: StepIx, call: CallNo) {
        if let Some(child) = self.waits_for(parent, call) {
            self.call_off_step(child);
        }
    }

    /// The session is left. What still runs is stopped and goes on when the session does.
    pub(super) fn leave_session(&mut self) {
        let is_open = |step: &Step| step.child.is_some() && step.phase.ended().is_none();
        if self.steps.iter().any(is_open) {
            return self.pause("the session was left".to_owned(), None);
        }
        let Some(host) = self.plan.host.filter(|_| self.going == Going::On) else { return };
        self.steps[HOST.at()].phase = StepPhase::Final(EndState::Succeeded);
        let done = NodeFinal { state: EndState::Succeeded, cause: None, error: None, class: None };
        self.node_mut(Place { frame: FrameIx::ROOT, node: host }).phase = NodePhase::Final(done);
        self.frames[FrameIx::ROOT.at()].open = 0;
    }
}

/// The number of an agent among those that the conversation started.
fn number_of(addr: &StepAddr) -> Option<u32> {
    match addr.parts() {
        [AddrPart::Child(number)] => Some(*number),
        _ => None,
    }
}
