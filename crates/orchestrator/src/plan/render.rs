//! The graph as a picture: `--graph ascii|mermaid|dot`.

use super::model::{Body, EachSource, Node, NodeIx, Plan, Work};
use std::fmt::Write;
use std::str::FromStr;

/// How a graph is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphStyle {
    /// Lines of text.
    Ascii,
    /// Mermaid's flowchart.
    Mermaid,
    /// Graphviz.
    Dot,
}

/// A word that is no style.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a way to draw a graph (ascii, mermaid, dot)")]
pub struct UnknownStyle(pub String);

impl FromStr for GraphStyle {
    type Err = UnknownStyle;

    fn from_str(word: &str) -> Result<Self, UnknownStyle> {
        match word {
            "ascii" => Ok(Self::Ascii),
            "mermaid" => Ok(Self::Mermaid),
            "dot" => Ok(Self::Dot),
            _ => Err(UnknownStyle(word.to_owned())),
        }
    }
}

impl Plan {
    /// Draws the graph. Ends with a line end.
    pub fn graph(&self, style: GraphStyle) -> String {
        match style {
            GraphStyle::Ascii => self.ascii(),
            GraphStyle::Mermaid => self.mermaid(),
            GraphStyle::Dot => self.dot(),
        }
    }

    fn name(&self, ix: NodeIx) -> &str {
        self.nodes[ix.at()].id.as_str()
    }

    /// A line for each node, in layers: what stands in one layer can run side by side. A body stands below its group,
    /// moved in.
    fn ascii(&self) -> String {
        let mut out = String::new();
        self.ascii_body(&mut out, self.top, "");
        out
    }

    /// Bodies lie a bounded number of levels deep.
    fn ascii_body(&self, out: &mut String, body: Body, margin: &str) {
        let first = body.first as usize;
        let mut layer = vec![0_usize; body.count as usize];
        for ix in self.order_of(body) {
            let node = &self.nodes[ix.at()];
            let before =
                node.needs.iter().chain(&node.after).map(|other| layer[other.at() - first] + 1).max();
            layer[ix.at() - first] = before.unwrap_or(0);
        }
        let depth = layer.iter().copied().max().unwrap_or(0);
        let mut rows: Vec<Vec<usize>> = vec![Vec::new(); depth + 1];
        for (at, level) in layer.iter().enumerate() {
            rows[*level].push(first + at);
        }
        for (level, row) in rows.iter().enumerate() {
            if level > 0 {
                let _ = write!(out, "{margin}  │\n{margin}  ▼\n");
            }
            for at in row {
                let node = &self.nodes[*at];
                let _ = write!(out, "{margin}[{}]", shown(node));
                for (arrow, list) in [("◄─", &node.needs), ("◄┄", &node.after)] {
                    let from: Vec<&str> = list.iter().map(|ix| self.name(*ix)).collect();
                    if !from.is_empty() {
                        let _ = write!(out, " {arrow} {}", from.join(", "));
                    }
                }
                out.push('\n');
                if let Work::Group(group) = &node.work {
                    self.ascii_body(out, group.body, &format!("{margin}    ┊ "));
                }
            }
        }
    }

    /// A name of its own in a drawing. One of the file may be a word of the language (`end`), so ids get a letter in
    /// front.
    fn mermaid_id(&self, ix: NodeIx) -> String {
        match self.nodes[ix.at()].parent {
            None => format!("n_{}", self.name(ix)),
            Some(parent) => format!("b{}_{}", parent.0, self.name(ix)),
        }
    }

    fn mermaid(&self) -> String {
        let mut out = String::from("flowchart TD\n");
        self.mermaid_nodes(&mut out, self.top, "  ");
        for at in (0..self.count()).map(NodeIx) {
            let node = &self.nodes[at.at()];
            for (arrow, list) in [("-->", &node.needs), ("-.->", &node.after)] {
                for from in list {
                    let _ = writeln!(out, "  {} {arrow} {}", self.mermaid_id(*from), self.mermaid_id(at));
                }
            }
        }
        out
    }

