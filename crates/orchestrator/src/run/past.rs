//! The past of a run as the schedule asks for it: the journal's history, with outputs loaded as they are needed.

use crate::addr::{AddrPart, StepAddr};
use crate::journal::history::{Difference, History, Missed};
use crate::journal::record::EndState;
use crate::manifest;
use crate::plan::model::Plan;
use crate::rundir::{KeptPlan, RunDir};
use crate::scheduler::{Past, PastSuccess};
use claw_kernel::digest::Digest;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What earlier takes left, for today's plan.
pub(super) struct RunPast {
    history: History,
    run: RunDir,
    /// Nodes of today's plan: a success at another address may serve a renamed one.
    nodes: HashSet<String>,
    used: HashSet<StepAddr>,
    /// Plans of earlier takes, read when a step differs.
    plans: RefCell<HashMap<u32, Option<KeptPlan>>>,
}

impl RunPast {
    pub fn new(history: History, run: RunDir, plan: &Plan) -> Self {
        let nodes = plan.nodes.iter().map(|node| node.id.to_string()).collect();
        Self { history, run, nodes, used: HashSet::new(), plans: RefCell::default() }
    }

    fn is_planned(&self, addr: &StepAddr) -> bool {
        match addr.parts().first() {
            Some(AddrPart::Node { node, .. }) => self.nodes.contains(node.as_str()),
            Some(AddrPart::Child(_)) | None => false,
        }
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
        Some(PastSuccess { value, file, agent, attempt: number })
    }
}

impl Past for RunPast {
    fn success(&mut self, addr: &StepAddr, key: &Digest) -> Option<PastSuccess> {
        let found = if self.history.success(addr, key).is_some() && !self.used.contains(addr) {
            addr.clone()
        } else {
            self.history
                .success_by_key(key)
                .map(|(at, _)| at)
                .find(|at| !self.is_planned(at) && !self.used.contains(*at))?
                .clone()
        };
        let success = self.load(&found)?;
        self.used.insert(found);
        Some(success)
    }

    fn attempts(&self, addr: &StepAddr) -> u32 {
        self.history.attempts(addr)
    }

    fn transcript(&self, addr: &StepAddr, key: &Digest) -> Option<u32> {
        self.history.to_go_on(addr, key).map(|attempt| attempt.number)
    }

    fn in_doubt(&self, addr: &StepAddr) -> bool {
        // One whose effect is done and whose end is lost gave an output that nobody has.
        let done = self.history.last_attempt(addr).is_some_and(|last| last.done.is_some() && last.ended.is_none());
        done || self.history.in_doubt_of(addr).iter().any(|doubt| doubt.call.is_none())
    }

    fn differs(&self, addr: &StepAddr, key: &Digest, own: &Digest) -> Option<Difference> {
        let Missed::Changed { take, .. } = self.history.why_missed(addr, key) else { return None };
        let mut plans = self.plans.borrow_mut();
        let plan = plans.entry(take).or_insert_with(|| KeptPlan::read(&self.run, take).ok());
        let then = match addr.parts().first() {
            Some(AddrPart::Node { node, .. }) => plan.as_ref().and_then(|plan| plan.static_keys.get(node.as_str())),
            Some(AddrPart::Child(_)) | None => None,
        };
        Some(Difference::between(then, own))
    }

    fn is_empty(&self) -> bool {
        self.history.takes() == 0
    }
}
