//! What follows when an attempt, a step, a node or the run ends.

use super::core::{Going, Schedule};
use super::event::{Command, Failure, Outcome, OutcomeEnd, RunEnd, StepIx};
use super::frame::Place;
use super::state::{Active, NodeFinal, NodePhase, PastSuccess, StepPhase};
use crate::expr::{Data, NodeView};
use crate::journal::record::{EndState, Ended, Entry, OutputRef};
use crate::plan::model::{EachFail, Isolation, Node, NodeIx, OutputSpec, Retry};
use crate::report::event::{StepState, WaitingFor};
use claw_agents::outcome::FailureClass;
use claw_kernel::digest::Digest;
use claw_providers::usage::Usage;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A service that asks for a longer wait pauses the run instead.
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// A node's list that is longer goes to a file of its own.
const INLINE: usize = 16 * 1024;

impl Schedule {
    /// An attempt ended.
    pub(super) fn finished(&mut self, ix: StepIx, attempt: u32, outcome: Outcome) {
        let step = &mut self.steps[ix.at()];
        if step.phase != StepPhase::Running || step.attempt != attempt {
            return;
        }
        self.give_slot_back(ix);
        self.end_attempt(ix, outcome);
    }

    /// The same once its children have ended too.
    pub(super) fn end_attempt(&mut self, ix: StepIx, outcome: Outcome) {
        let Some(outcome) = self.when_children_are_over(ix, outcome) else { return };
        let plan = Arc::clone(&self.plan);
        let step = &mut self.steps[ix.at()];
        let node = &plan.nodes[step.node.at()];
        step.usage = step.usage.plus(&outcome.usage.unwrap_or(Usage::NOTHING));
        step.denials.extend(outcome.denials.iter().cloned());
        match &outcome.end {
            OutcomeEnd::Succeeded { value, kept, file, effect } => {
                self.record_effect(ix, *effect);
                let (value, kept, file) = (Arc::clone(value), kept.clone(), file.clone());
                self.succeeded(ix, &outcome, value, kept, file);
            }
            OutcomeEnd::Failed(failure) => {
                self.record_effect(ix, failure.effect);
                self.failed(ix, node, &outcome, failure.clone());
            }
            OutcomeEnd::Cancelled => self.attempt_cancelled(ix, &outcome),
            OutcomeEnd::Asks(question) => {
                let ended =
                    Ended { usage: outcome.usage, denials: outcome.denials.clone(), ..self.bare_end(ix) };
                self.attempt_asks(ix, ended, question.as_ref().clone());
            }
            OutcomeEnd::Interrupted(reason) => {
                self.interrupted(ix, &outcome, reason.clone());
                self.pause_softly(reason.clone(), None);
            }
        }
        self.let_parent_end(ix);
    }

    fn record_effect(&mut self, ix: StepIx, effect: Option<Digest>) {
        if let Some(digest) = effect {
            let step = &self.steps[ix.at()];
            let (addr, attempt) = (step.addr.clone(), step.attempt);
            self.record(Some(addr), Some(attempt), Entry::Done { digest, call: None });
        }
    }

    fn succeeded(
        &mut self,
        ix: StepIx,
        outcome: &Outcome,
        value: Arc<Value>,
        kept: OutputRef,
        file: Option<PathBuf>,
    ) {
        let ended = Ended {
            state: EndState::Succeeded,
            output: Some(kept),
            usage: outcome.usage,
            denials: outcome.denials.clone(),
            ..self.bare_end(ix)
        };
        self.record_end(ix, ended);
        let step = &mut self.steps[ix.at()];
        step.output = Some(Data::shared(value));
        step.file = file;
        step.made = Some((step.addr.clone(), step.attempt));
        self.close_step(ix, EndState::Succeeded);
    }

    /// An end of a step's attempt of which only the content is said.
    fn bare_end(&self, ix: StepIx) -> Ended {
        Ended { key: self.steps[ix.at()].key, ..plain_end(EndState::Failed, None, None) }
    }

