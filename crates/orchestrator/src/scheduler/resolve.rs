//! A node whose needs are final: join, condition, items, steps.

use super::ask::IN_DOUBT;
use super::core::{Schedule, step_ix};
use super::event::{Command, ItemsFailed, ItemsToRead, StepIx};
use super::frame::{Place, loop_binding};
use super::state::{Active, Item, NodeFinal, NodePhase, PastSuccess, Step, StepPhase, StepRole, Wanted};
use crate::addr::{ItemKey, StepAddr};
use crate::expr::{Binding, Data, EvalError, Render};
use crate::journal::history::Difference;
use crate::journal::record::{EndState, Entry};
use crate::plan::model::{Each, EachSource, Join, Node, NodeIx, OnCrash, OnError, Plan, Work};
use claw_agents::outcome::FailureClass;
use claw_kernel::digest::Digest;
use claw_providers::usage::Usage;
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;

impl Schedule {
    /// Needs are final: the node is skipped, read, expanded, or done at once.
    pub(super) fn resolve(&mut self, place: Place) {
        if self.frame(place.frame).called_off {
            return self.cancel_node(place);
        }
        let plan = Arc::clone(&self.plan);
        let node = &plan.nodes[place.node.at()];
        if let Some(cause) = self.refused(place, node) {
            let error = self.cause_text(Place { node: cause, ..place });
            return self.skip(place, cause, error);
        }
        if let Some(when) = &node.when {
            match when.is_true(&self.scope(place.frame, Vec::new(), None)) {
                Ok(true) => {}
                Ok(false) => return self.skip(place, place.node, "`when` is false".to_owned()),
                Err(error) => return self.fail_node(place, FailureClass::Expr, format!("when: {error}")),
            }
        }
        match &node.each {
            None => self.activate(place, vec![None]),
            Some(each) => self.find_items(place, each),
        }
    }

    /// The need that keeps the node's `join` from being met.
    fn refused(&self, place: Place, node: &Node) -> Option<NodeIx> {
        // A final node is there to tell of the others, however they ended.
        let join = if node.is_final { Join::AllDone } else { node.join };
        let phase = |need: &NodeIx| &self.node(Place { node: *need, ..place }).phase;
        let state = |need: &&NodeIx| match phase(need) {
            NodePhase::Final(done) => Some((done.state, self.plan.nodes[need.at()].on_error)),
            NodePhase::Waiting | NodePhase::Reading | NodePhase::Active(_) => None,
        };
        let met = |need: &&NodeIx| match state(need) {
            Some((EndState::Succeeded | EndState::Cached, _)) => true,
            Some((EndState::Failed, OnError::Continue)) => true,
            Some((EndState::Skipped, _)) => join != Join::AllSucceeded,
            Some((EndState::Failed | EndState::Cancelled | EndState::Interrupted, _)) | None => false,
        };
        match join {
            Join::AllDone => None,
            Join::AllSucceeded | Join::NoneFailed => {
                node.needs.iter().find(|need| !met(need)).map(|need| match phase(need) {
                    NodePhase::Final(NodeFinal { cause: Some(cause), .. }) => *cause,
                    NodePhase::Final(_) | NodePhase::Waiting | NodePhase::Reading | NodePhase::Active(_) => {
                        *need
                    }
                })
            }
        }
    }

    /// Such as `b failed`: names the root, not only the neighbour.
    fn cause_text(&self, cause: Place) -> String {
        let id = &self.plan.nodes[cause.node.at()].id;
        match &self.node(cause).phase {
            NodePhase::Final(NodeFinal { state: EndState::Skipped, .. }) => format!("{id} was skipped"),
            NodePhase::Final(NodeFinal { state: EndState::Cancelled, .. }) => format!("{id} was cancelled"),
            NodePhase::Final(_) | NodePhase::Waiting | NodePhase::Reading | NodePhase::Active(_) => {
                format!("{id} failed")
            }
        }
    }

