//! Groups and loops: a step that owns iterations, each of them a frame of its own or a step of its own.

use super::core::Schedule;
use super::event::{Command, Folder, StepIx};
use super::frame::{Frame, FrameIx, Place, Views, loop_binding};
use super::settle::plain_end;
use super::state::{NodePhase, StepPhase, StepRole};
use crate::addr::StepAddr;
use crate::expr::{Binding, Data, EvalError, InputView, NodeView, Scope};
use crate::journal::record::{EndState, Ended, Entry};
use crate::plan::model::{GroupWork, Isolation, Loop, NestedFile, Node, OnError, OnExhausted, Work};
use claw_agents::outcome::FailureClass;
use claw_kernel::digest::Digest;
use indexmap::IndexMap;
use serde_json::{Map, Value};
use std::sync::Arc;

/// What a step keeps that owns iterations.
#[derive(Debug)]
pub(super) struct Owner {
    /// The present one, from 1.
    pub iteration: u32,
    /// What the last one carries into this one.
    pub carried: Vec<(String, Data)>,
    /// Iterations in a row that carried the same.
    pub same: u32,
    /// Of a group: the present iteration's graph.
    pub frame: Option<FrameIx>,
    /// Of a loop over one node: the present iteration's step.
    pub current: Option<StepIx>,
    /// What is seen of the nodes around it.
    pub seen: Views,
    /// What all iterations rest on.
    pub base: Digest,
    /// What the iterations so far gave.
    pub past: Option<Digest>,
    /// It has taken as long as it may.
    pub expired: bool,
}

/// What an iteration came to.
enum Came {
    /// With this output.
    To(Value),
    /// A node of it failed.
    Failed { class: Option<FailureClass>, error: String },
    /// It was called off, or cancelled from outside.
    Cancelled,
}

/// What follows behind an iteration.
enum Next {
    /// It is the last one.
    Done,
    /// Another.
    Again(Vec<(String, Data)>),
    /// The loop may not go on.
    Exhausted(String),
}

/// Inputs of a nested file that do not fit.
#[derive(Debug, thiserror::Error)]
enum WithFailed {
    #[error("with.{name}: {source}")]
    Eval { name: String, source: EvalError },
    #[error("with.{name}: {source}")]
    Refused { name: String, source: crate::plan::decl::InputRefused },
}

impl Schedule {
    /// A group, a nested file or a loop begins.
    pub(super) fn begin_owner(&mut self, step: StepIx) {
        let plan = Arc::clone(&self.plan);
        let place = self.place_of(step);
        let node = &plan.nodes[place.node.at()];
        let base = self.owner_base(step, place);
        let seen = self.seen_from_inside(place);
        let current = &mut self.steps[step.at()];
        current.phase = StepPhase::Open;
        current.owner = Some(Box::new(Owner {
            iteration: 0,
            carried: Vec::new(),
            same: 0,
            frame: None,
            current: None,
            seen,
            base,
            past: None,
            expired: false,
        }));
        if let Work::Group(group) = &node.work
            && let Some(delay) = group.timeout
        {
            self.orders.push(Command::ExpireGroup { step, delay });
        }
        self.begin_iteration(step, Vec::new());
    }

    /// What its iterations rest on: its surroundings, its needs, its item.
    fn owner_base(&self, step: StepIx, place: Place) -> Digest {
        let mut parts = Vec::new();
        parts.extend(self.frame(place.frame).context.map(|context| context.as_bytes().to_vec()));
        parts.push(self.needs_digest(place).as_bytes().to_vec());
        if let Some(item) = &self.steps[step.at()].item {
            parts.push(item.shown.as_bytes().to_vec());
        }
        Digest::of_parts(parts)
    }