    /// claw itself stopped the attempt: a later one goes on from what is whole.
    fn interrupted(&mut self, ix: StepIx, outcome: &Outcome, reason: String) {
        let ended = Ended {
            state: EndState::Interrupted,
            error: Some(reason.clone()),
            usage: outcome.usage,
            denials: outcome.denials.clone(),
            ..self.bare_end(ix)
        };
        self.record_end(ix, ended);
        let step = &mut self.steps[ix.at()];
        step.error = Some(reason.clone());
        step.phase = StepPhase::Backoff;
        let (addr, attempt) = (step.addr.clone(), Some(step.attempt));
        self.tell(addr, attempt, StepState::Ended { state: EndState::Interrupted, error: Some(reason) });
    }

    fn failed(&mut self, ix: StepIx, node: &Node, outcome: &Outcome, failure: Failure) {
        let step = &self.steps[ix.at()];
        let long_wait = failure.retry_after.is_some_and(|wait| wait > LONGEST_WAIT);
        let breaker = matches!(failure.class, FailureClass::Quota | FailureClass::Auth)
            || (matches!(failure.class, FailureClass::RateLimit | FailureClass::Overloaded) && long_wait);
        let waits = breaker && !step.called_off;
        let again = waits
            || (self.may_go_on(ix)
                && step.tries < node.retry.attempts
                && node.retry.on.contains(&failure.class));
        let ended = Ended {
            state: if waits { EndState::Interrupted } else { EndState::Failed },
            error: Some(failure.message.clone()),
            class: Some(failure.class),
            retry: again,
            usage: outcome.usage,
            denials: outcome.denials.clone(),
            ..self.bare_end(ix)
        };
        self.record_end(ix, ended);
        let step = &mut self.steps[ix.at()];
        step.error = Some(failure.message.clone());
        step.class = Some(failure.class);
        if waits {
            step.phase = StepPhase::Backoff;
            let (addr, attempt) = (step.addr.clone(), Some(step.attempt));
            let reason = format!("{addr}: {}", failure.message);
            let error = Some(failure.message);
            self.tell(addr, attempt, StepState::Ended { state: EndState::Interrupted, error });
            self.pause_softly(reason, failure.retry_at);
        } else if again {
            self.wait_for_retry(ix, &node.retry, failure);
        } else {
            self.close_step(ix, EndState::Failed);
        }
    }

    fn wait_for_retry(&mut self, ix: StepIx, retry: &Retry, failure: Failure) {
        let step = &mut self.steps[ix.at()];
        let exponent = i32::try_from(step.tries.saturating_sub(1)).unwrap_or(i32::MAX);
        let grown = retry.backoff.as_secs_f64() * retry.factor.powi(exponent);
        let most = grown.min(retry.max.as_secs_f64()).max(0.0);
        let spread = if retry.jitter { self.dice.f64() } else { 1.0 };
        let delay = Duration::from_secs_f64(most * spread).max(failure.retry_after.unwrap_or(Duration::ZERO));
        step.phase = StepPhase::Backoff;
        // The next attempt of an agent goes on from what is whole in this one's transcript.
        step.goes_on_from = Some(step.attempt);
        step.fault = refused(failure.class).then(|| failure.message.clone());
        let (addr, attempt) = (step.addr.clone(), step.attempt);
        self.expected += 1;
        self.orders.push(Command::WakeAfter { step: ix, attempt: attempt + 1, delay });
        self.tell(
            addr,
            Some(attempt),
            StepState::Waiting(WaitingFor::Retry { delay, error: failure.message }),
        );
    }

    fn attempt_cancelled(&mut self, ix: StepIx, outcome: &Outcome) {
        if let (Going::Pausing { reason, .. }, false) = (&self.going, self.steps[ix.at()].called_off) {
            let reason = format!("paused: {reason}");
            return self.interrupted(ix, outcome, reason);
        }
        let step = &mut self.steps[ix.at()];
        let why = if step.called_off { "no longer needed" } else { "cancelled" };
        step.error = Some(why.to_owned());
        step.class = Some(FailureClass::Cancelled);
        let ended = Ended {
            state: EndState::Cancelled,
            error: Some(why.to_owned()),
            class: Some(FailureClass::Cancelled),
            usage: outcome.usage,
            denials: outcome.denials.clone(),
            ..self.bare_end(ix)
        };
        self.record_end(ix, ended);
        self.close_step(ix, EndState::Cancelled);
    }

