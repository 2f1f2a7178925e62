//! Questions to persons: gates, and steps that cannot go on without an answer.

use super::core::{Going, Schedule};
use super::event::{Command, StepIx};
use super::state::StepPhase;
use crate::addr::StepAddr;
use crate::expr::{EvalError, Render};
use crate::journal::record::{Answer, AnsweredBy, EndState, Ended, Entry, Question, Shown};
use crate::plan::model::{GateWork, OnTimeout, Work};
use crate::report::event::{RunEventKind, StepState, WaitingFor};
use claw_agents::outcome::FailureClass;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Where git merges ask, the choice that ends them.
const STOP: &str = "stop";
/// What can be done about a command in doubt.
const RETRY: &str = "retry";
const SKIP: &str = "skip";
/// Why a step in doubt is skipped.
pub(super) const IN_DOUBT: &str = "in doubt after a crash";
/// Where no gate says otherwise.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

impl Schedule {
    /// A gate whose needs are final: answered before, or asked now.
    pub(super) fn begin_gate(&mut self, ix: StepIx, gate: &GateWork) {
        let key = match self.content_key(ix) {
            Ok(key) => key,
            Err(error) => return self.fail_step(ix, FailureClass::Expr, error.to_string()),
        };
        let addr = self.steps[ix.at()].addr.clone();
        self.steps[ix.at()].key = Some(key);
        if let Some(success) = self.past.success(&addr, &key) {
            return self.cached(ix, success);
        }
        let question = match self.question(ix, gate) {
            Ok(question) => question,
            Err(error) => return self.fail_step(ix, FailureClass::Expr, error.to_string()),
        };
        // Somebody answered while no process held the run: the same question only.
        let earlier = self.past.answer(&addr);
        let same = |asked: &Question| asked.message == question.message && asked.show == question.show;
        match earlier {
            Some((asked, answer)) if same(&asked) => self.gate_answered(ix, answer),
            Some(_) | None => self.ask(ix, question),
        }
    }

    fn question(&self, ix: StepIx, gate: &GateWork) -> Result<Question, EvalError> {
        let scope = self.step_scope(ix);
        let show = gate.show.iter().map(|expr| {
            Ok::<_, EvalError>(Shown { name: expr.source().to_owned(), value: expr.eval(&scope)? })
        });
        Ok(Question {
            message: gate.message.render(&scope, Render::Plain)?,
            show: show.collect::<Result<_, _>>()?,
            choices: gate.choices.clone(),
            default: gate.default.clone(),
            until: None,
        })
    }

    /// Asks; where nobody can answer, takes the default or waits for what `claw runs answer` brings.
    pub(super) fn ask(&mut self, ix: StepIx, question: Question) {
        let addr = self.steps[ix.at()].addr.clone();
        self.record(Some(addr.clone()), None, Entry::Asked(question.clone()));
        if let Some(choice) = question.default.clone().filter(|_| !self.context.can_ask) {
            let answer = Answer { choice, comment: None, by: AnsweredBy::Default };
            return self.take_answer(ix, answer);
        }
        let step = &mut self.steps[ix.at()];
        step.phase = StepPhase::Asking;
        step.question = Some(Box::new(question.clone()));
        let plan = Arc::clone(&self.plan);
        let node = &plan.nodes[step.node.at()];
        let delay = if matches!(node.work, Work::Gate(_)) { node.timeout } else { LONGEST };
        self.orders.push(Command::ExpireGate { step: ix, delay });
        self.tell(addr.clone(), None, StepState::Waiting(WaitingFor::Gate));
        let kind = RunEventKind::GateAsked(Box::new(question));
        self.orders.push(Command::Tell { step: Some(addr), attempt: None, kind });
        self.asking.push(ix);
    }

    /// Somebody answered: a step that waits for it goes on.
    pub(super) fn answered(&mut self, addr: &StepAddr, answer: Answer) {
        let waiting = |ix: &&StepIx| self.steps[ix.at()].addr == *addr;
        let Some(ix) = self.asking.iter().find(waiting).copied() else {
            return self.refuse(format!("{addr} does not wait for an answer"));
        };
        let choices = self.steps[ix.at()].question.as_ref().map(|question| question.choices.clone());
        let choices = choices.unwrap_or_default();
        if !choices.contains(&answer.choice) {
            let known = choices.join(", ");
            return self.refuse(format!("{addr} has no choice `{}`: {known}", answer.choice));
        }
        self.take_answer(ix, answer);
    }

