//! All graphs of a plan in one arena: the nodes of the file first, then the bodies, each in one piece.

use super::files::{FileUnit, Loaded};
use super::graph::Graph;
use super::model::{Body, NodeIx};
use crate::workflow::file::NodeFile;
use crate::workflow::keys::NodeKind;
use crate::workflow::problem::Problem;

/// A node's place among the graphs.
#[derive(Debug)]
pub(super) struct Slot<'a> {
    pub node: &'a NodeFile,
    /// Its file, in `files`.
    pub file: usize,
    /// Its graph, in `graphs`.
    pub graph: usize,
    /// Its own body, in `graphs`.
    pub inner: Option<usize>,
}

/// Every graph behind the one that its group stands in.
#[derive(Debug)]
pub(super) struct Forest<'a> {
    pub files: &'a [FileUnit],
    pub slots: Vec<Slot<'a>>,
    pub graphs: Vec<Graph<'a>>,
    pub critical_path: Vec<u32>,
}

impl<'a> Forest<'a> {
    /// Lays the nodes out and resolves every graph. The stage of graphs.
    ///
    /// # Errors
    /// E110 to E112 of all graphs.
    pub(super) fn new(loaded: &'a Loaded) -> Result<Self, Vec<Problem>> {
        let files = &loaded.files;
        let mut problems = loaded.problems.clone();
        let mut slots: Vec<Slot<'a>> = Vec::new();
        let mut graphs: Vec<Graph<'a>> = Vec::new();
        let mut waiting: std::collections::VecDeque<(&'a [NodeFile], usize, Option<NodeIx>)> =
            [(files[0].written.nodes.as_slice(), 0, None)].into();
        let mut next = slots.len();
        loop {
            while let Some((nodes, file, parent)) = waiting.pop_front() {
                let first = slots.len();
                let number = graphs.len();
                let sealed = parent.is_none_or(|ix: NodeIx| slots[ix.at()].file != file);
                if let Some(ix) = parent {
                    slots[ix.at()].inner = Some(number);
                }
                let (mut graph, wrong) = Graph::new(&files[file].source, nodes, first);
                problems.extend(wrong);
                (graph.parent, graph.sealed, graph.file) = (parent, sealed, file);
                graphs.push(graph);
                slots.extend(nodes.iter().map(|node| Slot { node, file, graph: number, inner: None }));
            }
            let Some(slot) = slots.get(next) else { break };
            let ix = NodeIx(u32::try_from(next).unwrap_or(u32::MAX));
            next += 1;
            match slot.node.kind {
                NodeKind::Group => waiting.push_back((&slot.node.body, slot.file, Some(ix))),
                NodeKind::Workflow => {
                    if let Some(called) = files[slot.file].called.get(&slot.node.span.start) {
                        waiting.push_back((&files[*called].written.nodes, *called, Some(ix)));
                    }
                }
                NodeKind::Agent | NodeKind::Command | NodeKind::Gate | NodeKind::Merge | NodeKind::Set => {}
            }
        }
        if !problems.is_empty() {
            super::from_source::in_order(&mut problems);
            return Err(problems);
        }
        let mut forest = Self { files, slots, graphs, critical_path: Vec::new() };
        forest.weigh();
        Ok(forest)
    }

    /// Longest ways: a group is as long as the longest way through its body; what stands in a body goes on behind its
    /// group.
    fn weigh(&mut self) {
        let mut weight = vec![1_u32; self.slots.len()];
        let mut path = vec![1_u32; self.slots.len()];
        for graph in self.graphs.iter().rev() {
            graph.critical_path(&weight, &mut path);
            if let Some(parent) = graph.parent {
                weight[parent.at()] = graph.body().nodes().map(|ix| path[ix.at()]).max().unwrap_or(1);
            }
        }
        for graph in &self.graphs {
            if let Some(parent) = graph.parent {
                let behind = path[parent.at()] - weight[parent.at()];
                graph.body().nodes().for_each(|ix| path[ix.at()] = path[ix.at()].saturating_add(behind));
            }
        }
        self.critical_path = path;
    }

    pub(super) fn slot(&self, ix: NodeIx) -> &Slot<'a> {
        &self.slots[ix.at()]
    }

    pub(super) fn graph_of(&self, ix: NodeIx) -> &Graph<'a> {
        &self.graphs[self.slots[ix.at()].graph]
    }

    /// The group round a graph, where its names are visible in it: not out of a nested file.
    pub(super) fn outside(&self, graph: usize) -> Option<NodeIx> {
        let graph = &self.graphs[graph];
        graph.parent.filter(|_| !graph.sealed)
    }

    /// A node's own body.
    pub(super) fn body(&self, ix: NodeIx) -> Body {
        self.slots[ix.at()].inner.map_or(Body::default(), |inner| self.graphs[inner].body())
    }

    /// The name of an item of a node with `each`.
    pub(super) fn bind(&self, ix: NodeIx) -> Option<&'a str> {
        self.slots[ix.at()].node.keys.section("each").map(|each| each.text("as").unwrap_or("item"))
    }

    /// Node by node, in the order of the arena.
    pub(super) fn all(&self) -> impl DoubleEndedIterator<Item = NodeIx> + use<> {
        (0..u32::try_from(self.slots.len()).unwrap_or(u32::MAX)).map(NodeIx)
    }
}