    fn skip(&mut self, place: Place, cause: NodeIx, error: String) {
        self.close_node(
            place,
            NodeFinal { state: EndState::Skipped, cause: Some(cause), error: Some(error), class: None },
            true,
        );
    }

    /// Fails a node before any step of it exists.
    pub(super) fn fail_node(&mut self, place: Place, class: FailureClass, error: String) {
        let cause = Some(place.node);
        self.close_node(
            place,
            NodeFinal { state: EndState::Failed, cause, error: Some(error), class: Some(class) },
            true,
        );
    }

    /// A node of a body that is no longer needed, before any step of it exists.
    pub(super) fn cancel_node(&mut self, place: Place) {
        let error = Some("no longer needed".to_owned());
        let class = Some(FailureClass::Cancelled);
        let cause = Some(place.node);
        self.close_node(place, NodeFinal { state: EndState::Cancelled, cause, error, class }, true);
    }

    fn find_items(&mut self, place: Place, each: &Each) {
        let scope = self.scope(place.frame, Vec::new(), None);
        let render = |template: &crate::expr::Template| template.render(&scope, Render::Plain);
        let source = match &each.source {
            EachSource::Static(items) => {
                let items = items.iter().enumerate().map(|(at, (key, value))| {
                    Some(Item {
                        shown: key.as_str().into(),
                        key: key.clone(),
                        value: Data::new(value.clone()),
                        index: at + 1,
                    })
                });
                return self.activate(place, items.collect());
            }
            EachSource::Listed(items) => return self.expand(place, each, items.clone()),
            EachSource::Items(expr) => {
                return match expr.eval(&scope) {
                    Ok(Value::Array(items)) => self.expand(place, each, items),
                    Ok(Value::Null) => self.expand(place, each, Vec::new()),
                    Ok(other) => {
                        let text = format!("each.items gives {}, not a list", kind_of(&other));
                        self.fail_node(place, FailureClass::Expr, text);
                    }
                    Err(error) => self.fail_node(place, FailureClass::Expr, format!("each.items: {error}")),
                };
            }
            EachSource::Glob { include, exclude } => include
                .iter()
                .map(render)
                .collect::<Result<_, _>>()
                .and_then(|include| Ok((include, exclude.iter().map(render).collect::<Result<_, _>>()?)))
                .map(|(include, exclude)| ItemsToRead::Glob { include, exclude }),
            EachSource::Lines(path) => render(path).map(ItemsToRead::Lines),
            EachSource::Jsonl(path) => render(path).map(ItemsToRead::Jsonl),
        };
        match source {
            Ok(source) => {
                self.node_mut(place).phase = NodePhase::Reading;
                self.expected += 1;
                self.orders.push(Command::ReadItems { place, source });
            }
            Err(error) => self.fail_node(place, FailureClass::Expr, format!("each: {error}")),
        }
    }

    /// The items of a dynamic source came from the disk.
    pub(super) fn items_read(&mut self, place: Place, items: Result<Vec<Value>, ItemsFailed>) {
        self.expected = self.expected.saturating_sub(1);
        // A body that was called off meanwhile has closed it.
        let frame = self.frame(place.frame);
        if !self.may_start(place) || frame.called_off || frame.nodes.is_empty() {
            return;
        }
        let plan = Arc::clone(&self.plan);
        match (items, &plan.nodes[place.node.at()].each) {
            (Ok(items), Some(each)) => self.expand(place, each, items),
            (Err(error), _) => self.fail_node(place, FailureClass::Expr, format!("each: {error}")),
            (Ok(_), None) => {}
        }
    }

    fn expand(&mut self, place: Place, each: &Each, values: Vec<Value>) {
        if let Some(max) = each.max.filter(|max| values.len() > *max) {
            let text = format!("each has {} items, more than its max of {max}", values.len());
            return self.fail_node(place, FailureClass::Limit, text);
        }
        match self.keyed(place, each, values) {
            Ok(items) => self.activate(place, items.into_iter().map(Some).collect()),
            Err(failed) => self.fail_node(place, FailureClass::Expr, failed.to_string()),
        }
    }

