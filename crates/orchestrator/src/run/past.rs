//! The past of a run as the schedule asks for it: the journal's history, with outputs loaded as they are needed.

use super::select::Selection;
use crate::addr::{AddrPart, StepAddr};
use crate::journal::history::{Attempt, Difference, History, Missed, Success};
use crate::journal::record::{Answer, EndState, Question};
use crate::manifest;
use crate::plan::model::{MergeStrategy, Plan, Work};
use crate::rundir::{KeptPlan, RunDir};
use crate::scheduler::{Earlier, Past, PastMate, PastSuccess, Wanted};
use claw_agents::outcome::FailureClass;
use claw_kernel::digest::Digest;
use claw_providers::usage::Usage;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What earlier takes left, for today's plan.
pub(super) struct RunPast {
    history: History,
    run: RunDir,
    plan: Arc<Plan>,
    selection: Selection,
    used: HashSet<StepAddr>,
    /// Plans of earlier takes, read when a step differs.
    plans: RefCell<HashMap<u32, Option<KeptPlan>>>,
}

impl RunPast {
    pub fn new(history: History, run: RunDir, plan: Arc<Plan>, selection: Selection) -> Self {
        Self { history, run, plan, selection, used: HashSet::new(), plans: RefCell::default() }
    }

    /// A success at an address that is no longer in the plan may serve a renamed node.
    fn is_planned(&self, addr: &StepAddr) -> bool {
        self.plan.at_path(addr.nodes()).is_some()
    }

    /// The address of a success that stands for the step.
    fn found(&self, addr: &StepAddr, key: &Digest) -> Option<StepAddr> {
        if self.selection.runs_again(addr) {
            return None;
        }
        // It was begun once more since, and nobody knows how that ended.
        if self.history.last_attempt(addr).is_some_and(|last| last.key == *key && is_open(last)) {
            return None;
        }
        let own = self.history.step(addr).and_then(|step| step.success.as_ref());
        let fits = |success: &&Success| self.selection.is_only() || success.key == *key;
        if own.filter(fits).is_some() && !self.used.contains(addr) {
            return Some(addr.clone());
        }
        self.history
            .success_by_key(key)
            .map(|(at, _)| at)
            .find(|at| !self.is_planned(at) && !self.used.contains(*at))
            .cloned()
    }

    /// Whether it costs nothing and changes nothing to make it again; what is in a group or a loop is asked for itself.
    fn is_computed(&self, addr: &StepAddr) -> bool {
        let node = self.plan.at_path(addr.nodes()).map(|ix| &self.plan.nodes[ix.at()]);
        let is_loop = matches!(addr.parts().last(), Some(AddrPart::Node { iteration: None, .. }));
        node.is_some_and(|node| match &node.work {
            Work::Set { .. } | Work::Group(_) => true,
            Work::Agent(_) | Work::Command(_) | Work::Merge(_) if is_loop && node.repeat.is_some() => true,
            Work::Merge(merge) => match merge.strategy {
                MergeStrategy::List | MergeStrategy::Concat | MergeStrategy::Dedupe { .. } => {
                    merge.write.is_none()
                }
                MergeStrategy::Agent { .. } | MergeStrategy::Git(_) => false,
            },
            Work::Agent(_) | Work::Command(_) | Work::Gate(_) => false,
        })
    }

    /// `None` where the output is lost or damaged: the step then runs again.
    fn load(&self, addr: &StepAddr) -> Option<PastSuccess> {
        let step = self.history.step(addr)?;
        let success = step.success.as_ref()?;
        let value = match &success.output {
            Some(output) => manifest::output::load_output(&self.run, output).ok()?,
            None => Arc::new(Value::Null),
        };
        let attempt = step.attempts.iter().rev().find(|attempt| {
            attempt.ended.as_ref().is_some_and(|(_, ended)| ended.state == EndState::Succeeded)
        });
        let number = attempt.map_or(0, |attempt| attempt.number);
        let file = attempt.and_then(|_| {
            [true, false]
                .into_iter()
                .map(|json| self.run.output(addr, number, json))
                .chain([self.run.stdout(addr, number)])
                .find(|path| path.exists())
        });
        let agent = attempt.and_then(|attempt| attempt.agent.clone());
        let usage = step.usage.unwrap_or(Usage::NOTHING);
        Some(PastSuccess { key: success.key, value, file, agent, attempt: number, addr: addr.clone(), usage })
    }
}

/// Whether a step's own effect was begun and has no end, or was skipped for that.
fn is_open(attempt: &Attempt) -> bool {
    let is_over = attempt.ended.as_ref().is_some_and(|(_, ended)| ended.state != EndState::Skipped);
    !is_over && attempt.open_intents.iter().any(|(call, _)| call.is_none())
}