    fn count(&self) -> u32 {
        u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)
    }

    /// Bodies lie a bounded number of levels deep.
    fn mermaid_nodes(&self, out: &mut String, body: Body, margin: &str) {
        for ix in body.nodes() {
            let node = &self.nodes[ix.at()];
            let (id, label) = (self.mermaid_id(ix), shown(node));
            match &node.work {
                Work::Group(group) => {
                    let _ = writeln!(out, "{margin}subgraph {id}[\"{label}\"]");
                    self.mermaid_nodes(out, group.body, &format!("{margin}  "));
                    let _ = writeln!(out, "{margin}end");
                }
                _ => {
                    let _ = writeln!(out, "{margin}{id}[\"{label}\"]");
                }
            }
        }
    }

    /// `fix/edit`.
    fn dot_id(&self, ix: NodeIx) -> String {
        match self.nodes[ix.at()].parent {
            None => self.name(ix).to_owned(),
            Some(parent) => format!("{}/{}", self.dot_id(parent), self.name(ix)),
        }
    }

    fn dot(&self) -> String {
        let mut out = format!("digraph \"{}\" {{\n  node [shape=box];\n", self.name);
        if self.nodes.len() > self.top.count as usize {
            out.push_str("  compound=true;\n");
        }
        self.dot_nodes(&mut out, self.top, "  ");
        for at in (0..self.count()).map(NodeIx) {
            let node = &self.nodes[at.at()];
            for (style, list) in [(None, &node.needs), (Some("style=dashed"), &node.after)] {
                for from in list {
                    self.dot_edge(&mut out, *from, at, style);
                }
            }
        }
        out.push_str("}\n");
        out
    }

    /// Bodies lie a bounded number of levels deep.
    fn dot_nodes(&self, out: &mut String, body: Body, margin: &str) {
        for ix in body.nodes() {
            let node = &self.nodes[ix.at()];
            match &node.work {
                Work::Group(group) => {
                    let _ = writeln!(out, "{margin}subgraph \"cluster_{}\" {{", self.dot_id(ix));
                    let _ = writeln!(out, "{margin}  label=\"{}\";", shown(node));
                    self.dot_nodes(out, group.body, &format!("{margin}  "));
                    let _ = writeln!(out, "{margin}}}");
                }
                _ => {
                    let _ = writeln!(out, "{margin}\"{}\" [label=\"{}\"];", self.dot_id(ix), shown(node));
                }
            }
        }
    }

    /// An edge of a cluster is drawn from or to one of its nodes and cut at its border.
    fn dot_edge(&self, out: &mut String, from: NodeIx, to: NodeIx, style: Option<&str>) {
        let mut marks: Vec<String> = style.map(str::to_owned).into_iter().collect();
        for (ix, mark) in [(from, "ltail"), (to, "lhead")] {
            if matches!(self.nodes[ix.at()].work, Work::Group(_)) {
                marks.push(format!("{mark}=\"cluster_{}\"", self.dot_id(ix)));
            }
        }
        let (start, end) = (self.dot_id(self.border(from, false)), self.dot_id(self.border(to, true)));
        let marks = if marks.is_empty() { String::new() } else { format!(" [{}]", marks.join(", ")) };
        let _ = writeln!(out, "  \"{start}\" -> \"{end}\"{marks};");
    }

    /// A node itself; of a group, one at the beginning or at the end of its body.
    fn border(&self, mut ix: NodeIx, begin: bool) -> NodeIx {
        while let Work::Group(group) = &self.nodes[ix.at()].work {
            let at_border = |inner: &NodeIx| {
                let node = &self.nodes[inner.at()];
                if begin {
                    node.needs.is_empty() && node.after.is_empty()
                } else {
                    node.dependents.is_empty()
                }
            };
            let Some(next) = group.body.nodes().find(at_border) else { break };
            ix = next;
        }
        ix
    }
}

fn shown(node: &Node) -> String {
    let kind = match &node.work {
        Work::Agent(agent) => agent.definition.name.clone(),
        Work::Command(_) => "command".to_owned(),
        Work::Set { .. } => "set".to_owned(),
        Work::Merge(_) => "merge".to_owned(),
        Work::Group(group) => match &group.nested {
            Some(nested) => format!("workflow {}", nested.name),
            None => "group".to_owned(),
        },
        Work::Gate(_) => "gate".to_owned(),
    };
    let times = match node.each.as_ref().map(|each| &each.source) {
        Some(EachSource::Static(items)) => format!(" ×{}", items.len()),
        Some(EachSource::Listed(items)) => format!(" ×{}", items.len()),
        Some(_) => " ×n".to_owned(),
        None => String::new(),
    };
    let again = node.repeat.as_ref().map_or(String::new(), |repeat| format!(" ↻{}", repeat.max));
    format!("{} · {kind}{times}{again}", node.id)
}