    fn keyed(&self, place: Place, each: &Each, values: Vec<Value>) -> Result<Vec<Item>, KeyFailed> {
        let mut seen = HashSet::with_capacity(values.len());
        let name: Arc<str> = each.bind.as_str().into();
        let around = &self.frame(place.frame).bindings;
        let mut items = Vec::with_capacity(values.len());
        for (at, value) in values.into_iter().enumerate() {
            let value = Data::new(value);
            let shown = match &each.key {
                None => value.digest().hex()[..16].to_owned(),
                Some(key) => {
                    let binding =
                        Binding { name: Arc::clone(&name), value: value.clone(), dynamic: true, file: None };
                    let bindings = around.iter().cloned().chain([binding]).collect();
                    let scope = self.scope(place.frame, bindings, Some(at + 1));
                    key.render(&scope, Render::Plain)
                        .map_err(|error| KeyFailed::Expr { at: at + 1, error })?
                }
            };
            if !seen.insert(shown.clone()) {
                return Err(KeyFailed::Twice { at: at + 1, key: shown });
            }
            items.push(Item { key: ItemKey::of(&shown), shown: shown.into(), value, index: at + 1 });
        }
        Ok(items)
    }

    /// The steps of a node are known: they exist, and those that may go on do.
    fn activate(&mut self, place: Place, items: Vec<Option<Item>>) {
        let plan = Arc::clone(&self.plan);
        let node = &plan.nodes[place.node.at()];
        let addr = self.addr_of(place);
        if node.each.is_some() {
            let keys = items.iter().flatten().map(|item| item.shown.to_string()).collect();
            self.record(Some(addr.clone()), None, Entry::Expanded { keys });
        }
        let warm = node.each.as_ref().is_some_and(|each| each.warm == Some(true));
        let cold = warm && matches!(node.work, Work::Agent(_));
        let mut active = Active { cold, ..Active::default() };
        for item in items {
            let addr = match &item {
                Some(item) => addr.with_item(item.key.clone()),
                None => addr.clone(),
            };
            active.steps.push(self.add_step(place, addr, item, StepRole::Work));
        }
        active.held.extend(active.steps.iter().copied());
        let empty = active.steps.is_empty();
        self.node_mut(place).phase = NodePhase::Active(active);
        if empty { self.settle_node(place) } else { self.let_go(place) }
    }

    pub(super) fn add_step(
        &mut self,
        place: Place,
        addr: StepAddr,
        item: Option<Item>,
        role: StepRole,
    ) -> StepIx {
        let attempt = self.past.attempts(&addr);
        self.steps.push(Step {
            frame: place.frame,
            node: place.node,
            addr,
            item,
            role,
            phase: StepPhase::Held,
            attempt,
            tries: 0,
            key: None,
            agent: None,
            usage: Usage::NOTHING,
            before: Usage::NOTHING,
            output: None,
            file: None,
            error: None,
            class: None,
            denials: Vec::new(),
            goes_on_from: None,
            fault: None,
            called_off: false,
            iteration_of: None,
            owner: None,
            context: self.frame(place.frame).context,
            question: None,
            answer: None,
            made: None,
            locked: false,
            child: None,
            family: None,
            said: Vec::new(),
        });
        step_ix(self.steps.len() - 1)
    }

    /// The first answer of a node's items begins, or was waited for long enough: the rest may go on.
    pub(super) fn warmed(&mut self, step: StepIx) {
        let place = self.place_of(step);
        let is_over = self.frame(place.frame).nodes.is_empty();
        if is_over || !self.may_start(place) {
            return;
        }
        if let NodePhase::Active(active) = &mut self.node_mut(place).phase
            && std::mem::replace(&mut active.cold, false)
        {
            self.let_go(place);
        }
    }

