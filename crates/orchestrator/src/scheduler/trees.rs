//! Merges: computed at once, or by agents in levels where the input is larger than one window.

use super::core::Schedule;
use super::event::StepIx;
use super::frame::Place;
use super::settle::plain_end;
use super::state::{NodePhase, StepRole};
use crate::addr::AddrPart;
use crate::expr::Data;
use crate::journal::record::{EndState, Entry};
use crate::merge;
use crate::plan::model::{MergeStrategy, MergeWork, NodeIx, Work};
use claw_agents::outcome::FailureClass;
use serde_json::Value;
use std::sync::Arc;

/// A merge by agents whose input needs several windows: the present level.
#[derive(Debug)]
pub(super) struct Tree {
    /// The step that will merge the last level.
    root: StepIx,
    /// One step for each window, in order.
    level: Vec<StepIx>,
    /// Of these not final.
    open: usize,
    /// Children made so far: the next is `+<made + 1>`.
    made: u32,
}

impl Schedule {
    /// A merge whose inputs are final.
    pub(super) fn begin_merge(&mut self, step: StepIx, work: &MergeWork) {
        let scope = self.step_scope(step);
        match &work.strategy {
            MergeStrategy::Agent { window, .. } => match merge::inputs(work, &scope) {
                Ok(inputs) => self.begin_level(step, inputs, *window, 0),
                Err(error) => self.fail_step(step, FailureClass::Expr, format!("from: {error}")),
            },
            MergeStrategy::Git(_) => {
                let plan = Arc::clone(&self.plan);
                self.begin_outside(step, &plan.nodes[self.steps[step.at()].node.at()]);
            }
            MergeStrategy::List | MergeStrategy::Concat | MergeStrategy::Dedupe { .. } => {
                match merge::compute(work, &scope) {
                    // Writing a file is an effect: it goes through the gate and the journal like a command.
                    Ok(value) if work.write.is_some() => {
                        let plan = Arc::clone(&self.plan);
                        let node = &plan.nodes[self.steps[step.at()].node.at()];
                        self.steps[step.at()].role = StepRole::Value(Data::new(value));
                        self.begin_outside(step, node);
                    }
                    Ok(value) => self.computed(step, value),
                    Err(error) => self.fail_step(step, FailureClass::Expr, error.to_string()),
                }
            }
        }
    }

    /// One level: a single window is the root's own work, several are children of it.
    fn begin_level(&mut self, root: StepIx, inputs: Vec<Value>, window: usize, made: u32) {
        let plan = Arc::clone(&self.plan);
        let place = self.place_of(root);
        let ix = place.node;
        let sizes: Vec<usize> = inputs.iter().map(merge::size_of).collect();
        let windows = merge::windows(&sizes, window);
        if windows.len() <= 1 {
            let items = inputs;
            self.steps[root.at()].role = StepRole::Window(Data::new(Value::Array(items)));
            return self.begin_outside(root, &plan.nodes[ix.at()]);
        }
        let mut tree = Tree { root, level: Vec::new(), open: windows.len(), made };
        for window in windows {
            let items = inputs[window].to_vec();
            tree.made += 1;
            let addr = self.steps[root.at()].addr.below(AddrPart::Child(tree.made));
            let item = self.steps[root.at()].item.clone();
            let role = StepRole::Window(Data::new(Value::Array(items)));
            let step = self.add_step(place, addr, item, role);
            self.steps[step.at()].context = self.steps[root.at()].context;
            tree.level.push(step);
        }
        let level = tree.level.clone();
        if let NodePhase::Active(active) = &mut self.node_mut(place).phase {
            active.trees.push(tree);
        }
        for step in level {
            self.begin_outside(step, &plan.nodes[ix.at()]);
        }
    }

    /// A window of a tree is final. True: it was one.
    pub(super) fn window_ended(&mut self, place: Place, step: StepIx, state: EndState) -> bool {
        let NodePhase::Active(active) = &mut self.node_mut(place).phase else { return false };
        let Some(at) = active.trees.iter().position(|tree| tree.level.contains(&step)) else { return false };
        active.trees[at].open -= 1;
        if active.trees[at].open > 0 {
            return true;
        }
        let Tree { root, level, made, .. } = active.trees.swap_remove(at);
        let outputs: Option<Vec<Value>> = level
            .iter()
            .map(|step| self.steps[step.at()].output.as_ref().map(|data| data.json().as_ref().clone()))
            .collect();
        match (outputs, self.window_of(place.node)) {
            (Some(outputs), Some(window)) => self.begin_level(root, outputs, window, made),
            (None, _) | (_, None) => {
                if state == EndState::Cancelled {
                    self.cancel_root(root);
                    return true;
                }
                let failed = level.iter().filter(|step| self.steps[step.at()].output.is_none()).count();
                let class = self.steps[step.at()].class.unwrap_or(FailureClass::Tool);
                self.fail_step(root, class, format!("{failed} of {} parts of the merge failed", level.len()));
            }
        }
        true
    }

    /// The parts of a merge were cancelled: so is the merge.
    pub(super) fn cancel_root(&mut self, ix: StepIx) {
        let step = &mut self.steps[ix.at()];
        step.error = Some("cancelled".to_owned());
        step.class = Some(FailureClass::Cancelled);
        let addr = step.addr.clone();
        let ended = plain_end(EndState::Cancelled, None, Some("cancelled".to_owned()));
        self.record(Some(addr), None, Entry::Ended(ended));
        self.close_step(ix, EndState::Cancelled);
    }

    fn window_of(&self, ix: NodeIx) -> Option<usize> {
        match &self.plan.nodes[ix.at()].work {
            Work::Merge(MergeWork { strategy: MergeStrategy::Agent { window, .. }, .. }) => Some(*window),
            Work::Merge(_)
            | Work::Agent(_)
            | Work::Command(_)
            | Work::Set { .. }
            | Work::Group(_)
            | Work::Gate(_) => None,
        }
    }
}
