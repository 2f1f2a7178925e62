//! Steps that may write into one folder at the same time (W140, E140).

use super::graph::Graph;
use super::model::{AgentWork, Isolation, MergeStrategy, Node, NodeIx, Work};
use claw_agents::definition::ToolSet;
use claw_agents::permission::{Permission, Reach};

/// Tools that change something.
const WRITING: [&str; 4] = ["bash", "write_file", "edit_file", "notebook_edit"];

fn reads_only(permission: Option<Permission>) -> bool {
    permission.is_some_and(|mode| mode.reach == Reach::ReadOnly)
}

fn agent_writes(agent: &AgentWork) -> bool {
    let definition = &agent.definition;
    let offered = |tool: &str| {
        let own = match &definition.tools {
            ToolSet::All => true,
            ToolSet::Only(tools) => tools.iter().any(|name| name == tool),
        };
        let narrowed = agent.tools.as_ref().is_none_or(|tools| tools.iter().any(|name| name == tool));
        let denied = agent.deny_tools.iter().chain(&definition.deny_tools).any(|name| name == tool);
        own && narrowed && !denied
    };
    !reads_only(agent.permission) && !reads_only(definition.permission) && WRITING.into_iter().any(offered)
}

fn may_write(node: &Node, writing: &[bool]) -> bool {
    match &node.work {
        Work::Agent(agent) => agent_writes(agent),
        Work::Command(command) => !reads_only(command.permission),
        Work::Merge(merge) => match &merge.strategy {
            MergeStrategy::Agent { agent, .. } => agent_writes(agent),
            // Git writes once, at its end, and not over what changed meanwhile.
            MergeStrategy::List
            | MergeStrategy::Concat
            | MergeStrategy::Dedupe { .. }
            | MergeStrategy::Git(_) => merge.write.is_some(),
        },
        Work::Group(group) => group.body.nodes().any(|ix| writing[ix.at()]),
        Work::Set { .. } | Work::Gate(_) => false,
    }
}

/// Which nodes may write into the folder that they share with their neighbours.
pub(super) fn writing(nodes: &[Node]) -> Vec<bool> {
    let mut writing = vec![false; nodes.len()];
    // Bodies stand behind their groups.
    for (at, node) in nodes.iter().enumerate().rev() {
        writing[at] = node.isolation == Isolation::None && may_write(node, &writing);
    }
    writing
}

/// Nodes of one graph that may write at the same time; empty where writers stand in one line.
pub(super) fn side_by_side(graph: &Graph<'_>, nodes: &[Node], writing: &[bool]) -> Vec<NodeIx> {
    let writers: Vec<NodeIx> = graph.body().nodes().filter(|ix| writing[ix.at()]).collect();
    let alone = |ix: &NodeIx| nodes[ix.at()].each.as_ref().is_some_and(|each| each.concurrency != Some(1));
    let fanned: Vec<NodeIx> = writers.iter().copied().filter(alone).collect();
    if !fanned.is_empty() {
        return fanned;
    }
    // Most writers on one way: if that is all of them, each waits for the one before.
    let weight = |ix: NodeIx| u32::from(writing[ix.at()]);
    if graph.heaviest_way(weight) == writers.len() {
        return Vec::new();
    }
    writers
}