    /// Hands held steps on, as many as `each.concurrency` lets.
    pub(super) fn let_go(&mut self, place: Place) {
        let most = concurrency(&self.plan, place.node);
        loop {
            let NodePhase::Active(active) = &mut self.node_mut(place).phase else { return };
            if active.open >= most || active.called_off || (active.cold && active.open > 0) {
                return;
            }
            let Some(step) = active.held.pop_front() else { return };
            active.open += 1;
            self.begin_step(step);
        }
    }

    /// A step may go on: it owns iterations, or does its work.
    pub(super) fn begin_step(&mut self, step: StepIx) {
        let wanted = self.past.wanted(&self.steps[step.at()].addr);
        if wanted == Wanted::Leave {
            return self.skip_step(step, "not asked for in this take");
        }
        if self.stands_already(step) || !self.has_locks(step) {
            return;
        }
        let node = &self.plan.nodes[self.steps[step.at()].node.at()];
        if node.repeat.is_some() || matches!(node.work, Work::Group(_)) {
            self.begin_owner(step);
        } else {
            self.begin_work(step);
        }
    }

    /// What an earlier take did needs no lock.
    fn stands_already(&mut self, step: StepIx) -> bool {
        let plan = Arc::clone(&self.plan);
        let node = &plan.nodes[self.steps[step.at()].node.at()];
        let lone = node.repeat.is_none() && matches!(node.work, Work::Agent(_) | Work::Command(_));
        if !lone || node.locks.is_empty() || self.past.is_empty() {
            return false;
        }
        let earlier = self.content_key(step).ok().and_then(|key| self.earlier(step, &key));
        earlier.map(|success| self.cached(step, success)).is_some()
    }

    /// The success of an earlier take that stands for a step.
    fn earlier(&mut self, step: StepIx, key: &Digest) -> Option<PastSuccess> {
        let addr = &self.steps[step.at()].addr;
        let kept = match self.past.wanted(addr) {
            Wanted::Keep => self.past.kept(addr),
            Wanted::Run | Wanted::Leave => None,
        };
        kept.or_else(|| self.past.success(addr, key))
    }

    /// Computed at once, taken from an earlier take, asked, or queued.
    pub(super) fn begin_work(&mut self, step: StepIx) {
        let plan = Arc::clone(&self.plan);
        let node = &plan.nodes[self.steps[step.at()].node.at()];
        match &node.work {
            Work::Set { value } => {
                let checked = value.eval(&self.step_scope(step));
                match checked {
                    Ok(value) => match super::schema::check(&node.output, &value) {
                        Ok(()) => self.computed(step, value),
                        Err(error) => self.fail_step(step, FailureClass::Schema, error.to_string()),
                    },
                    Err(error) => self.fail_step(step, FailureClass::Expr, format!("value: {error}")),
                }
            }
            Work::Merge(merge) => self.begin_merge(step, merge),
            Work::Gate(gate) => self.begin_gate(step, gate),
            Work::Agent(_) | Work::Command(_) => self.begin_outside(step, node),
            Work::Group(_) => self.begin_owner(step),
        }
    }

    /// An agent, a command, a merge of branches: an earlier success stands for it, or it is in doubt, or it is queued.
    pub(super) fn begin_outside(&mut self, step: StepIx, node: &Node) {
        if self.past.is_empty() {
            return self.queue(step);
        }
        let key = match self.content_key(step) {
            Ok(key) => key,
            Err(error) => return self.fail_step(step, FailureClass::Expr, error.to_string()),
        };
        let addr = self.steps[step.at()].addr.clone();
        self.steps[step.at()].key = Some(key);
        if let Some(success) = self.earlier(step, &key) {
            return self.cached(step, success);
        }
        if self.past.in_doubt(&addr) && !self.decided_in_doubt(step, node, &addr) {
            return;
        }
        if let Some(difference) = self.past.differs(&addr, &key, &node.static_key) {
            let why = self.difference(step, difference);
            self.note(Some(addr.clone()), format!("runs again: {why}"));
        }
        if let Some(earlier) = self.past.transcript(&addr, &key) {
            self.steps[step.at()].goes_on_from = Some(earlier.attempt);
            self.steps[step.at()].fault = earlier.fault;
        }
        if let Some((_, answer)) = self.past.answer(&addr) {
            self.steps[step.at()].answer = Some(answer);
        }
        self.queue(step);
    }

