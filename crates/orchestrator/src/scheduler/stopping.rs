//! When a run does not go on by itself: cancelled, paused, stopped by a limit; and what still runs then.

use super::core::{Going, Schedule, step_ix};
use super::event::{Command, StepIx};
use super::frame::{FrameIx, Place};
use super::state::{NodePhase, StepPhase};
use crate::expr::{Data, NodeView};
use crate::journal::record::{EndState, Entry};
use crate::plan::model::{NodeIx, Work};
use crate::report::status::EndSignal;
use claw_agents::outcome::FailureClass;
use claw_kernel::clock::Timestamp;
use serde_json::Value;
use std::sync::Arc;

impl Schedule {
    /// Somebody wants the run to stop: everything does.
    pub(super) fn cancel(&mut self, signal: Option<EndSignal>) {
        match self.going {
            Going::On | Going::Pausing { .. } | Going::Stopping { .. } => {
                self.going = Going::Cancelling { signal };
                self.gate.drain();
                self.stop_running(|_| true);
            }
            Going::Cancelling { .. } | Going::Over => {}
        }
    }

    /// The run waits for time or a person. Agents are stopped, they go on from their transcripts; commands end.
    pub(super) fn pause(&mut self, reason: String, until: Option<Timestamp>) {
        if self.going != Going::On {
            return;
        }
        // Whoever ordered it is told when this is on record.
        self.record(None, None, Entry::Paused { reason: reason.clone(), until });
        self.going = Going::Pausing { reason, until, on_record: true };
        self.gate.drain();
        let plan = Arc::clone(&self.plan);
        self.stop_running(|node| matches!(plan.nodes[node.at()].work, Work::Agent(_)));
    }

    /// A service refuses all: nothing more is sent to it; what is under way may end.
    pub(super) fn pause_softly(&mut self, reason: String, until: Option<Timestamp>) {
        if self.going == Going::On {
            self.going = Going::Pausing { reason, until, on_record: false };
            self.gate.drain();
            self.pause_families();
        }
    }

    /// A limit or a budget is reached: only final nodes start from here on.
    pub(super) fn stop_for(&mut self, reason: String) {
        if self.going != Going::On {
            return;
        }
        self.going = Going::Stopping { reason };
        self.gate.drain();
        let queued =
            (0..self.steps.len()).map(step_ix).filter(|ix| self.steps[ix.at()].phase == StepPhase::Queued);
        let kept: Vec<StepIx> = queued.filter(|ix| self.is_final_work(self.place_of(*ix))).collect();
        for step in kept {
            self.queue(step);
        }
        self.stop_families();
    }

    /// One agent more than the run may start: nothing but final nodes starts from here on.
    pub(super) fn limit_reached(&mut self, ix: StepIx) {
        let reason = format!(
            "limits.agents = {} is reached: no further agent starts; raise it in the file and resume",
            self.plan.limits.agents
        );
        self.fail_step(ix, FailureClass::Limit, reason.clone());
        self.stop_for(reason);
    }

    fn stop_running(&mut self, which: impl Fn(NodeIx) -> bool) {
        for (at, step) in self.steps.iter().enumerate() {
            if step.phase == StepPhase::Running && which(step.node) {
                self.orders.push(Command::Stop(step_ix(at)));
            }
        }
    }

    /// Whether something new may start here.
    pub(super) fn may_start(&self, place: Place) -> bool {
        match self.going {
            Going::On => true,
            Going::Stopping { .. } => self.is_final_work(place),
            Going::Cancelling { .. } | Going::Pausing { .. } | Going::Over => false,
        }
    }

    pub(super) fn may_go_on(&self, step: StepIx) -> bool {
        !self.steps[step.at()].called_off && self.may_start(self.place_of(step))
    }

    /// A limit stopped the rest: final nodes no longer wait for it. True: one of them is due.
    pub(super) fn free_final_nodes(&mut self) -> bool {
        if !matches!(self.going, Going::Stopping { .. }) || std::mem::replace(&mut self.finals_freed, true) {
            return false;
        }
        let plan = Arc::clone(&self.plan);
        let unfinished: Vec<NodeIx> = plan
            .top
            .nodes()
            .filter(|ix| !plan.nodes[ix.at()].is_final)
            .filter(|ix| !matches!(self.frame(FrameIx::ROOT).node(*ix).phase, NodePhase::Final(_)))
            .collect();
        for ix in unfinished {
            let node = &plan.nodes[ix.at()];
            let place = Place { frame: FrameIx::ROOT, node: ix };
            let view = match self.node(place).phase {
                // What came so far is there to be told of.
                NodePhase::Active(_) => self.unfinished_view(place),
                NodePhase::Waiting | NodePhase::Reading | NodePhase::Final(_) => {
                    NodeView::unfinished(EndState::Interrupted.as_str())
                }
            };
            let root = &mut self.frames[FrameIx::ROOT.at()];
            Arc::make_mut(&mut root.views).insert(node.id.as_str().to_owned(), Arc::new(view));
            for dependent in node.dependents.iter().filter(|other| plan.nodes[other.at()].is_final) {
                self.need_met(Place { frame: FrameIx::ROOT, node: *dependent });
            }
        }
        !self.due.is_empty()
    }

    /// One entry of a node's `needs` and `after` is settled.
    pub(super) fn need_met(&mut self, place: Place) {
        let waiting = self.node_mut(place);
        waiting.open_needs = waiting.open_needs.saturating_sub(1);
        if waiting.open_needs == 0 && matches!(waiting.phase, NodePhase::Waiting) {
            self.due.push_back(place);
        }
    }
}

impl NodeView {
    /// A node that did not come to an end in this take.
    fn unfinished(status: &str) -> Self {
        Self {
            output: Data::new(Value::Null),
            outputs: None,
            status: status.into(),
            error: None,
            usage: Value::Null,
            attempts: 0,
            iterations: 0,
            file: None,
            schema: None,
        }
    }
}
