//! Order of the nodes: unknown names, cycles, who waits for whom, longest ways. No recursion.

use super::model::NodeIx;
use crate::workflow::file::{NodeFile, Val};
use crate::workflow::problem::{Code, Problem};
use crate::workflow::spans::Source;
use claw_kernel::near::nearest;
use petgraph::algo::{kosaraju_scc, toposort};
use petgraph::graph::{DiGraph, NodeIndex};
use std::collections::{HashMap, VecDeque};

/// The resolved edges.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub by_name: HashMap<String, NodeIx>,
    pub needs: Vec<Vec<NodeIx>>,
    pub after: Vec<Vec<NodeIx>>,
    pub dependents: Vec<Vec<NodeIx>>,
    pub critical_path: Vec<u32>,
    /// Everything stands behind what it waits for.
    pub order: Vec<NodeIx>,
}

/// Near names are looked for so many times: it costs a look at every name.
const NEAR_NAMES: usize = 20;

fn ix(index: usize) -> NodeIx {
    NodeIx(u32::try_from(index).unwrap_or(u32::MAX))
}

/// Resolves `needs` and `after`.
pub(super) fn resolve(source: &Source<'_>, nodes: &[NodeFile]) -> Result<Graph, Vec<Problem>> {
    let mut graph = Graph {
        by_name: nodes.iter().enumerate().map(|(at, node)| (node.id.as_str().to_owned(), ix(at))).collect(),
        ..Graph::default()
    };
    let mut problems = Vec::new();
    for node in nodes {
        for (name, list) in [("needs", &mut graph.needs), ("after", &mut graph.after)] {
            let mut found: Vec<NodeIx> = Vec::new();
            for value in node.keys.list(name) {
                match graph.by_name.get(value.text().unwrap_or_default()) {
                    Some(target) if found.contains(target) => {}
                    Some(target) => found.push(*target),
                    None => problems.push(unknown(source, nodes, node, name, value, problems.len())),
                }
            }
            list.push(found);
        }
    }
    let edges: usize = graph.needs.iter().chain(&graph.after).map(Vec::len).sum();
    let mut edge_graph: DiGraph<(), (), u32> = DiGraph::with_capacity(nodes.len(), edges);
    for _ in nodes {
        edge_graph.add_node(());
    }
    for (at, waits) in graph.needs.iter().zip(&graph.after).enumerate() {
        for from in waits.0.iter().chain(waits.1) {
            edge_graph.add_edge(NodeIndex::new(from.at()), NodeIndex::new(at), ());
        }
    }
    match toposort(&edge_graph, None) {
        Ok(order) => graph.order = order.into_iter().map(|node| ix(node.index())).collect(),
        Err(_) => problems.extend(cycles(source, nodes, &graph, &edge_graph)),
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    graph.finish();
    Ok(graph)
}

fn unknown(
    source: &Source<'_>,
    nodes: &[NodeFile],
    node: &NodeFile,
    list: &str,
    value: &Val,
    said: usize,
) -> Problem {
    let name = value.text().unwrap_or_default();
    let path = format!("node.{}.{list}", node.id);
    let near = (said < NEAR_NAMES)
        .then(|| {
            nearest(name, nodes.iter().filter(|other| other.id != node.id).map(|other| other.id.as_str()))
        })
        .flatten();
    source.problem(Code::E111, value.span.clone(), path, format!("there is no node `{name}`")).near(near)
}

/// One problem for each knot: a shortest cycle through its first node, in the order of waiting.
fn cycles(
    source: &Source<'_>,
    nodes: &[NodeFile],
    graph: &Graph,
    edges: &DiGraph<(), (), u32>,
) -> Vec<Problem> {
    let mut knots: Vec<Vec<usize>> = kosaraju_scc(edges)
        .into_iter()
        .map(|knot| knot.into_iter().map(|node| node.index()).collect::<Vec<_>>())
        .filter(|knot| knot.len() > 1 || graph.waits(knot[0]).any(|other| other == knot[0]))
        .collect();
    for knot in &mut knots {
        knot.sort_unstable();
    }
    knots.sort_unstable();
    let mut knot_of = vec![usize::MAX; nodes.len()];
    for (number, knot) in knots.iter().enumerate() {
        for node in knot {
            knot_of[*node] = number;
        }
    }
    knots
        .iter()
        .map(|knot| {
            let cycle = shortest_cycle(graph, &knot_of, knot[0]);
            let node = &nodes[knot[0]];
            let list = if node.keys.list("needs").is_empty() { "after" } else { "needs" };
            let span = node.keys.get(list).map_or(node.span.clone(), |value| value.span.clone());
            let message = format!("the nodes wait for each other: {}", shown(nodes, &cycle));
            source
                .problem(Code::E110, span, format!("node.{}.{list}", node.id), message)
                .with_help("take one of these out of `needs` or `after`")
        })
        .collect()
}

fn shown(nodes: &[NodeFile], cycle: &[usize]) -> String {
    const MOST: usize = 40;
    let name = |at: &usize| nodes[*at].id.as_str();
    if cycle.len() <= MOST {
        return cycle.iter().map(name).collect::<Vec<_>>().join(" -> ");
    }
    let head = cycle[..MOST / 2].iter().map(name).collect::<Vec<_>>().join(" -> ");
    let tail = cycle[cycle.len() - MOST / 2..].iter().map(name).collect::<Vec<_>>().join(" -> ");
    format!("{head} -> … {} more … -> {tail}", cycle.len() - MOST)
}

fn shortest_cycle(graph: &Graph, knot_of: &[usize], start: usize) -> Vec<usize> {
    let mut came_from: HashMap<usize, usize> = HashMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        for next in graph.waits(at).filter(|next| knot_of[*next] == knot_of[start]) {
            if next == start {
                let mut back = vec![start, at];
                let mut node = at;
                while node != start {
                    node = came_from.get(&node).copied().unwrap_or(start);
                    back.push(node);
                }
                if at == start {
                    back.truncate(2);
                }
                back.reverse();
                return back;
            }
            if let std::collections::hash_map::Entry::Vacant(entry) = came_from.entry(next) {
                entry.insert(at);
                queue.push_back(next);
            }
        }
    }
    vec![start]
}

