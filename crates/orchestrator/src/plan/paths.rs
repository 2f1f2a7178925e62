//! Paths of nodes: ids from the file down to the node, joined by `/`. In bodies ids alone are not unique.

use super::model::{AgentWork, Body, MergeStrategy, Node, NodeIx, Plan, Work};

impl Plan {
    /// The path of a node, such as `fix/edit`.
    pub fn path_of(&self, ix: NodeIx) -> String {
        let node = &self.nodes[ix.at()];
        match node.parent {
            Some(parent) => format!("{}/{}", self.path_of(parent), node.id),
            None => node.id.to_string(),
        }
    }

    /// The node at a path.
    pub fn at_path<'p>(&self, path: impl IntoIterator<Item = &'p str>) -> Option<NodeIx> {
        let mut body = Some(self.top);
        let mut found = None;
        for id in path {
            let ix = body?.nodes().find(|ix| self.nodes[ix.at()].id.as_str() == id)?;
            body = match &self.nodes[ix.at()].work {
                Work::Group(group) => Some(group.body),
                Work::Agent(_) | Work::Command(_) | Work::Set { .. } | Work::Merge(_) | Work::Gate(_) => None,
            };
            found = Some(ix);
        }
        found
    }

    /// All paths, in the order of the nodes.
    pub fn paths(&self) -> impl Iterator<Item = (NodeIx, String)> {
        let all = Body { first: 0, count: u32::try_from(self.nodes.len()).unwrap_or(u32::MAX) };
        all.nodes().map(|ix| (ix, self.path_of(ix)))
    }
}

impl Node {
    /// Its agent, where it starts one: of its own, or of a merge.
    pub fn agent(&self) -> Option<&AgentWork> {
        match &self.work {
            Work::Agent(agent) => Some(agent),
            Work::Merge(merge) => match &merge.strategy {
                MergeStrategy::Agent { agent, .. } => Some(agent),
                MergeStrategy::List
                | MergeStrategy::Concat
                | MergeStrategy::Dedupe { .. }
                | MergeStrategy::Git(_) => None,
            },
            Work::Command(_) | Work::Set { .. } | Work::Group(_) | Work::Gate(_) => None,
        }
    }
}