    /// Values of a nested file's inputs, for one iteration.
    fn with(
        &self,
        place: Place,
        nested: &NestedFile,
        (bindings, index): (Vec<Binding>, Option<usize>),
    ) -> Result<Arc<IndexMap<String, InputView>>, WithFailed> {
        let scope = self.scope(place.frame, bindings, index);
        let mut views = IndexMap::new();
        for (name, decl) in &nested.inputs {
            let given = match nested.with.iter().find(|(with, _)| with == name) {
                Some((_, expr)) => {
                    expr.eval(&scope).map_err(|source| WithFailed::Eval { name: name.clone(), source })?
                }
                None => Value::Null,
            };
            let input =
                decl.accept(given).map_err(|source| WithFailed::Refused { name: name.clone(), source })?;
            let view = InputView { value: Data::new(input.value), fenced: input.fenced, keyed: None };
            views.insert(name.clone(), view);
        }
        Ok(Arc::new(views))
    }

    pub(super) fn begin_iteration(&mut self, step: StepIx, carried: Vec<(String, Data)>) {
        let plan = Arc::clone(&self.plan);
        let place = self.place_of(step);
        let node = &plan.nodes[place.node.at()];
        let addr = self.steps[step.at()].addr.clone();
        let Some(owner) = self.steps[step.at()].owner.as_mut() else { return };
        owner.iteration += 1;
        owner.carried = carried;
        let iteration = owner.iteration;
        let addr = if node.repeat.is_some() { addr.iteration(iteration) } else { addr };
        let context = iteration_context(owner);
        match &node.work {
            Work::Group(group) => self.begin_body(step, place, group, addr, context),
            Work::Agent(_) | Work::Command(_) | Work::Set { .. } | Work::Merge(_) | Work::Gate(_) => {
                let item = self.steps[step.at()].item.clone();
                let inner = self.add_step(place, addr, item, StepRole::Work);
                let inside = &mut self.steps[inner.at()];
                inside.iteration_of = Some(step);
                inside.context = Some(context);
                if let Some(owner) = self.steps[step.at()].owner.as_mut() {
                    owner.current = Some(inner);
                }
                self.begin_work(inner);
            }
        }
    }

    fn begin_body(&mut self, step: StepIx, place: Place, group: &GroupWork, addr: StepAddr, context: Digest) {
        let plan = Arc::clone(&self.plan);
        let (mut bindings, mut index) = self.iteration_bindings(step);
        let outer = self.frame(place.frame);
        let (mut inputs, mut level) = (Arc::clone(&outer.inputs), outer.level);
        let Some(owner) = self.steps[step.at()].owner.as_ref() else { return };
        let mut views = Arc::clone(&owner.seen);
        if let Some(nested) = &group.nested {
            inputs = match self.with(place, nested, (std::mem::take(&mut bindings), index.take())) {
                Ok(inputs) => inputs,
                Err(error) => {
                    return self.close_owner_failed(step, FailureClass::Expr, error.to_string());
                }
            };
            views = Views::default();
            level = self.gate.level(&nested.limits, level);
        }
        let nodes = Frame::nodes_of(&plan, group.body);
        let frame = self.open_frame(Frame {
            owner: Some(step),
            body: group.body,
            open: nodes.len(),
            nodes,
            views,
            bindings: bindings.into(),
            index,
            inputs,
            prefix: Some(addr),
            context: Some(context),
            level,
            called_off: false,
        });
        if let Some(owner) = self.steps[step.at()].owner.as_mut() {
            owner.frame = Some(frame);
        }
    }

    /// All nodes of a body are final.
    pub(super) fn frame_closed(&mut self, ix: FrameIx) {
        let Some(step) = self.frame(ix).owner else { return };
        if self.steps[step.at()].phase != StepPhase::Open {
            return;
        }
        let came = self.body_came_to(ix, step);
        let scope = match (&came, self.is_nested(step)) {
            (Came::To(value), true) => self.nested_scope(step, value),
            (Came::To(_) | Came::Failed { .. } | Came::Cancelled, _) => self.body_scope(ix),
        };
        let outputs = self.body_digest(ix);
        // Nobody looks into it any more: what it holds goes.
        let frame = &mut self.frames[ix.at()];
        frame.nodes = Vec::new();
        frame.views = Views::default();
        self.iteration_came(step, came, &scope, outputs);
    }