    /// What `on_crash` says of a step in doubt. True: it runs again.
    fn decided_in_doubt(&mut self, step: StepIx, node: &Node, addr: &StepAddr) -> bool {
        // A merge of branches finishes or takes back what it began by itself.
        match (&node.work, node.on_crash) {
            (Work::Command(_), OnCrash::Ask) => self.ask_in_doubt(step),
            (Work::Command(_), OnCrash::Skip) => self.skip_step(step, IN_DOUBT),
            (Work::Command(_), OnCrash::Retry) => {
                let text = "ran at least once before; runs again (on_crash = retry)";
                self.note(Some(addr.clone()), text.into());
                return true;
            }
            (Work::Agent(_) | Work::Merge(_) | Work::Set { .. } | Work::Group(_) | Work::Gate(_), _) => {
                return true;
            }
        }
        false
    }

    /// What differs, and where it comes from.
    fn difference(&self, step: StepIx, difference: Difference) -> String {
        let place = self.place_of(step);
        let node = &self.plan.nodes[place.node.at()];
        let is_new = |need: &&NodeIx| match &self.node(Place { node: **need, ..place }).phase {
            NodePhase::Final(done) => done.state != EndState::Cached,
            NodePhase::Waiting | NodePhase::Reading | NodePhase::Active(_) => true,
        };
        match (difference, node.needs.iter().find(is_new)) {
            (Difference::Own, _) => difference.to_string(),
            (Difference::Upstream, Some(need)) => {
                format!("upstream {} changed", self.plan.nodes[need.at()].id)
            }
            (Difference::Upstream, None) => "an input or an item changed".to_owned(),
        }
    }

    /// The names that are bound around a step and for it, and its index.
    pub(super) fn step_bindings(&self, step: StepIx) -> (Vec<Binding>, Option<usize>) {
        let step = &self.steps[step.at()];
        let frame = self.frame(step.frame);
        let mut bindings = frame.bindings.to_vec();
        let mut index = frame.index;
        if let (Some(item), Some(each)) = (&step.item, &self.plan.nodes[step.node.at()].each) {
            index = Some(item.index);
            bindings.push(Binding {
                name: each.bind.as_str().into(),
                value: item.value.clone(),
                dynamic: each.is_dynamic(),
                file: None,
            });
        }
        let of = step.iteration_of.and_then(|owner| self.steps[owner.at()].owner.as_ref());
        bindings.extend(of.map(|owner| loop_binding(owner.iteration, &owner.carried)));
        (bindings, index)
    }

    /// The content key of a step.
    pub(super) fn content_key(&self, step: StepIx) -> Result<Digest, EvalError> {
        super::prepare::content_key(self, step)
    }
}

/// A list whose items cannot be told apart.
#[derive(Debug, thiserror::Error)]
enum KeyFailed {
    /// The template failed.
    #[error("each.key of item {at}: {error}")]
    Expr { at: usize, error: EvalError },
    /// E171.
    #[error("E171 each.key of item {at}: `{key}` is the key of an earlier item too")]
    Twice { at: usize, key: String },
}

fn concurrency(plan: &Plan, ix: NodeIx) -> usize {
    plan.nodes[ix.at()].each.as_ref().and_then(|each| each.concurrency).unwrap_or(usize::MAX)
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
