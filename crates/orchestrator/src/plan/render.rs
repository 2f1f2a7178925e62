//! The graph as a picture: `--graph ascii|mermaid|dot`.

use super::drawing::Drawing;
use super::model::Plan;
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
        Drawing::of(self).draw(style)
    }
}

impl Drawing {
    /// Draws it. Ends with a line end.
    pub fn draw(&self, style: GraphStyle) -> String {
        match style {
            GraphStyle::Ascii => self.ascii(),
            GraphStyle::Mermaid => self.mermaid(),
            GraphStyle::Dot => self.dot(),
        }
    }

    fn names(&self, list: &[usize]) -> String {
        list.iter().map(|at| self.nodes[*at].id.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// A line for each node, in layers: what stands in one layer can run side by side. A body stands below its group,
    /// moved in.
    fn ascii(&self) -> String {
        let mut out = String::new();
        self.ascii_body(&mut out, &self.top, "");
        out
    }

    /// Bodies lie a bounded number of levels deep.
    fn ascii_body(&self, out: &mut String, body: &[usize], margin: &str) {
        let mut rows: Vec<Vec<usize>> = Vec::new();
        for at in body {
            let layer = self.nodes[*at].layer;
            if rows.len() <= layer {
                rows.resize(layer + 1, Vec::new());
            }
            rows[layer].push(*at);
        }
        for (level, row) in rows.iter().enumerate() {
            if level > 0 {
                let _ = write!(out, "{margin}  │\n{margin}  ▼\n");
            }
            for at in row {
                let node = &self.nodes[*at];
                let _ = write!(out, "{margin}[{}]", node.shown());
                for (arrow, list) in [("◄─", &node.needs), ("◄┄", &node.after)] {
                    if !list.is_empty() {
                        let _ = write!(out, " {arrow} {}", self.names(list));
                    }
                }
                out.push('\n');
                if let Some(body) = &node.body {
                    self.ascii_body(out, body, &format!("{margin}    ┊ "));
                }
            }
        }
    }

    /// A name of its own in a drawing. One of the file may be a word of the language (`end`), so ids get a letter in
    /// front.
    fn mermaid_id(&self, at: usize) -> String {
        let node = &self.nodes[at];
        match node.parent {
            None => format!("n_{}", node.id),
            Some(parent) => format!("b{parent}_{}", node.id),
        }
    }

    fn mermaid(&self) -> String {
        let mut out = String::from("flowchart TD\n");
        self.mermaid_nodes(&mut out, &self.top, "  ");
        for (at, node) in self.nodes.iter().enumerate() {
            for (arrow, list) in [("-->", &node.needs), ("-.->", &node.after)] {
                for from in list {
                    let _ = writeln!(out, "  {} {arrow} {}", self.mermaid_id(*from), self.mermaid_id(at));
                }
            }
        }
        out
    }

    /// Bodies lie a bounded number of levels deep.
    fn mermaid_nodes(&self, out: &mut String, body: &[usize], margin: &str) {
        for at in body {
            let node = &self.nodes[*at];
            let (id, label) = (self.mermaid_id(*at), node.shown());
            match &node.body {
                Some(body) => {
                    let _ = writeln!(out, "{margin}subgraph {id}[\"{label}\"]");
                    self.mermaid_nodes(out, body, &format!("{margin}  "));
                    let _ = writeln!(out, "{margin}end");
                }
                None => {
                    let _ = writeln!(out, "{margin}{id}[\"{label}\"]");
                }
            }
        }
    }

    fn dot(&self) -> String {
        let mut out = format!("digraph \"{}\" {{\n  node [shape=box];\n", self.name);
        if self.nodes.len() > self.top.len() {
            out.push_str("  compound=true;\n");
        }
        self.dot_nodes(&mut out, &self.top, "  ");
        for (at, node) in self.nodes.iter().enumerate() {
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
    fn dot_nodes(&self, out: &mut String, body: &[usize], margin: &str) {
        for at in body {
            let node = &self.nodes[*at];
            let (path, label) = (&node.path, node.shown());
            match &node.body {
                Some(body) => {
                    let _ = writeln!(out, "{margin}subgraph \"cluster_{path}\" {{");
                    let _ = writeln!(out, "{margin}  label=\"{label}\";");
                    self.dot_nodes(out, body, &format!("{margin}  "));
                    let _ = writeln!(out, "{margin}}}");
                }
                None => {
                    let _ = writeln!(out, "{margin}\"{path}\" [label=\"{label}\"];");
                }
            }
        }
    }

    /// An edge of a cluster is drawn from or to one of its nodes and cut at its border.
    fn dot_edge(&self, out: &mut String, from: usize, to: usize, style: Option<&str>) {
        let mut marks: Vec<String> = style.map(str::to_owned).into_iter().collect();
        for (at, mark) in [(from, "ltail"), (to, "lhead")] {
            if self.nodes[at].body.is_some() {
                marks.push(format!("{mark}=\"cluster_{}\"", self.nodes[at].path));
            }
        }
        let (start, end) = (self.border(from, false), self.border(to, true));
        let marks = if marks.is_empty() { String::new() } else { format!(" [{}]", marks.join(", ")) };
        let _ = writeln!(out, "  \"{}\" -> \"{}\"{marks};", self.nodes[start].path, self.nodes[end].path);
    }

    /// A node itself; of a group, one at the beginning or at the end of its body.
    fn border(&self, mut at: usize, begin: bool) -> usize {
        while let Some(body) = &self.nodes[at].body {
            let at_border = |inner: &&usize| {
                let node = &self.nodes[**inner];
                if begin { node.needs.is_empty() && node.after.is_empty() } else { node.is_last }
            };
            let Some(next) = body.iter().find(at_border) else { break };
            at = *next;
        }
        at
    }
}