    /// The step of one iteration is final. True: it was one.
    pub(super) fn iteration_ended(&mut self, step: StepIx, state: EndState) -> bool {
        let Some(owner) = self.steps[step.at()].iteration_of else { return false };
        let inner = &self.steps[step.at()];
        let output = inner.output.clone().unwrap_or_else(|| Data::new(Value::Null));
        let came = match state {
            EndState::Succeeded | EndState::Cached => Came::To(output.json().as_ref().clone()),
            EndState::Failed | EndState::Skipped => Came::Failed {
                class: inner.class,
                error: inner.error.clone().unwrap_or_else(|| "failed".to_owned()),
            },
            EndState::Cancelled | EndState::Interrupted => Came::Cancelled,
        };
        let scope = self.own_scope(owner, step, state);
        self.iteration_came(owner, came, &scope, output.digest());
        true
    }

    fn iteration_came(&mut self, step: StepIx, came: Came, scope: &Scope, outputs: Digest) {
        let plan = Arc::clone(&self.plan);
        let node = &plan.nodes[self.steps[step.at()].node.at()];
        if let Some(owner) = self.steps[step.at()].owner.as_mut() {
            let past = owner.past.map(|past| past.as_bytes().to_vec());
            owner.past = Some(Digest::of_parts(past.into_iter().chain([outputs.as_bytes().to_vec()])));
        }
        let value = match came {
            Came::To(value) => value,
            Came::Failed { class, error } => {
                return self.close_owner_failed(step, class.unwrap_or(FailureClass::Tool), error);
            }
            Came::Cancelled => return self.close_owner_cancelled(step),
        };
        let Some(repeat) = &node.repeat else { return self.close_owner(step, value) };
        match self.next(step, repeat, scope) {
            Ok(Next::Done) => self.close_owner(step, value),
            Ok(Next::Again(_)) if self.steps[step.at()].called_off => self.close_owner_cancelled(step),
            Ok(Next::Again(carried)) if self.may_go_on(step) => self.again.push_back((step, carried)),
            // Nothing new starts: how far it came is on record.
            Ok(Next::Again(_)) => {}
            Ok(Next::Exhausted(why)) => match repeat.on_exhausted {
                OnExhausted::Continue => self.close_owner(step, value),
                OnExhausted::Fail => self.close_owner_failed(step, FailureClass::Limit, why),
            },
            Err(error) => self.close_owner_failed(step, FailureClass::Expr, error.to_string()),
        }
    }

    /// Decides behind an iteration: over, again, or no further.
    fn next(&mut self, step: StepIx, repeat: &Loop, scope: &Scope) -> Result<Next, EvalError> {
        let Some(owner) = self.steps[step.at()].owner.as_mut() else { return Ok(Next::Done) };
        if let Some(until) = &repeat.until
            && until.is_true(scope)?
        {
            return Ok(Next::Done);
        }
        let mut carried = Vec::with_capacity(repeat.carry.len());
        for (name, expr) in &repeat.carry {
            carried.push((name.clone(), Data::new(expr.eval(scope)?)));
        }
        let digests =
            |list: &[(String, Data)]| list.iter().map(|(_, data)| data.digest()).collect::<Vec<_>>();
        let same = owner.iteration > 1 && digests(&carried) == digests(&owner.carried);
        owner.same = if same { owner.same + 1 } else { 1 };
        if owner.iteration >= repeat.max {
            return Ok(match repeat.until {
                Some(_) => Next::Exhausted(format!("not done after {} iterations (loop.max)", repeat.max)),
                None => Next::Done,
            });
        }
        if let Some(stall) = repeat.stall
            && !carried.is_empty()
            && owner.same >= stall
        {
            let why = format!("{stall} iterations carried the same values (loop.stall)");
            return Ok(if repeat.until.is_some() { Next::Exhausted(why) } else { Next::Done });
        }
        Ok(Next::Again(carried))
    }

