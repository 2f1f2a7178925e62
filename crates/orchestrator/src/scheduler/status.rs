//! How the run and its nodes stand: derived from the steps, never set.

use super::core::{Going, Schedule};
use super::event::RunEnd;
use super::frame::{FrameIx, Place};
use super::state::{Aside, NodeFinal, NodePhase, NodeRun, Step};
use crate::addr::{NodeId, StepAddr};
use crate::expr::EvalError;
use crate::journal::record::{EndState, RunStatus};
use crate::plan::model::{Node, NodeIx, OnError};
use crate::report;
use crate::report::status::{NodeEnd, RunFacts};
use claw_agents::outcome::{Denial, FailureClass};
use claw_kernel::ids::AgentId;
use claw_providers::usage::Usage;
use serde_json::{Map, Value};
use std::path::PathBuf;

/// A step as the report shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct StepStanding {
    /// Which.
    pub addr: StepAddr,
    /// Final state; `None` where it never came to one.
    pub state: Option<EndState>,
    /// Attempts over all takes.
    pub attempts: u32,
    /// The last agent.
    pub agent: Option<AgentId>,
    /// Why it did not succeed.
    pub error: Option<String>,
    /// Its class.
    pub class: Option<FailureClass>,
    /// Spent in this take.
    pub usage: Usage,
    /// The file that holds its output.
    pub file: Option<PathBuf>,
    /// What was denied.
    pub denials: Vec<Denial>,
}

/// A node as the report shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeStanding {
    /// Which.
    pub id: NodeId,
    /// Final state; `None` where it never came to one.
    pub state: Option<EndState>,
    /// Why it did not succeed.
    pub error: Option<String>,
    /// Its steps, in order.
    pub steps: Vec<StepStanding>,
}

impl Schedule {
    /// The status, the exit code and the result.
    pub(super) fn run_end(&self) -> RunEnd {
        let mut facts = RunFacts { nodes: self.node_ends(), partial: self.partial, ..RunFacts::default() };
        let reason = match &self.going {
            Going::Pausing { reason, .. } => {
                facts.paused = true;
                Some(reason.clone())
            }
            Going::Stopping { reason } => {
                facts.stopped = true;
                Some(reason.clone())
            }
            Going::Cancelling { signal } => {
                facts.signal = *signal;
                facts.cancelled = true;
                None
            }
            Going::On | Going::Over => None,
        };
        let (status, exit_code) = report::status::derive(&facts);
        let unfinished = facts.paused || (facts.stopped && self.plan.result.is_none());
        if facts.cancelled || unfinished {
            return RunEnd { status, exit_code, result: Value::Null, reason };
        }
        let (result, reason) = match self.result() {
            Ok(result) => (result, reason),
            Err(error) if status == RunStatus::Succeeded => {
                let reason = format!("workflow.result: {error}");
                return RunEnd {
                    status: RunStatus::Failed,
                    exit_code: 1,
                    result: Value::Null,
                    reason: Some(reason),
                };
            }
            Err(_) => (Value::Null, reason),
        };
        RunEnd { status, exit_code, result, reason }
    }

    fn node_ends(&self) -> Vec<NodeEnd> {
        let ends = self.top().map(|(node, run)| NodeEnd {
            state: match &run.phase {
                NodePhase::Final(done) => Some(done.state),
                NodePhase::Waiting | NodePhase::Reading | NodePhase::Active(_) => None,
            },
            optional: node.optional,
            tolerated: node.on_error == OnError::Continue,
        });
        ends.collect()
    }

    fn result(&self) -> Result<Value, EvalError> {
        let scope = self.scope(FrameIx::ROOT, Vec::new(), None);
        match &self.plan.result {
            Some(result) => result.eval(&scope),
            None => {
                let output = |node: &Node| {
                    scope.data().nodes.get(node.id.as_str()).map_or(Value::Null, |view| {
                        view.outputs.as_ref().unwrap_or(&view.output).json().as_ref().clone()
                    })
                };
                Ok(of_terminal_nodes(self.top().map(|(node, _)| node), output))
            }
        }
    }

    /// The nodes of the file itself.
    fn top(&self) -> impl Iterator<Item = (&Node, &NodeRun)> {
        let root = self.frame(FrameIx::ROOT);
        root.body.nodes().map(|ix| &self.plan.nodes[ix.at()]).zip(&root.nodes)
    }

