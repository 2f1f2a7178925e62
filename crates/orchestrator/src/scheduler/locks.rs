//! Named mutexes: taken all at once inside this process, then against other processes, in the order of their names.

use super::core::{Going, Schedule};
use super::event::{Command, NotLocked, StepIx};
use super::state::StepPhase;
use crate::report::event::{StepState, WaitingFor};
use claw_agents::outcome::FailureClass;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Who holds what, and who waits.
#[derive(Debug, Default)]
pub(super) struct Locks {
    held: HashMap<String, StepIx>,
    waiting: VecDeque<StepIx>,
}

impl Schedule {
    /// Takes the locks of a step. True: it has all it needs; false: it goes on when it has.
    pub(super) fn has_locks(&mut self, ix: StepIx) -> bool {
        if self.steps[ix.at()].locked {
            return true;
        }
        let names = self.locks_wanted(ix);
        if names.is_empty() {
            return true;
        }
        if let Some(name) = names.iter().find(|name| self.locks.held.contains_key(*name)).cloned() {
            self.locks.waiting.push_back(ix);
            self.steps[ix.at()].phase = StepPhase::Locking;
            self.lock_busy(ix, name);
            return false;
        }
        for name in &names {
            self.locks.held.insert(name.clone(), ix);
        }
        self.orders.push(Command::Lock { step: ix, names });
        self.expected += 1;
        self.steps[ix.at()].phase = StepPhase::Locking;
        false
    }

    /// Somebody else holds what a step needs.
    pub(super) fn lock_busy(&mut self, ix: StepIx, name: String) {
        let step = &self.steps[ix.at()];
        if step.phase == StepPhase::Locking {
            let addr = step.addr.clone();
            self.tell(addr, None, StepState::Waiting(WaitingFor::Lock { name }));
        }
    }

    /// Those of the node that no group around it holds already.
    fn locks_wanted(&self, ix: StepIx) -> Vec<String> {
        let step = &self.steps[ix.at()];
        let mut names = self.plan.nodes[step.node.at()].locks.clone();
        let mut around = step.iteration_of.or(self.frame(step.frame).owner);
        while let Some(owner) = around {
            names.retain(|name| self.locks.held.get(name) != Some(&owner));
            let owner = &self.steps[owner.at()];
            around = owner.iteration_of.or(self.frame(owner.frame).owner);
        }
        names
    }

    /// All locks of a step are held, or cannot be.
    pub(super) fn locks_held(&mut self, ix: StepIx, result: Result<(), NotLocked>) {
        self.expected = self.expected.saturating_sub(1);
        let step = &mut self.steps[ix.at()];
        if step.phase != StepPhase::Locking {
            return self.let_locks_go(ix);
        }
        step.locked = true;
        step.phase = StepPhase::Held;
        match result {
            Ok(()) if self.may_go_on(ix) => self.begin_step(ix),
            Ok(()) => self.let_locks_go(ix),
            Err(error) => self.fail_step(ix, FailureClass::Tool, error.message),
        }
    }

    /// A step is final: others may have its locks.
    pub(super) fn let_locks_go(&mut self, ix: StepIx) {
        let before = self.locks.held.len();
        self.locks.held.retain(|_, holder| *holder != ix);
        self.locks.waiting.retain(|waiting| *waiting != ix);
        if self.locks.held.len() == before {
            return;
        }
        self.steps[ix.at()].locked = false;
        self.orders.push(Command::Unlock { step: ix });
        self.freed.extend(std::mem::take(&mut self.locks.waiting));
    }

    /// Steps that waited for a lock try again.
    pub(super) fn try_locks(&mut self, ix: StepIx) {
        if self.steps[ix.at()].phase == StepPhase::Locking && self.going != Going::Over {
            let plan = Arc::clone(&self.plan);
            debug_assert!(!plan.nodes[self.steps[ix.at()].node.at()].locks.is_empty());
            self.begin_step(ix);
        }
    }
}
