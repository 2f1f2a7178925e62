//! The graph as a picture: `--graph ascii|mermaid|dot`.

use super::model::{EachSource, Node, NodeIx, Plan, Work};
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

    /// A line for each node, in layers: what stands in one layer can run side by side.
    fn ascii(&self) -> String {
        let mut layer = vec![0_usize; self.nodes.len()];
        for ix in self.order() {
            let node = &self.nodes[ix.at()];
            let before = node.needs.iter().chain(&node.after).map(|other| layer[other.at()] + 1).max();
            layer[ix.at()] = before.unwrap_or(0);
        }
        let depth = layer.iter().copied().max().unwrap_or(0);
        let mut rows: Vec<Vec<usize>> = vec![Vec::new(); depth + 1];
        for (at, level) in layer.iter().enumerate() {
            rows[*level].push(at);
        }
        let mut out = String::new();
        for (level, row) in rows.iter().enumerate() {
            if level > 0 {
                out.push_str("  │\n  ▼\n");
            }
            for at in row {
                let node = &self.nodes[*at];
                let _ = write!(out, "[{}]", shown(node));
                let from: Vec<&str> = node.needs.iter().map(|ix| self.name(*ix)).collect();
                let after: Vec<&str> = node.after.iter().map(|ix| self.name(*ix)).collect();
                if !from.is_empty() {
                    let _ = write!(out, " ◄─ {}", from.join(", "));
                }
                if !after.is_empty() {
                    let _ = write!(out, " ◄┄ {}", after.join(", "));
                }
                out.push('\n');
            }
        }
        out
    }

    fn mermaid(&self) -> String {
        let mut out = String::from("flowchart TD\n");
        for node in &self.nodes {
            // A name may be a word of the language (`end`): ids get a letter in front.
            let _ = writeln!(out, "  n_{}[\"{}\"]", node.id, shown(node));
        }
        for node in &self.nodes {
            for from in &node.needs {
                let _ = writeln!(out, "  n_{} --> n_{}", self.name(*from), node.id);
            }
            for from in &node.after {
                let _ = writeln!(out, "  n_{} -.-> n_{}", self.name(*from), node.id);
            }
        }
        out
    }

    fn dot(&self) -> String {
        let mut out = format!("digraph \"{}\" {{\n  node [shape=box];\n", self.name);
        for node in &self.nodes {
            let _ = writeln!(out, "  \"{}\" [label=\"{}\"];", node.id, shown(node));
        }
        for node in &self.nodes {
            for from in &node.needs {
                let _ = writeln!(out, "  \"{}\" -> \"{}\";", self.name(*from), node.id);
            }
            for from in &node.after {
                let _ = writeln!(out, "  \"{}\" -> \"{}\" [style=dashed];", self.name(*from), node.id);
            }
        }
        out.push_str("}\n");
        out
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
        Some(_) => " ×n".to_owned(),
        None => String::new(),
    };
    format!("{} · {kind}{times}", node.id)
}
