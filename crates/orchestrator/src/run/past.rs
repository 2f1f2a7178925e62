//! The past of a run as the schedule asks for it: the journal's history, with outputs loaded as they are needed.

use crate::addr::{AddrPart, StepAddr};
use crate::journal::history::{Difference, History, Missed};
use crate::journal::record::{Answer, EndState, Question};
use crate::manifest;
use crate::plan::model::Plan;
use crate::rundir::{KeptPlan, RunDir};
use crate::scheduler::{Earlier, Past, PastSuccess};
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
        let usage = step.usage.unwrap_or(Usage::NOTHING);
        Some(PastSuccess { value, file, agent, attempt: number, addr: addr.clone(), usage })
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

    /// The newest whose transcript is there: a kill may have come before it was begun.
    fn transcript(&self, addr: &StepAddr, key: &Digest) -> Option<Earlier> {
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
        // One whose effect is done and whose end is lost gave an output that nobody has.
        let last = self.history.last_attempt(addr);
        let done = last.is_some_and(|last| last.done.is_some() && last.ended.is_none());
        // One that was skipped in doubt stays in doubt: every resume decides alike.
        let skipped = last.is_some_and(|last| {
            let is_skipped = last.ended.as_ref().is_some_and(|(_, ended)| ended.state == EndState::Skipped);
            is_skipped && last.open_intents.iter().any(|(call, _)| call.is_none())
        });
        done || skipped || self.history.in_doubt_of(addr).iter().any(|doubt| doubt.call.is_none())
    }

    fn differs(&self, addr: &StepAddr, key: &Digest, own: &Digest) -> Option<Difference> {
        let Missed::Changed { take, .. } = self.history.why_missed(addr, key) else { return None };
        let mut plans = self.plans.borrow_mut();
        let plan = plans.entry(take).or_insert_with(|| KeptPlan::read(&self.run, take).ok());
        let then = match addr.parts().first() {
            Some(AddrPart::Node { node, .. }) => {
                plan.as_ref().and_then(|plan| plan.static_keys.get(node.as_str()))
            }
            Some(AddrPart::Child(_)) | None => None,
        };
        Some(Difference::between(then, own))
    }

    fn answer(&self, addr: &StepAddr) -> Option<(Question, Answer)> {
        self.history.step(addr)?.answer.clone()
    }

    fn said(&self, addr: &StepAddr) -> Vec<String> {
        self.history.step(addr).map(|step| step.said.clone()).unwrap_or_default()
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
}
