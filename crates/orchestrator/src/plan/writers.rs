//! Steps that may write into one folder at the same time (W140, E140).

use super::graph::Graph;
use super::model::{Node, Work};
use claw_agents::definition::ToolSet;
use claw_agents::permission::{Permission, Reach};

/// Tools that change something.
const WRITING: [&str; 4] = ["bash", "write_file", "edit_file", "notebook_edit"];

fn reads_only(permission: Option<Permission>) -> bool {
    permission.is_some_and(|mode| mode.reach == Reach::ReadOnly)
}

fn may_write(node: &Node) -> bool {
    match &node.work {
        Work::Agent(agent) => {
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
            !reads_only(agent.permission)
                && !reads_only(definition.permission)
                && WRITING.into_iter().any(offered)
        }
        Work::Command(command) => !reads_only(command.permission),
        Work::Set { .. } | Work::Merge(_) | Work::Group(_) | Work::Gate(_) => false,
    }
}

/// Names of nodes that may write at the same time; empty where writers stand in one line.
pub(super) fn side_by_side(graph: &Graph, nodes: &[Node]) -> Vec<usize> {
    let writers: Vec<bool> = nodes.iter().map(may_write).collect();
    let alone = |at: usize| nodes[at].each.as_ref().is_some_and(|each| each.concurrency != Some(1));
    let fanned: Vec<usize> = (0..nodes.len()).filter(|at| writers[*at] && alone(*at)).collect();
    if !fanned.is_empty() {
        return fanned;
    }
    // Most writers on one way: if that is all of them, each waits for the one before.
    let mut on_way = vec![0_usize; nodes.len()];
    for ix in &graph.order {
        let waits = graph.needs[ix.at()].iter().chain(&graph.after[ix.at()]);
        let before = waits.map(|other| on_way[other.at()]).max().unwrap_or(0);
        on_way[ix.at()] = before + usize::from(writers[ix.at()]);
    }
    let count = writers.iter().filter(|writes| **writes).count();
    if on_way.iter().copied().max().unwrap_or(0) == count {
        return Vec::new();
    }
    (0..nodes.len()).filter(|at| writers[*at]).collect()
}
