//! A node whose needs are final: join, condition, items, steps.

use super::core::{Going, Schedule, step_ix};
use super::event::{Command, ItemsFailed, ItemsToRead, StepIx};
use super::state::{Active, Item, NodeFinal, NodePhase, Step, StepPhase, StepRole};
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
    pub(super) fn resolve(&mut self, ix: NodeIx) {
        let plan = Arc::clone(&self.plan);
        let node = &plan.nodes[ix.at()];
        if let Some(cause) = self.refused(node) {
            let error = self.cause_text(cause);
            return self.skip(ix, cause, error);
        }
        if let Some(when) = &node.when {
            match when.is_true(&self.scope(Vec::new(), None)) {
                Ok(true) => {}
                Ok(false) => return self.skip(ix, ix, "`when` is false".to_owned()),
                Err(error) => return self.fail_node(ix, FailureClass::Expr, format!("when: {error}")),
            }
        }
        match &node.each {
            None => self.activate(ix, vec![None]),
            Some(each) => self.find_items(ix, each),
        }
    }

    /// The need that keeps the node's `join` from being met.
    fn refused(&self, node: &Node) -> Option<NodeIx> {
        let state = |need: &&NodeIx| match &self.nodes[need.at()].phase {
            NodePhase::Final(done) => Some((done.state, self.plan.nodes[need.at()].on_error)),
            NodePhase::Waiting | NodePhase::Reading | NodePhase::Active(_) => None,
        };
        let met = |need: &&NodeIx| match state(need) {
            Some((EndState::Succeeded | EndState::Cached, _)) => true,
            Some((EndState::Failed, OnError::Continue)) => true,
            Some((EndState::Skipped, _)) => node.join != Join::AllSucceeded,
            Some((EndState::Failed | EndState::Cancelled | EndState::Interrupted, _)) | None => false,
        };
        match node.join {
            Join::AllDone => None,
            Join::AllSucceeded | Join::NoneFailed => {
                node.needs.iter().find(|need| !met(need)).map(|need| match &self.nodes[need.at()].phase {
                    NodePhase::Final(NodeFinal { cause: Some(cause), .. }) => *cause,
                    NodePhase::Final(_) | NodePhase::Waiting | NodePhase::Reading | NodePhase::Active(_) => {
                        *need
                    }
                })
            }
        }
    }

    /// Such as `b failed`: names the root, not only the neighbour.
    fn cause_text(&self, cause: NodeIx) -> String {
        let id = &self.plan.nodes[cause.at()].id;
        match &self.nodes[cause.at()].phase {
            NodePhase::Final(NodeFinal { state: EndState::Skipped, .. }) => format!("{id} was skipped"),
            NodePhase::Final(NodeFinal { state: EndState::Cancelled, .. }) => format!("{id} was cancelled"),
            NodePhase::Final(_) | NodePhase::Waiting | NodePhase::Reading | NodePhase::Active(_) => {
                format!("{id} failed")
            }
        }
    }

    fn skip(&mut self, ix: NodeIx, cause: NodeIx, error: String) {
        self.close_node(
            ix,
            NodeFinal { state: EndState::Skipped, cause: Some(cause), error: Some(error), class: None },
            true,
        );
    }

    /// Fails a node before any step of it exists.
    pub(super) fn fail_node(&mut self, ix: NodeIx, class: FailureClass, error: String) {
        self.close_node(
            ix,
            NodeFinal { state: EndState::Failed, cause: Some(ix), error: Some(error), class: Some(class) },
            true,
        );
    }

    fn find_items(&mut self, ix: NodeIx, each: &Each) {
        let scope = self.scope(Vec::new(), None);
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
                return self.activate(ix, items.collect());
            }
            EachSource::Items(expr) => {
                return match expr.eval(&scope) {
                    Ok(Value::Array(items)) => self.expand(ix, each, items),
                    Ok(Value::Null) => self.expand(ix, each, Vec::new()),
                    Ok(other) => {
                        let text = format!("each.items gives {}, not a list", kind_of(&other));
                        self.fail_node(ix, FailureClass::Expr, text);
                    }
                    Err(error) => self.fail_node(ix, FailureClass::Expr, format!("each.items: {error}")),
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
                self.nodes[ix.at()].phase = NodePhase::Reading;
                self.expected += 1;
                self.orders.push(Command::ReadItems { node: ix, source });
            }
            Err(error) => self.fail_node(ix, FailureClass::Expr, format!("each: {error}")),
        }
    }

    /// The items of a dynamic source came from the disk.
    pub(super) fn items_read(&mut self, ix: NodeIx, items: Result<Vec<Value>, ItemsFailed>) {
        self.expected = self.expected.saturating_sub(1);
        if self.going != Going::On {
            return;
        }
        let plan = Arc::clone(&self.plan);
        match (items, &plan.nodes[ix.at()].each) {
            (Ok(items), Some(each)) => self.expand(ix, each, items),
            (Err(error), _) => self.fail_node(ix, FailureClass::Expr, format!("each: {error}")),
            (Ok(_), None) => {}
        }
    }

    fn expand(&mut self, ix: NodeIx, each: &Each, values: Vec<Value>) {
        if let Some(max) = each.max.filter(|max| values.len() > *max) {
            let text = format!("each has {} items, more than its max of {max}", values.len());
            return self.fail_node(ix, FailureClass::Limit, text);
        }
        match self.keyed(each, values) {
            Ok(items) => self.activate(ix, items.into_iter().map(Some).collect()),
            Err(failed) => self.fail_node(ix, FailureClass::Expr, failed.to_string()),
        }
    }

    fn keyed(&self, each: &Each, values: Vec<Value>) -> Result<Vec<Item>, KeyFailed> {
        let mut seen = HashSet::with_capacity(values.len());
        let name: Arc<str> = each.bind.as_str().into();
        let mut items = Vec::with_capacity(values.len());
        for (at, value) in values.into_iter().enumerate() {
            let value = Data::new(value);
            let shown = match &each.key {
                None => value.digest().hex()[..16].to_owned(),
                Some(key) => {
                    let binding =
                        Binding { name: Arc::clone(&name), value: value.clone(), dynamic: true, file: None };
                    let scope = self.scope(vec![binding], Some(at + 1));
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
    fn activate(&mut self, ix: NodeIx, items: Vec<Option<Item>>) {
        let plan = Arc::clone(&self.plan);
        let node = &plan.nodes[ix.at()];
        if node.each.is_some() {
            let keys = items.iter().flatten().map(|item| item.shown.to_string()).collect();
            self.record(Some(StepAddr::node(node.id.clone())), None, Entry::Expanded { keys });
        }
        let mut active = Active::default();
        for item in items {
            let addr = match &item {
                Some(item) => StepAddr::item(node.id.clone(), item.key.clone()),
                None => StepAddr::node(node.id.clone()),
            };
            active.steps.push(self.add_step(ix, addr, item, StepRole::Work));
        }
        active.held.extend(active.steps.iter().copied());
        let empty = active.steps.is_empty();
        self.nodes[ix.at()].phase = NodePhase::Active(active);
        if empty { self.settle_node(ix) } else { self.let_go(ix) }
    }

    pub(super) fn add_step(
        &mut self,
        node: NodeIx,
        addr: StepAddr,
        item: Option<Item>,
        role: StepRole,
    ) -> StepIx {
        let attempt = self.past.attempts(&addr);
        self.steps.push(Step {
            node,
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
        });
        step_ix(self.steps.len() - 1)
    }

    /// Hands held steps on, as many as `each.concurrency` lets.
    pub(super) fn let_go(&mut self, ix: NodeIx) {
        let most = concurrency(&self.plan, ix);
        loop {
            let NodePhase::Active(active) = &mut self.nodes[ix.at()].phase else { return };
            if active.open >= most || active.called_off {
                return;
            }
            let Some(step) = active.held.pop_front() else { return };
            active.open += 1;
            self.begin_step(step);
        }
    }

    /// A step may go on: computed at once, taken from an earlier take, or queued.
    fn begin_step(&mut self, step: StepIx) {
        let plan = Arc::clone(&self.plan);
        let ix = self.steps[step.at()].node;
        match &plan.nodes[ix.at()].work {
            Work::Set { value } => {
                let (bindings, index) = self.item_bindings(step);
                let checked = value.eval(&self.scope(bindings, index));
                match checked {
                    Ok(value) => match super::schema::check(&plan.nodes[ix.at()].output, &value) {
                        Ok(()) => self.computed(step, value),
                        Err(error) => self.fail_step(step, FailureClass::Schema, error.to_string()),
                    },
                    Err(error) => self.fail_step(step, FailureClass::Expr, format!("value: {error}")),
                }
            }
            Work::Merge(merge) => self.begin_merge(step, merge),
            Work::Agent(_) | Work::Command(_) | Work::Group(_) | Work::Gate(_) => {
                self.begin_outside(step, &plan.nodes[ix.at()])
            }
        }
    }

    /// An agent or a command: an earlier success stands for it, or it is in doubt, or it is queued.
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
        if let Some(success) = self.past.success(&addr, &key) {
            return self.cached(step, success);
        }
        if self.past.in_doubt(&addr) {
            match (&node.work, node.on_crash) {
                (Work::Command(_), OnCrash::Ask) => return self.hold_in_doubt(step),
                (Work::Command(_), OnCrash::Skip) => return self.skip_step(step, "in doubt after a crash"),
                (Work::Command(_), OnCrash::Retry) => {
                    self.note(
                        Some(addr.clone()),
                        "ran at least once before; runs again (on_crash = retry)".into(),
                    );
                }
                (Work::Agent(_) | Work::Merge(_) | Work::Set { .. } | Work::Group(_) | Work::Gate(_), _) => {}
            }
        }
        if let Some(difference) = self.past.differs(&addr, &key, &node.static_key) {
            let why = self.difference(node, difference);
            self.note(Some(addr.clone()), format!("runs again: {why}"));
        }
        if let Some(earlier) = self.past.transcript(&addr, &key) {
            self.steps[step.at()].goes_on_from = Some(earlier.attempt);
            self.steps[step.at()].fault = earlier.fault;
        }
        self.queue(step);
    }

    /// What differs, and where it comes from.
    fn difference(&self, node: &Node, difference: Difference) -> String {
        let is_new = |need: &&NodeIx| match &self.nodes[need.at()].phase {
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

    fn hold_in_doubt(&mut self, step: StepIx) {
        self.steps[step.at()].phase = StepPhase::Backoff;
        self.doubts.push(step);
        let addr = self.steps[step.at()].addr.clone();
        self.note(Some(addr), "in doubt: its command was interrupted, it may have taken effect".to_owned());
    }

    /// Everything else is done: the run waits for a person's word on the steps in doubt.
    pub(super) fn pause_for_doubts(&mut self) {
        let names: Vec<String> =
            self.doubts.iter().map(|step| self.steps[step.at()].addr.to_string()).collect();
        let which = if names.len() == 1 { "step" } else { "steps" };
        let reason = format!(
            "{which} {} interrupted while running a command: unknown whether it took effect (it ran at least once); \
             check, then set on_crash = \"retry\" or \"skip\" on the node and resume",
            names.join(", ")
        );
        self.going = Going::Pausing { reason, until: None };
    }

    /// The item's names, and its index.
    pub(super) fn item_bindings(&self, step: StepIx) -> (Vec<Binding>, Option<usize>) {
        let step = &self.steps[step.at()];
        let each = self.plan.nodes[step.node.at()].each.as_ref();
        match (&step.item, each) {
            (Some(item), Some(each)) => {
                let binding = Binding {
                    name: each.bind.as_str().into(),
                    value: item.value.clone(),
                    dynamic: !matches!(each.source, EachSource::Static(_)),
                    file: None,
                };
                (vec![binding], Some(item.index))
            }
            (None | Some(_), _) => (Vec::new(), None),
        }
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