    /// Writes the end of an attempt, then lets its manifest say so.
    pub(super) fn record_end(&mut self, ix: StepIx, ended: Ended) {
        let step = &self.steps[ix.at()];
        let (addr, attempt) = (step.addr.clone(), step.attempt);
        let settled = Command::Settled {
            step: ix,
            attempt,
            state: ended.state,
            error: ended.error.clone(),
            class: ended.class,
            children: self.spent_on_children(ix),
        };
        self.record(Some(addr), Some(attempt), Entry::Ended(ended));
        self.orders.push(settled);
    }

    /// A set or a computed merge: done without a slot.
    pub(super) fn computed(&mut self, ix: StepIx, value: Value) {
        self.known(ix, Arc::new(value));
    }

    /// A value that is there without an attempt. With the step's content, where that is known.
    pub(super) fn known(&mut self, ix: StepIx, value: Arc<Value>) {
        let step = &mut self.steps[ix.at()];
        step.output = Some(Data::shared(Arc::clone(&value)));
        let (addr, key) = (step.addr.clone(), step.key);
        let ended = Ended { key, ..plain_end(EndState::Succeeded, Some(value), None) };
        self.record(Some(addr), None, Entry::Ended(ended));
        self.close_step(ix, EndState::Succeeded);
    }

    /// An earlier success stands for the step.
    pub(super) fn cached(&mut self, ix: StepIx, success: PastSuccess) {
        let step = &mut self.steps[ix.at()];
        step.output = Some(Data::shared(Arc::clone(&success.value)));
        step.file = success.file;
        step.agent = success.agent;
        step.before = success.usage;
        step.made = Some((success.addr, success.attempt));
        // What is kept whatever has changed stays a success of what it was made from.
        step.key = Some(success.key);
        let (addr, key) = (step.addr.clone(), step.key);
        let ended = Ended { key, ..plain_end(EndState::Cached, Some(success.value), None) };
        self.record(Some(addr), None, Entry::Ended(ended));
        self.close_step(ix, EndState::Cached);
    }

    /// Fails a step of which no attempt runs.
    pub(super) fn fail_step(&mut self, ix: StepIx, class: FailureClass, error: String) {
        let step = &mut self.steps[ix.at()];
        step.error = Some(error.clone());
        step.class = Some(class);
        let addr = step.addr.clone();
        let ended = Ended { class: Some(class), ..plain_end(EndState::Failed, None, Some(error)) };
        self.record(Some(addr), None, Entry::Ended(ended));
        self.close_step(ix, EndState::Failed);
    }

    pub(super) fn skip_step(&mut self, ix: StepIx, why: &str) {
        let step = &mut self.steps[ix.at()];
        step.error = Some(why.to_owned());
        let addr = step.addr.clone();
        let ended = plain_end(EndState::Skipped, None, Some(why.to_owned()));
        self.record(Some(addr), None, Entry::Ended(ended));
        self.close_step(ix, EndState::Skipped);
    }

    /// A step is final: its node hears of it.
    pub(super) fn close_step(&mut self, ix: StepIx, state: EndState) {
        let step = &mut self.steps[ix.at()];
        step.phase = StepPhase::Final(state);
        let (addr, error) = (step.addr.clone(), step.error.clone());
        let attempt = (step.attempt > 0).then_some(step.attempt);
        self.tell(addr, attempt, StepState::Ended { state, error });
        self.let_locks_go(ix);
        if self.steps[ix.at()].child.is_some() {
            return self.child_closed(ix);
        }
        let place = self.place_of(ix);
        if self.window_ended(place, ix, state) || self.iteration_ended(ix, state) {
            return;
        }
        let NodePhase::Active(active) = &mut self.node_mut(place).phase else { return };
        active.open = active.open.saturating_sub(1);
        match state {
            EndState::Succeeded => active.succeeded += 1,
            EndState::Cached => {
                active.succeeded += 1;
                active.cached += 1;
            }
            EndState::Failed | EndState::Skipped | EndState::Cancelled | EndState::Interrupted => {
                active.failed += 1;
            }
        }
        self.touched.push_back(place);
    }

