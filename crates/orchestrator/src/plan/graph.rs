//! Order of the nodes: unknown names, cycles, who waits for whom, longest ways. No recursion.

use super::model::{Body, NodeIx};
use crate::workflow::file::{NodeFile, Val};
use crate::workflow::problem::{Code, Problem};
use crate::workflow::spans::Source;
use claw_kernel::near::nearest;
use petgraph::algo::{kosaraju_scc, toposort};
use petgraph::graph::{DiGraph, NodeIndex};
use std::collections::{HashMap, VecDeque};

/// The resolved edges of one graph. Nodes are named by their places in the arena.
#[derive(Debug, Default)]
pub(super) struct Graph<'a> {
    /// The group or nested file whose body this is.
    pub parent: Option<NodeIx>,
    /// Nothing outside is visible in it: a file's own graph.
    pub sealed: bool,
    /// Its file.
    pub file: usize,
    pub by_name: HashMap<&'a str, NodeIx>,
    /// Everything stands behind what it waits for.
    pub order: Vec<NodeIx>,
    first: usize,
    needs: Vec<Vec<NodeIx>>,
    after: Vec<Vec<NodeIx>>,
    dependents: Vec<Vec<NodeIx>>,
}

/// Near names are looked for so many times: it costs a look at every name.
const NEAR_NAMES: usize = 20;

fn ix(index: usize) -> NodeIx {
    NodeIx(u32::try_from(index).unwrap_or(u32::MAX))
}

impl<'a> Graph<'a> {
    /// Resolves `needs` and `after` of nodes that begin at this place of the arena, with what is wrong.
    pub(super) fn new(source: &Source, nodes: &'a [NodeFile], first: usize) -> (Self, Vec<Problem>) {
        let named = nodes.iter().enumerate().map(|(at, node)| (node.id.as_str(), ix(first + at)));
        let mut graph = Graph { first, by_name: named.collect(), ..Graph::default() };
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
        for at in 0..nodes.len() {
            for from in graph.waits(at) {
                edge_graph.add_edge(NodeIndex::new(from), NodeIndex::new(at), ());
            }
        }
        match toposort(&edge_graph, None) {
            Ok(order) => graph.order = order.into_iter().map(|node| ix(first + node.index())).collect(),
            Err(_) => problems.extend(cycles(source, nodes, &graph, &edge_graph)),
        }
        graph.turn_round();
        (graph, problems)
    }
}

fn unknown(
    source: &Source,
    nodes: &[NodeFile],
    node: &NodeFile,
    list: &str,
    value: &Val,
    said: usize,
) -> Problem {
    let name = value.text().unwrap_or_default();
    let path = format!("node.{}.{list}", node.path());
    let near = (said < NEAR_NAMES)
        .then(|| {
            nearest(name, nodes.iter().filter(|other| other.id != node.id).map(|other| other.id.as_str()))
        })
        .flatten();
    source.problem(Code::E111, value.span.clone(), path, format!("there is no node `{name}`")).near(near)
}

/// One problem for each knot: a shortest cycle through its first node, in the order of waiting.
fn cycles(
    source: &Source,
    nodes: &[NodeFile],
    graph: &Graph<'_>,
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
                .problem(Code::E110, span, format!("node.{}.{list}", node.path()), message)
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

fn shortest_cycle(graph: &Graph<'_>, knot_of: &[usize], start: usize) -> Vec<usize> {
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

impl Graph<'_> {
    /// Places in this graph that a place waits for.
    fn waits(&self, node: usize) -> impl Iterator<Item = usize> {
        self.needs[node].iter().chain(&self.after[node]).map(|other| other.at() - self.first)
    }

    /// Its nodes.
    pub(super) fn body(&self) -> Body {
        let place = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        Body { first: place(self.first), count: place(self.needs.len()) }
    }

    pub(super) fn needs(&self, node: NodeIx) -> &[NodeIx] {
        &self.needs[node.at() - self.first]
    }

    pub(super) fn after(&self, node: NodeIx) -> &[NodeIx] {
        &self.after[node.at() - self.first]
    }

    pub(super) fn dependents(&self, node: NodeIx) -> &[NodeIx] {
        &self.dependents[node.at() - self.first]
    }

    /// Whether one names the other in `needs` or `after`.
    pub(super) fn waits_for(&self, node: NodeIx, other: NodeIx) -> bool {
        self.needs(node).contains(&other) || self.after(node).contains(&other)
    }

    fn turn_round(&mut self) {
        self.dependents = vec![Vec::new(); self.needs.len()];
        for node in 0..self.needs.len() {
            for other in self.needs[node].iter().chain(&self.after[node]) {
                let list = &mut self.dependents[other.at() - self.first];
                if list.last() != Some(&ix(self.first + node)) {
                    list.push(ix(self.first + node));
                }
            }
        }
    }

    /// The longest way from each node to an end of this graph. Both lists are over the whole arena.
    pub(super) fn critical_path(&self, weight: &[u32], path: &mut [u32]) {
        for node in self.order.iter().rev() {
            let longest = self.dependents(*node).iter().map(|other| path[other.at()]).max();
            path[node.at()] = weight[node.at()].saturating_add(longest.unwrap_or(0));
        }
    }

    /// The largest sum of weights on one way.
    pub(super) fn heaviest_way(&self, weight: impl Fn(NodeIx) -> u32) -> usize {
        let mut on_way = vec![0_usize; self.needs.len()];
        for node in &self.order {
            let place = node.at() - self.first;
            let before = self.waits(place).map(|other| on_way[other]).max().unwrap_or(0);
            on_way[place] = before + weight(*node) as usize;
        }
        on_way.into_iter().max().unwrap_or(0)
    }

    /// Looks ahead from nodes, for many in turn: what is marked is not cleared but outdated.
    pub(super) fn ahead(&self) -> Ahead<'_> {
        let mut position = vec![0; self.order.len()];
        for (at, node) in self.order.iter().enumerate() {
            position[node.at() - self.first] = at;
        }
        Ahead { graph: self, position, marks: vec![0; self.needs.len()], mark: 0 }
    }
}

/// What comes behind a node.
pub(super) struct Ahead<'g> {
    graph: &'g Graph<'g>,
    position: Vec<usize>,
    marks: Vec<u32>,
    mark: u32,
}

impl Ahead<'_> {
    /// Marks what comes behind a node, no further than the last of these nodes stands in the order.
    pub(super) fn look(&mut self, from: NodeIx, for_nodes: impl Iterator<Item = NodeIx>) {
        let first = self.graph.first;
        let last = for_nodes.map(|node| self.position[node.at() - first]).max().unwrap_or(0);
        self.mark += 1;
        let mut queue = vec![from];
        while let Some(at) = queue.pop() {
            for next in self.graph.dependents(at) {
                let place = next.at() - first;
                if self.position[place] <= last && self.marks[place] != self.mark {
                    self.marks[place] = self.mark;
                    queue.push(*next);
                }
            }
        }
    }

    /// Whether the last look found this node.
    pub(super) fn found(&self, node: NodeIx) -> bool {
        self.marks[node.at() - self.graph.first] == self.mark
    }
}