    fn take_answer(&mut self, ix: StepIx, answer: Answer) {
        self.asking.retain(|asking| *asking != ix);
        let addr = self.steps[ix.at()].addr.clone();
        self.record(Some(addr), None, Entry::Answered(answer.clone()));
        self.gate_answered(ix, answer);
    }

    fn gate_answered(&mut self, ix: StepIx, answer: Answer) {
        let plan = Arc::clone(&self.plan);
        let step = &mut self.steps[ix.at()];
        step.question = None;
        if matches!(plan.nodes[step.node.at()].work, Work::Gate(_)) {
            let value = Arc::new(json!({ "choice": answer.choice, "comment": answer.comment }));
            return self.known(ix, value);
        }
        if matches!(plan.nodes[step.node.at()].work, Work::Command(_)) {
            return match answer.choice == RETRY {
                true if self.going == Going::On => self.queue(ix),
                true => {}
                false => self.skip_step(ix, IN_DOUBT),
            };
        }
        if answer.choice == STOP {
            return self.fail_step(ix, FailureClass::Conflict, "stopped at a conflict".to_owned());
        }
        step.answer = Some(answer);
        if self.going == Going::On {
            self.queue(ix);
        }
    }

    /// A command that was interrupted by a crash: only a person knows whether it took effect.
    pub(super) fn ask_in_doubt(&mut self, ix: StepIx) {
        let step = &self.steps[ix.at()];
        let addr = step.addr.clone();
        let message = format!(
            "in doubt: attempt {} was interrupted while its command ran, unknown whether it took effect (it ran at \
             least once). Check, then `{RETRY}` runs it again, `{SKIP}` goes on without it (`on_crash` on the node \
             decides it for good)",
            step.attempt,
        );
        let question = Question {
            message,
            show: Vec::new(),
            choices: vec![RETRY.to_owned(), SKIP.to_owned()],
            default: None,
            until: None,
        };
        // An answer holds for the attempt that it was given for.
        match self.past.answer(&addr).filter(|(asked, _)| asked.message == question.message) {
            Some((_, answer)) => self.gate_answered(ix, answer),
            None => self.ask(ix, question),
        }
    }

    /// An attempt cannot go on without an answer: it starts again with it.
    pub(super) fn attempt_asks(&mut self, ix: StepIx, ended: Ended, question: Question) {
        let ended = Ended { state: EndState::Interrupted, error: Some(question.message.clone()), ..ended };
        self.record_end(ix, ended);
        self.ask(ix, question);
    }

    /// A gate has waited as long as it may.
    pub(super) fn gate_expired(&mut self, ix: StepIx) {
        let plan = Arc::clone(&self.plan);
        let step = &self.steps[ix.at()];
        if step.phase != StepPhase::Asking {
            return;
        }
        let choice = match &plan.nodes[step.node.at()].work {
            Work::Gate(gate) => match &gate.on_timeout {
                OnTimeout::Choose(choice) => Some(choice.clone()),
                OnTimeout::Pause => None,
            },
            Work::Agent(_) | Work::Command(_) | Work::Set { .. } | Work::Merge(_) | Work::Group(_) => None,
        };
        match choice {
            Some(choice) => self.take_answer(ix, Answer { choice, comment: None, by: AnsweredBy::Timeout }),
            None => {
                let reason = format!("{} was not answered in time", step.addr);
                self.pause(reason, None);
            }
        }
    }

    /// Everything else is done and nobody is there to answer: the run waits without a process.
    pub(super) fn pause_for_answers(&mut self) {
        let names: Vec<String> =
            self.asking.iter().map(|step| self.steps[step.at()].addr.to_string()).collect();
        let run = &self.context.run.id;
        let reason = format!(
            "{} for an answer: `claw runs answer {run} {} CHOICE`, then resume",
            if names.len() == 1 {
                format!("{} waits", names[0])
            } else {
                format!("{} wait", names.join(", "))
            },
            names[0],
        );
        self.pause(reason, None);
    }
}