    /// What the body of a group came to.
    fn body_came_to(&self, ix: FrameIx, step: StepIx) -> Came {
        let owner = &self.steps[step.at()];
        if owner.owner.as_ref().is_some_and(|owner| owner.expired) {
            let error = "timed out (the group's `timeout`)".to_owned();
            return Came::Failed { class: Some(FailureClass::Timeout), error };
        }
        if owner.called_off || self.frame(ix).called_off {
            return Came::Cancelled;
        }
        let frame = self.frame(ix);
        let mut cancelled = false;
        for (node, run) in frame.body.nodes().zip(&frame.nodes) {
            let planned = &self.plan.nodes[node.at()];
            let NodePhase::Final(done) = &run.phase else { continue };
            match done.state {
                EndState::Succeeded | EndState::Cached | EndState::Skipped => {}
                EndState::Failed if planned.on_error == OnError::Continue || planned.optional => {}
                EndState::Failed => {
                    let error = done.error.as_deref().unwrap_or("failed");
                    return Came::Failed { class: done.class, error: format!("{}: {error}", planned.id) };
                }
                EndState::Cancelled | EndState::Interrupted => cancelled = true,
            }
        }
        if cancelled {
            return Came::Cancelled;
        }
        match self.body_output(ix, step) {
            Ok(value) => Came::To(value),
            Err(error) => Came::Failed { class: Some(FailureClass::Expr), error: format!("result: {error}") },
        }
    }

    fn body_output(&self, ix: FrameIx, step: StepIx) -> Result<Value, EvalError> {
        let frame = self.frame(ix);
        let Work::Group(group) = &self.plan.nodes[self.steps[step.at()].node.at()].work else {
            return Ok(Value::Null);
        };
        if let Some(result) = &group.result {
            return result.eval(&self.body_scope(ix));
        }
        let output = |node: &Node| {
            frame.views.get(node.id.as_str()).map_or(Value::Null, |view| {
                let data = view.outputs.as_ref().filter(|_| group.nested.is_some());
                data.unwrap_or(&view.output).json().as_ref().clone()
            })
        };
        let nodes = frame.body.nodes().map(|node| &self.plan.nodes[node.at()]);
        if group.nested.is_some() {
            return Ok(super::status::of_terminal_nodes(nodes, output));
        }
        let fields = nodes.map(|node| (node.id.as_str().to_owned(), output(node)));
        Ok(Value::Object(fields.collect::<Map<_, _>>()))
    }

    fn body_scope(&self, ix: FrameIx) -> Scope {
        self.scope(ix, Vec::new(), self.frame(ix).index)
    }

    fn body_digest(&self, ix: FrameIx) -> Digest {
        let frame = self.frame(ix);
        let mut parts = Vec::new();
        for node in frame.body.nodes() {
            let id = self.plan.nodes[node.at()].id.as_str();
            if let Some(view) = frame.views.get(id) {
                parts.push(view.output.digest().as_bytes().to_vec());
            }
        }
        Digest::of_parts(parts)
    }

    /// What the loop of a single node evaluates in: what the node sees, and its own output by its own name.
    fn own_scope(&self, owner: StepIx, step: StepIx, state: EndState) -> Scope {
        let place = self.place_of(owner);
        let node = &self.plan.nodes[place.node.at()];
        let view = self.step_view(node, step, state);
        self.seen_with(owner, view, self.step_bindings(step))
    }

    fn seen_with(&self, owner: StepIx, own: NodeView, around: (Vec<Binding>, Option<usize>)) -> Scope {
        let (bindings, index) = around;
        let place = self.place_of(owner);
        let mut views =
            self.steps[owner.at()].owner.as_ref().map(|owner| Arc::clone(&owner.seen)).unwrap_or_default();
        let id = self.plan.nodes[place.node.at()].id.as_str();
        Arc::make_mut(&mut views).insert(id.to_owned(), Arc::new(own));
        self.scope_with(place.frame, views, bindings, index)
    }

    fn is_nested(&self, owner: StepIx) -> bool {
        let node = self.steps[owner.at()].node;
        matches!(&self.plan.nodes[node.at()].work, Work::Group(group) if group.nested.is_some())
    }

    /// What the loop of a nested file evaluates in: the names of its caller, never those inside it.
    fn nested_scope(&self, owner: StepIx, value: &Value) -> Scope {
        let place = self.place_of(owner);
        let node = &self.plan.nodes[place.node.at()];
        let mut view = self.step_view(node, owner, EndState::Succeeded);
        view.output = Data::new(value.clone());
        self.seen_with(owner, view, self.iteration_bindings(owner))
    }

