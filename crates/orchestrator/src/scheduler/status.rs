//! How the run and its nodes stand: derived from the steps, never set.

use super::core::{Going, Schedule, step_ix};
use super::event::RunEnd;
use super::frame::FrameIx;
use super::state::{NodePhase, NodeRun};
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
        let mut facts = RunFacts { nodes: self.node_ends(), ..RunFacts::default() };
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

    /// All nodes with their steps.
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
        let roots = (0..self.steps.len()).map(step_ix).filter(|ix| self.steps[ix.at()].child.is_none());
        for ix in roots.flat_map(|ix| self.with_children(ix)) {
            let step = &self.steps[ix.at()];
            let state = step.phase.ended();
            reports[self.top_of(step.node).at()].steps.push(StepStanding {
                addr: step.addr.clone(),
                state,
                attempts: step.attempt,
                agent: step.agent.clone(),
                error: step.error.clone(),
                class: step.class,
                usage: step.usage,
                file: step.file.clone(),
                denials: step.denials.clone(),
            });
        }
        reports
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