    /// After a step of the node became final: the next ones, or the node itself.
    pub(super) fn step_closed(&mut self, place: Place) {
        if self.frame(place.frame).nodes.is_empty() {
            return;
        }
        self.call_off(place);
        if self.may_start(place) {
            self.let_go(place);
        }
        self.settle_node(place);
    }

    /// `fail = "fast"`: the rest is cancelled as soon as `min_success` cannot be reached.
    fn call_off(&mut self, place: Place) {
        let plan = Arc::clone(&self.plan);
        let each = plan.nodes[place.node.at()].each.as_ref();
        let Some(each) = each.filter(|each| each.fail == EachFail::Fast) else { return };
        let NodePhase::Active(active) = &mut self.node_mut(place).phase else { return };
        let needed = each.min_success.unwrap_or(active.steps.len());
        if active.called_off || active.failed + needed <= active.steps.len() {
            return;
        }
        active.called_off = true;
        for step in active.steps.clone() {
            self.call_off_step(step);
        }
    }

    /// A step is no longer needed, whatever it does at the moment.
    pub(super) fn call_off_step(&mut self, ix: StepIx) {
        let step = &mut self.steps[ix.at()];
        if step.called_off {
            return;
        }
        step.called_off = true;
        match step.phase {
            StepPhase::Running => self.orders.push(Command::Stop(ix)),
            StepPhase::Held
            | StepPhase::Queued
            | StepPhase::Backoff
            | StepPhase::Locking
            | StepPhase::Asking => self.drop_step(ix),
            StepPhase::Open => self.call_off_inside(ix),
            StepPhase::Final(_) => {}
        }
    }

    /// A step that never started will not.
    pub(super) fn drop_step(&mut self, ix: StepIx) {
        self.asking.retain(|asking| *asking != ix);
        let place = self.place_of(ix);
        let step = &mut self.steps[ix.at()];
        let was_held = step.phase == StepPhase::Held;
        let why = "no longer needed".to_owned();
        step.error = Some(why.clone());
        let addr = step.addr.clone();
        self.record(Some(addr), None, Entry::Ended(plain_end(EndState::Cancelled, None, Some(why))));
        if let (true, NodePhase::Active(active)) = (was_held, &mut self.node_mut(place).phase) {
            // Nobody has counted it as open.
            active.held.retain(|held| *held != ix);
            active.open += 1;
        }
        self.close_step(ix, EndState::Cancelled);
    }

    /// All steps final: so is the node.
    pub(super) fn settle_node(&mut self, place: Place) {
        let plan = Arc::clone(&self.plan);
        let node = &plan.nodes[place.node.at()];
        let NodePhase::Active(active) = &self.node(place).phase else { return };
        if active.succeeded + active.failed < active.steps.len() {
            return;
        }
        let done = match &node.each {
            None => self.single_end(place.node, active),
            Some(each) => {
                let needed = each.min_success.unwrap_or(active.steps.len());
                self.each_end(place.node, active, needed)
            }
        };
        self.close_node(place, done, false);
    }

    fn single_end(&self, ix: NodeIx, active: &Active) -> NodeFinal {
        let step = active.steps.first().map(|step| &self.steps[step.at()]);
        let state = step.and_then(|step| step.phase.ended()).unwrap_or(EndState::Cancelled);
        NodeFinal {
            state,
            cause: Some(ix),
            error: step.and_then(|step| step.error.clone()),
            class: step.and_then(|step| step.class),
        }
    }