impl Graph {
    fn waits(&self, node: usize) -> impl Iterator<Item = usize> {
        self.needs[node].iter().chain(&self.after[node]).map(|other| other.at())
    }

    fn finish(&mut self) {
        let count = self.needs.len();
        self.dependents = vec![Vec::new(); count];
        for node in 0..count {
            for other in self.needs[node].iter().chain(&self.after[node]) {
                let list = &mut self.dependents[other.at()];
                if list.last() != Some(&ix(node)) {
                    list.push(ix(node));
                }
            }
        }
        self.critical_path = vec![1; count];
        for node in self.order.iter().rev() {
            let longest = self.dependents[node.at()].iter().map(|other| self.critical_path[other.at()]).max();
            self.critical_path[node.at()] = 1 + longest.unwrap_or(0);
        }
    }

    /// Looks ahead from nodes, for many in turn: what is marked is not cleared but outdated.
    pub(super) fn ahead(&self) -> Ahead<'_> {
        let mut position = vec![0; self.order.len()];
        for (at, node) in self.order.iter().enumerate() {
            position[node.at()] = at;
        }
        Ahead { graph: self, position, marks: vec![0; self.needs.len()], mark: 0 }
    }
}

/// What comes behind a node.
pub(super) struct Ahead<'g> {
    graph: &'g Graph,
    position: Vec<usize>,
    marks: Vec<u32>,
    mark: u32,
}

impl Ahead<'_> {
    /// Marks what comes behind a node, no further than the last of these nodes stands in the order.
    pub(super) fn look(&mut self, from: NodeIx, for_nodes: impl Iterator<Item = NodeIx>) {
        let last = for_nodes.map(|node| self.position[node.at()]).max().unwrap_or(0);
        self.mark += 1;
        let mut queue = vec![from];
        while let Some(at) = queue.pop() {
            for next in &self.graph.dependents[at.at()] {
                if self.position[next.at()] <= last && self.marks[next.at()] != self.mark {
                    self.marks[next.at()] = self.mark;
                    queue.push(*next);
                }
            }
        }
    }

    /// Whether the last look found this node.
    pub(super) fn found(&self, node: NodeIx) -> bool {
        self.marks[node.at()] == self.mark
    }
}