impl Past for RunPast {
    fn success(&mut self, addr: &StepAddr, key: &Digest) -> Option<PastSuccess> {
        let found = self.found(addr, key)?;
        let success = self.load(&found)?;
        self.used.insert(found);
        Some(success)
    }

    fn attempts(&self, addr: &StepAddr) -> u32 {
        self.history.attempts(addr)
    }

    /// The newest whose transcript is there: a kill may have come before it was begun.
    fn transcript(&self, addr: &StepAddr, key: &Digest) -> Option<Earlier> {
        if self.selection.begins_anew(addr) {
            return None;
        }
        let found = self.history.to_go_on(addr, key).find(|attempt| {
            self.run.transcript(addr, attempt.number).metadata().is_ok_and(|meta| meta.len() > 0)
        })?;
        let refused = |class| matches!(class, FailureClass::Schema | FailureClass::Artifact);
        let fault = found
            .ended
            .as_ref()
            .and_then(|(_, ended)| if ended.class.is_some_and(refused) { ended.error.clone() } else { None });
        Some(Earlier { attempt: found.number, fault })
    }

    fn in_doubt(&self, addr: &StepAddr) -> bool {
        // Whoever names a step has decided.
        if self.selection.begins_anew(addr) {
            return false;
        }
        // One whose effect is done and whose end is lost gave an output that nobody has.
        let last = self.history.last_attempt(addr);
        let done = last.is_some_and(|last| last.done.is_some() && last.ended.is_none());
        // One that was skipped in doubt stays in doubt: every resume decides alike.
        let skipped = last.is_some_and(|last| last.ended.is_some() && is_open(last));
        done || skipped || self.history.in_doubt_of(addr).iter().any(|doubt| doubt.call.is_none())
    }

    fn differs(&self, addr: &StepAddr, key: &Digest, own: &Digest) -> Option<Difference> {
        let Missed::Changed { take, .. } = self.history.why_missed(addr, key) else { return None };
        let mut plans = self.plans.borrow_mut();
        let plan = plans.entry(take).or_insert_with(|| KeptPlan::read(&self.run, take).ok());
        let then = plan.as_ref().and_then(|plan| plan.static_keys.get(&addr.path()));
        Some(Difference::between(then, own))
    }

    fn answer(&self, addr: &StepAddr) -> Option<(Question, Answer)> {
        self.history.step(addr)?.answer.clone()
    }

    fn said(&self, addr: &StepAddr) -> Vec<String> {
        self.history.step(addr).map(|step| step.said.clone()).unwrap_or_default()
    }

    fn spawned(&self, addr: &StepAddr) -> Vec<(String, StepAddr)> {
        if addr.is_session() {
            let team = self.history.team().iter();
            return team.map(|mate| (mate.call.clone(), mate.child.clone())).collect();
        }
        self.history.step(addr).map(|step| step.spawned.clone()).unwrap_or_default()
    }

    fn team(&self) -> Vec<PastMate> {
        let told = |addr: &StepAddr| match addr.parts().last() {
            Some(AddrPart::Child(number)) => self.history.is_delivered(*number),
            Some(AddrPart::Node { .. }) | None => false,
        };
        let mates = self.history.team().iter().map(|mate| {
            let last = self.history.step(&mate.child).and_then(|step| step.last_end.as_ref());
            // An end behind which another attempt was to follow is none.
            let last = last.map(|(_, ended)| ended).filter(|ended| !ended.retry);
            PastMate {
                addr: mate.child.clone(),
                order: mate.order.clone(),
                end: last.map(|ended| ended.state),
                error: last.and_then(|ended| ended.error.clone()),
                is_told: told(&mate.child),
            }
        });
        mates.collect()
    }

    fn takes(&self) -> u32 {
        self.history.takes()
    }

    fn kept(&mut self, addr: &StepAddr) -> Option<PastSuccess> {
        let success = self.load(addr)?;
        self.used.insert(addr.clone());
        Some(success)
    }

    fn agents(&self) -> usize {
        let attempts = self.history.steps().flat_map(|(_, step)| &step.attempts);
        attempts.filter(|attempt| attempt.agent.is_some()).count()
    }

    fn is_empty(&self) -> bool {
        self.history.takes() == 0
    }

    fn wanted(&self, addr: &StepAddr) -> Wanted {
        if !self.selection.is_only() || self.selection.names(addr) {
            return Wanted::Run;
        }
        if !self.selection.is_round(addr) && self.load(addr).is_some() {
            return Wanted::Keep;
        }
        if self.is_computed(addr) { Wanted::Run } else { Wanted::Leave }
    }
}