    fn each_end(&self, ix: NodeIx, active: &Active, needed: usize) -> NodeFinal {
        if active.succeeded >= needed {
            let all_cached = active.cached == active.steps.len() && active.cached > 0;
            let state = if all_cached { EndState::Cached } else { EndState::Succeeded };
            return NodeFinal { state, cause: None, error: None, class: None };
        }
        let count = |state| {
            let is = |step: &&StepIx| self.steps[step.at()].phase == StepPhase::Final(state);
            active.steps.iter().filter(is).count()
        };
        let first = active
            .steps
            .iter()
            .map(|step| &self.steps[step.at()])
            .find(|step| step.phase == StepPhase::Final(EndState::Failed));
        let detail = first.map_or_else(String::new, |step| {
            format!("; {}: {}", step.addr, step.error.as_deref().unwrap_or("failed"))
        });
        NodeFinal {
            state: EndState::Failed,
            cause: Some(ix),
            error: Some(format!(
                "{} of {} items failed{}{detail}",
                count(EndState::Failed),
                active.steps.len(),
                match count(EndState::Cancelled) {
                    0 => String::new(),
                    n => format!(", {n} were called off"),
                }
            )),
            class: first.and_then(|step| step.class),
        }
    }

    /// A node is final: those that wait for it hear of it.
    pub(super) fn close_node(&mut self, place: Place, done: NodeFinal, on_record: bool) {
        let plan = Arc::clone(&self.plan);
        let node = &plan.nodes[place.node.at()];
        if on_record {
            let addr = self.addr_of(place);
            let ended = Ended { class: done.class, ..plain_end(done.state, None, done.error.clone()) };
            self.record(Some(addr.clone()), None, Entry::Ended(ended));
            self.tell(addr.clone(), None, StepState::Ended { state: done.state, error: done.error.clone() });
            self.set_aside(place, addr, &done);
        }
        self.partial |= self.is_optional_inside(place, &done);
        let view = self.view(place, node, &done);
        let frame = &mut self.frames[place.frame.at()];
        Arc::make_mut(&mut frame.views).insert(node.id.as_str().to_owned(), Arc::new(view));
        frame.node_mut(place.node).phase = NodePhase::Final(done);
        frame.open -= 1;
        let (is_over, is_root) = (frame.open == 0, frame.owner.is_none());
        if is_root {
            self.orders.push(Command::NodeClosed);
        } else if is_over {
            self.closed.push_back(place.frame);
        }
        for dependent in &node.dependents {
            self.need_met(Place { node: *dependent, ..place });
        }
    }

    fn view(&mut self, place: Place, node: &Node, done: &NodeFinal) -> NodeView {
        let steps: Vec<StepIx> = match &mut self.node_mut(place).phase {
            NodePhase::Active(active) if node.isolation == Isolation::None => {
                std::mem::take(&mut active.steps)
            }
            // A merge of branches asks for them.
            NodePhase::Active(active) => active.steps.clone(),
            NodePhase::Waiting | NodePhase::Reading | NodePhase::Final(_) => Vec::new(),
        };
        if node.isolation != Isolation::None {
            self.branches.insert(place, steps.clone());
        }
        let attempts = steps.iter().map(|step| self.steps[step.at()].attempt).sum();
        let owners = steps.iter().filter_map(|step| self.steps[step.at()].owner.as_ref());
        let iterations = owners.map(|owner| owner.iteration).max().unwrap_or(1);
        let usage = steps.iter().map(|step| &self.steps[step.at()]);
        let usage = usage.fold(Usage::NOTHING, |sum, step| sum.plus(&step.usage).plus(&step.before));
        let (output, outputs, file) = match &node.each {
            None => {
                let step = steps.first().map(|step| &self.steps[step.at()]);
                let output = step.and_then(|step| step.output.clone());
                let file = step.and_then(|step| step.file.clone());
                (output.unwrap_or_else(|| Data::new(Value::Null)), None, file)
            }
            Some(_) => self.each_output(place, &steps),
        };
        NodeView {
            output,
            outputs,
            status: said(done.state).into(),
            error: done.error.clone(),
            usage: usage_json(&usage),
            attempts,
            iterations,
            file,
            schema: schema_of(node),
        }
    }

