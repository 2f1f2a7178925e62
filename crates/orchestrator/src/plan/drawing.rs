//! What a drawing of a graph shows: made of a plan, or of a plan as a run kept it, with how its nodes stand. Pure.

use super::model::{Body, EachSource, Node, NodeIx, Plan, Work};
use serde_json::Value;
use std::collections::HashMap;

/// A graph to be drawn.
#[derive(Clone, Debug)]
pub struct Drawing {
    pub(super) name: String,
    pub(super) top: Vec<usize>,
    /// A group stands before its body.
    pub(super) nodes: Vec<Drawn>,
}

/// One node of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Drawn {
    pub(super) id: String,
    /// `fix/edit`.
    pub(super) path: String,
    label: String,
    state: Option<String>,
    pub(super) needs: Vec<usize>,
    pub(super) after: Vec<usize>,
    /// Nothing depends on it.
    pub(super) is_last: bool,
    pub(super) parent: Option<usize>,
    pub(super) body: Option<Vec<usize>>,
    /// What stands in one layer can run side by side.
    pub(super) layer: usize,
}

impl Drawn {
    /// `fix · group ↻4 · succeeded`.
    pub(super) fn shown(&self) -> String {
        match &self.state {
            Some(state) => format!("{} · {state}", self.label),
            None => self.label.clone(),
        }
    }
}

impl Drawing {
    /// Of a plan.
    pub(super) fn of(plan: &Plan) -> Self {
        let mut drawing = Self { name: plan.name.clone(), top: Vec::new(), nodes: Vec::new() };
        for node in &plan.nodes {
            let at = |list: &[NodeIx]| list.iter().map(|ix| ix.at()).collect();
            let parent = node.parent.map(NodeIx::at);
            let above = parent.map(|parent| drawing.nodes[parent].path.clone());
            drawing.nodes.push(Drawn {
                id: node.id.to_string(),
                path: above.map_or_else(|| node.id.to_string(), |above| format!("{above}/{}", node.id)),
                label: label(node),
                needs: at(&node.needs),
                after: at(&node.after),
                is_last: node.dependents.is_empty(),
                parent,
                ..Drawn::default()
            });
        }
        let all = |body: Body| body.nodes().map(NodeIx::at).collect::<Vec<_>>();
        for (at, node) in plan.nodes.iter().enumerate() {
            if let Work::Group(group) = &node.work {
                drawing.nodes[at].body = Some(all(group.body));
                drawing.layers(plan.order_of(group.body).into_iter().map(NodeIx::at));
            }
        }
        drawing.top = all(plan.top);
        drawing.layers(plan.order_of(plan.top).into_iter().map(NodeIx::at));
        drawing
    }

    /// Of a plan as a run kept it; `None` where it is none.
    pub fn of_kept(plan: &Value) -> Option<Self> {
        let name = plan["workflow"].as_str()?.to_owned();
        let mut drawing = Self { name, top: Vec::new(), nodes: Vec::new() };
        drawing.top = drawing.add_body(plan["nodes"].as_array()?, None)?;
        Some(drawing)
    }

    /// The paths of its nodes, a group before its body.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|node| node.path.as_str())
    }

    /// How its nodes stand, by path.
    pub fn with_states(mut self, state: impl Fn(&str) -> Option<String>) -> Self {
        for node in &mut self.nodes {
            node.state = state(&node.path);
        }
        self
    }

    /// Nodes in an order in which each stands behind what it waits for.
    fn layers(&mut self, order: impl IntoIterator<Item = usize>) {
        for at in order {
            let node = &self.nodes[at];
            let before = node.needs.iter().chain(&node.after).map(|other| self.nodes[*other].layer + 1).max();
            self.nodes[at].layer = before.unwrap_or(0);
        }
    }

    /// Bodies lie a bounded number of levels deep.
    fn add_body(&mut self, nodes: &[Value], parent: Option<usize>) -> Option<Vec<usize>> {
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut body = Vec::with_capacity(nodes.len());
        for node in nodes {
            let id = node["id"].as_str()?;
            let at = self.nodes.len();
            // A plan is kept in an order in which each node stands behind what it waits for.
            let named = |key: &str| -> Vec<usize> {
                let names = node[key].as_array().into_iter().flatten().filter_map(Value::as_str);
                names.filter_map(|name| places.get(name).copied()).collect()
            };
            let (needs, after) = (named("needs"), named("after"));
            for before in needs.iter().chain(&after) {
                self.nodes[*before].is_last = false;
            }
            let path = match parent {
                Some(parent) => format!("{}/{id}", self.nodes[parent].path),
                None => id.to_owned(),
            };
            let (id, label) = (id.to_owned(), kept_label(id, node));
            let drawn = Drawn { id, path, label, needs, after, is_last: true, parent, ..Drawn::default() };
            self.nodes.push(drawn);
            if let Some(inner) = node["body"].as_array() {
                self.nodes[at].body = Some(self.add_body(inner, Some(at))?);
            }
            places.insert(node["id"].as_str()?, at);
            body.push(at);
        }
        self.layers(body.iter().copied());
        Some(body)
    }
}

fn label(node: &Node) -> String {
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

/// The same of a node as it is kept.
fn kept_label(id: &str, node: &Value) -> String {
    let kind = match node["kind"].as_str() {
        Some("agent") => node["agent"].as_str().unwrap_or("agent").to_owned(),
        Some("workflow") => format!("workflow {}", node["workflow"].as_str().unwrap_or_default()),
        kind => kind.unwrap_or_default().to_owned(),
    };
    let times = match (&node["each"], node["each"]["keys"].as_array()) {
        (_, Some(keys)) => format!(" ×{}", keys.len()),
        (Value::Null, None) => String::new(),
        (_, None) => " ×n".to_owned(),
    };
    let again = node["loop"]["max"].as_u64().map_or(String::new(), |max| format!(" ↻{max}"));
    format!("{id} · {kind}{times}{again}")
}