    /// What a step sees that owns iterations, its present one included.
    fn iteration_bindings(&self, step: StepIx) -> (Vec<Binding>, Option<usize>) {
        let (mut bindings, index) = self.step_bindings(step);
        let step = &self.steps[step.at()];
        let repeats = self.plan.nodes[step.node.at()].repeat.is_some();
        let owner = step.owner.as_ref().filter(|_| repeats);
        bindings.extend(owner.map(|owner| loop_binding(owner.iteration, &owner.carried)));
        (bindings, index)
    }

    fn close_owner(&mut self, ix: StepIx, value: Value) {
        let plan = Arc::clone(&self.plan);
        let node = &plan.nodes[self.steps[ix.at()].node.at()];
        if let Err(error) = super::schema::check(&node.output, &value) {
            return self.close_owner_failed(ix, FailureClass::Schema, error.to_string());
        }
        self.leave_owner(ix);
        self.computed(ix, value);
    }

    fn close_owner_failed(&mut self, ix: StepIx, class: FailureClass, error: String) {
        self.leave_owner(ix);
        self.fail_step(ix, class, error);
    }

    /// It is no longer needed, or was cancelled.
    pub(super) fn close_owner_cancelled(&mut self, ix: StepIx) {
        self.leave_owner(ix);
        let why = if self.steps[ix.at()].called_off { "no longer needed" } else { "cancelled" };
        let step = &mut self.steps[ix.at()];
        step.error = Some(why.to_owned());
        step.class = Some(FailureClass::Cancelled);
        let addr = step.addr.clone();
        let ended = Ended {
            class: Some(FailureClass::Cancelled),
            ..plain_end(EndState::Cancelled, None, Some(why.to_owned()))
        };
        self.record(Some(addr), None, Entry::Ended(ended));
        self.close_step(ix, EndState::Cancelled);
    }

    /// Its folder is no longer worked in.
    fn leave_owner(&mut self, ix: StepIx) {
        let step = &self.steps[ix.at()];
        if let Isolation::Worktree(base) = self.plan.nodes[step.node.at()].isolation {
            let folder = Folder { owner: step.addr.clone(), attempt: 1, base, goes_on_from: None };
            self.orders.push(Command::CloseFolder(folder));
        }
    }

    /// A group has taken as long as it may.
    pub(super) fn group_expired(&mut self, ix: StepIx) {
        let step = &mut self.steps[ix.at()];
        if step.phase != StepPhase::Open {
            return;
        }
        if let Some(owner) = step.owner.as_mut() {
            owner.expired = true;
        }
        self.call_off_inside(ix);
    }

    /// Nothing of what a group or a loop does at the moment is needed any more.
    pub(super) fn call_off_inside(&mut self, ix: StepIx) {
        let Some(owner) = self.steps[ix.at()].owner.as_ref() else { return };
        let (frame, current) = (owner.frame, owner.current);
        if let Some(step) = current {
            self.call_off_step(step);
        }
        let Some(frame) = frame else { return };
        self.frames[frame.at()].called_off = true;
        let active = self.frames[frame.at()].nodes.iter().filter_map(|run| match &run.phase {
            NodePhase::Active(active) => Some(active.steps.clone()),
            NodePhase::Waiting | NodePhase::Reading | NodePhase::Final(_) => None,
        });
        let steps: Vec<StepIx> = active.flatten().collect();
        for step in steps {
            self.call_off_step(step);
        }
        let waiting: Vec<Place> = self
            .frame(frame)
            .body
            .nodes()
            .map(|node| Place { frame, node })
            .filter(|place| matches!(self.node(*place).phase, NodePhase::Reading))
            .collect();
        for place in waiting {
            self.cancel_node(place);
        }
    }
}

fn iteration_context(owner: &Owner) -> Digest {
    let mut parts = vec![owner.base.as_bytes().to_vec(), owner.iteration.to_le_bytes().to_vec()];
    for (name, value) in &owner.carried {
        parts.push(name.as_bytes().to_vec());
        parts.push(value.digest().as_bytes().to_vec());
    }
    parts.extend(owner.past.map(|past| past.as_bytes().to_vec()));
    Digest::of_parts(parts)
}