    /// The node of the file itself in which a node stands.
    fn top_of(&self, mut node: NodeIx) -> NodeIx {
        while let Some(parent) = self.plan.nodes[node.at()].parent {
            node = parent;
        }
        node
    }

    /// The steps in whose iterations a step stands or whose agents started it, the outermost first, and itself.
    fn path_of(&self, at: usize) -> Vec<usize> {
        let above = |step: &Step| {
            let parent = step.child.as_ref().map(|child| child.parent);
            parent.or(step.iteration_of).or(self.frame(step.frame).owner)
        };
        let mut path = vec![at];
        let mut step = &self.steps[at];
        while let Some(owner) = above(step) {
            path.push(owner.at());
            step = &self.steps[owner.at()];
        }
        path.reverse();
        path
    }

    /// Keeps what a node of a body came to without a step.
    pub(super) fn set_aside(&mut self, place: Place, addr: StepAddr, done: &NodeFinal) {
        let Some(owner) = self.frame(place.frame).owner else { return };
        self.aside.push(Aside {
            addr,
            owner,
            behind: self.steps.len(),
            node: place.node,
            state: done.state,
            error: done.error.clone(),
            class: done.class,
        });
    }

    /// An optional node of a body that failed: the run is partial.
    pub(super) fn is_optional_inside(&self, place: Place, done: &NodeFinal) -> bool {
        let node = &self.plan.nodes[place.node.at()];
        let counts = node.optional && node.on_error == OnError::Fail && done.state == EndState::Failed;
        counts && self.frame(place.frame).owner.is_some()
    }

    /// All nodes with their steps; what stands in a group right behind it.
    pub fn report(&self) -> Vec<NodeStanding> {
        let mut reports: Vec<NodeStanding> = self
            .top()
            .map(|(node, run)| {
                let (state, error) = match &run.phase {
                    NodePhase::Final(done) => (Some(done.state), done.error.clone()),
                    NodePhase::Waiting | NodePhase::Reading | NodePhase::Active(_) => (None, None),
                };
                NodeStanding { id: node.id.clone(), state, error, steps: Vec::new() }
            })
            .collect();
        for (node, standing) in self.standings() {
            reports[self.top_of(node).at()].steps.push(standing);
        }
        reports
    }

    /// Steps, and nodes of bodies that came to none, in the order in which they are told.
    fn standings(&self) -> Vec<(NodeIx, StepStanding)> {
        let mut all = Vec::with_capacity(self.steps.len() + self.aside.len());
        for aside in &self.aside {
            let mut path = self.path_of(aside.owner.at());
            path.push(aside.behind);
            all.push((path, aside.node, aside.standing()));
        }
        let steps = self.steps.iter().enumerate().filter(|(_, step)| !step.addr.is_session());
        for (at, step) in steps {
            let state = step.phase.ended();
            let standing = StepStanding {
                addr: step.addr.clone(),
                state,
                attempts: step.attempt,
                agent: step.agent.clone(),
                error: step.error.clone(),
                class: step.class,
                usage: step.usage,
                file: step.file.clone(),
                denials: step.denials.clone(),
            };
            all.push((self.path_of(at), step.node, standing));
        }
        all.sort_by(|(one, ..), (other, ..)| one.cmp(other));
        all.into_iter().map(|(_, node, standing)| (node, standing)).collect()
    }
}

impl Aside {
    fn standing(&self) -> StepStanding {
        StepStanding {
            addr: self.addr.clone(),
            state: Some(self.state),
            attempts: 0,
            agent: None,
            error: self.error.clone(),
            class: self.class,
            usage: Usage::NOTHING,
            file: None,
            denials: Vec::new(),
        }
    }
}

/// One terminal node: its output. Several: an object of theirs.
pub(super) fn of_terminal_nodes<'a>(
    nodes: impl Iterator<Item = &'a Node>,
    output: impl Fn(&Node) -> Value,
) -> Value {
    let mut terminal = nodes.filter(|node| node.dependents.is_empty());
    match (terminal.next(), terminal.next()) {
        (Some(only), None) => output(only),
        (first, second) => Value::Object(
            first
                .into_iter()
                .chain(second)
                .chain(terminal)
                .map(|node| (node.id.as_str().to_owned(), output(node)))
                .collect::<Map<_, _>>(),
        ),
    }
}