    /// A node of which only some steps came to an end.
    pub(super) fn unfinished_view(&mut self, place: Place) -> NodeView {
        let plan = Arc::clone(&self.plan);
        let state = EndState::Interrupted;
        self.view(
            place,
            &plan.nodes[place.node.at()],
            &NodeFinal { state, cause: None, error: None, class: None },
        )
    }

    /// One iteration of a node as its loop sees it.
    pub(super) fn step_view(&self, node: &Node, ix: StepIx, state: EndState) -> NodeView {
        let step = &self.steps[ix.at()];
        NodeView {
            output: step.output.clone().unwrap_or_else(|| Data::new(Value::Null)),
            outputs: None,
            status: said(state).into(),
            error: step.error.clone(),
            usage: usage_json(&step.usage.plus(&step.before)),
            attempts: step.attempt,
            iterations: 1,
            file: step.file.clone(),
            schema: schema_of(node),
        }
    }

    fn each_output(&mut self, place: Place, steps: &[StepIx]) -> (Data, Option<Data>, Option<PathBuf>) {
        let mut list = Vec::with_capacity(steps.len());
        let mut outputs = Vec::with_capacity(steps.len());
        for step in steps {
            let step = &mut self.steps[step.at()];
            let key = step.item.as_ref().map_or("", |item| item.shown.as_ref());
            let state = step.phase.ended().unwrap_or(EndState::Cancelled);
            // From here on the list holds it.
            let output = step.output.take().map(|data| data.json().as_ref().clone());
            list.push(json!({ "key": key, "status": said(state), "output": output, "error": step.error }));
            outputs.extend(output);
        }
        let list = Arc::new(Value::Array(list));
        let text = list.to_string();
        let file = (text.len() > INLINE).then(|| {
            let path = format!("outputs/{}.json", self.addr_of(place).to_string().replace('/', "--"));
            self.orders.push(Command::WriteOutput { path: path.clone(), value: Arc::clone(&list) });
            self.context.run.dir.join(path)
        });
        (Data::shared(list), Some(Data::new(Value::Array(outputs))), file)
    }

    /// Nothing runs and nothing will: the run is over.
    pub(super) fn end(&mut self) {
        let end: RunEnd = self.run_end();
        if let Going::Pausing { reason, until, on_record: false } = &self.going {
            let entry = Entry::Paused { reason: reason.clone(), until: *until };
            self.record(None, None, entry);
        }
        self.going = Going::Over;
        self.orders.push(Command::End(end));
    }
}

/// The agent was done and what it gave was refused: its next attempt is told so.
fn refused(class: FailureClass) -> bool {
    matches!(class, FailureClass::Schema | FailureClass::Artifact)
}

/// A success of an earlier take is a success: else every resume would change the content of what reads it.
fn said(state: EndState) -> &'static str {
    match state {
        EndState::Cached => EndState::Succeeded.as_str(),
        EndState::Succeeded
        | EndState::Failed
        | EndState::Skipped
        | EndState::Cancelled
        | EndState::Interrupted => state.as_str(),
    }
}

fn usage_json(usage: &Usage) -> Value {
    json!({ "input": usage.input, "output": usage.output, "cache_read": usage.cache_read,
            "cache_write": usage.cache_write, "usd": usage.usd })
}

fn schema_of(node: &Node) -> Option<Arc<Value>> {
    match &node.output {
        OutputSpec::Schema(schema) => Some(Arc::clone(schema)),
        OutputSpec::Text | OutputSpec::Json => None,
    }
}

pub(super) fn plain_end(state: EndState, output: Option<Arc<Value>>, error: Option<String>) -> Ended {
    Ended {
        state,
        key: None,
        output: output.map(OutputRef::Inline),
        error,
        class: None,
        retry: false,
        usage: None,
        denials: Vec::new(),
    }
}
