//! Names in expressions: visible or not (E180, E123), and whether the producer's schema has the field (E181).

use super::build::{Build, Far, Spot, Visible};
use super::model::NodeIx;
use crate::expr::{Reference, Root};
use crate::workflow::problem::Code;
use claw_kernel::near::nearest;
use serde_json::Value as Json;
use std::collections::BTreeMap;

const NODE_FIELDS: [&str; 5] = ["status", "error", "usage", "attempts", "iterations"];
const RUN_FIELDS: [&str; 3] = ["id", "dir", "base_commit"];

impl Build<'_> {
    /// Checks one name of a text.
    pub(super) fn check_name(
        &mut self,
        spot: &Spot<'_>,
        name: &Reference,
        offset: usize,
        visible: &Visible<'_>,
    ) {
        match name.root() {
            Root::Inputs => self.check_input(spot, name, offset, visible),
            Root::Nodes => match (name.path.get(1), name.path.get(2)) {
                (Some(node), Some(field)) if NODE_FIELDS.contains(&field.as_str()) => {
                    self.check_node(spot, name, node, offset, visible);
                }
                _ => {
                    let help = format!("write `nodes.<node>.<field>`; fields are {}", NODE_FIELDS.join(", "));
                    self.hidden(spot, name, offset, format!("`{}` is not a name", name.text()), Some(help));
                }
            },
            Root::Run => {
                if !name.path.get(1).is_some_and(|field| RUN_FIELDS.contains(&field.as_str())) {
                    let help =
                        format!("there are {}", RUN_FIELDS.map(|field| format!("`run.{field}`")).join(", "));
                    self.hidden(spot, name, offset, format!("`{}` is not a name", name.text()), Some(help));
                }
            }
            Root::Loop => {
                self.hidden(spot, name, offset, "`loop` is visible only inside a `loop`".into(), None)
            }
            Root::Other => self.check_other(spot, name, offset, visible),
        }
    }

    fn hidden(
        &mut self,
        spot: &Spot<'_>,
        name: &Reference,
        offset: usize,
        message: String,
        help: Option<String>,
    ) {
        let mut problem = spot.problem_at(Code::E180, name.name(), offset, message);
        problem.help = help;
        self.problems.push(problem);
    }

    fn near(&mut self, word: &str, names: &[&str]) -> Option<String> {
        self.near_left = self.near_left.checked_sub(1)?;
        nearest(word, names.iter().copied()).map(|name| format!("did you mean `{name}`?"))
    }

    fn check_input(&mut self, spot: &Spot<'_>, name: &Reference, offset: usize, visible: &Visible<'_>) {
        let Some(id) = name.path.get(1) else {
            return self.hidden(
                spot,
                name,
                offset,
                "`inputs` needs the id of an input".into(),
                Some("write `inputs.<id>`".into()),
            );
        };
        match self.inputs.get(id) {
            None => {
                let ids: Vec<&str> = self.inputs.keys().map(String::as_str).collect();
                let help = self.near(id, &ids);
                self.hidden(spot, name, offset, format!("there is no input `{id}`"), help);
            }
            Some(input) if input.secret && !visible.secrets => {
                let message = format!("the input `{id}` is secret");
                let problem = spot.problem_at(Code::E123, name.name(), offset, message);
                self.problems.push(problem.with_help("a secret may stand only in `env` of a command"));
            }
            Some(_) => {}
        }
    }

    fn check_other(&mut self, spot: &Spot<'_>, name: &Reference, offset: usize, visible: &Visible<'_>) {
        let word = name.name();
        if visible.bound.contains(&word)
            || (visible.item.is_some() && (visible.item == Some(word) || word == "index"))
        {
            return;
        }
        if !visible.no_nodes && self.graph.by_name.contains_key(word) {
            return self.check_node(spot, name, word, offset, visible);
        }
        if self.inputs.contains_key(word) {
            let help = Some(format!("did you mean `inputs.{word}`?"));
            return self.hidden(spot, name, offset, format!("`{word}` is not a name here"), help);
        }
        if visible.no_nodes && self.graph.by_name.contains_key(word) {
            let help = Some("the keys of a list in the file are made before any node runs".to_owned());
            return self.hidden(spot, name, offset, format!("`{word}` is not a name here"), help);
        }
        if matches!(word, "item" | "items" | "index") {
            let help = Some(
                "only nodes with `each` have `item` and `index`, only merges have `item` and `items`"
                    .to_owned(),
            );
            return self.hidden(spot, name, offset, format!("`{word}` is not a name here"), help);
        }
        let names: Vec<&str> = match visible.node {
            _ if visible.no_nodes => Vec::new(),
            Some(node) => {
                let graph = self.graph;
                graph.needs[node.at()]
                    .iter()
                    .chain(&graph.after[node.at()])
                    .map(|other| self.ids[other.at()])
                    .collect()
            }
            None => self.ids.clone(),
        };
        let all: Vec<&str> =
            names.into_iter().chain(visible.item).chain(visible.bound.iter().copied()).collect();
        let help = self.near(word, &all);
        self.hidden(spot, name, offset, format!("`{word}` is not a name here"), help);
    }

    fn check_node(
        &mut self,
        spot: &Spot<'_>,
        name: &Reference,
        node: &str,
        offset: usize,
        visible: &Visible<'_>,
    ) {
        let Some(target) = self.graph.by_name.get(node).copied().filter(|_| !visible.no_nodes) else {
            let names = self.ids.clone();
            let help = if visible.no_nodes { None } else { self.near(node, &names) };
            return self.hidden(spot, name, offset, format!("there is no node `{node}` here"), help);
        };
        if let Some(from) = visible.node {
            let graph = self.graph;
            let direct = graph.needs[from.at()].contains(&target) || graph.after[from.at()].contains(&target);
            if !direct {
                let message = format!("`{node}` does not come before this node");
                let problem = spot.problem_at(Code::E180, name.name(), offset, message);
                let help = if from == target {
                    "a node cannot name itself".into()
                } else {
                    format!("add \"{node}\" to `needs`")
                };
                self.far.push(Far { from, target, problem: problem.with_help(help) });
            }
        }
        if name.root() == Root::Other {
            self.check_fields(spot, name, target, offset);
        }
    }

    fn check_fields(&mut self, spot: &Spot<'_>, name: &Reference, target: NodeIx, offset: usize) {
        let facts = &self.facts[target.at()];
        let Some(first) = name.path.get(1) else { return };
        let missing = if facts.each {
            (first != "outputs").then(|| (first.clone(), vec!["outputs".to_owned()]))
        } else {
            facts.schema.as_deref().and_then(|schema| missing_field(schema, &name.path[1..]))
        };
        let Some((field, known)) = missing else { return };
        let message = match facts.each {
            true => format!("`{}` gives a list, which has no `{field}`", name.name()),
            false => format!("the output of `{}` has no `{field}`", name.name()),
        };
        let help = match nearest(&field, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "there is {}",
                known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
            ),
        };
        self.problems.push(spot.problem_at(Code::E181, name.name(), offset, message).with_help(help));
    }

    /// Settles the references to nodes that are no direct needs: one look ahead from each target.
    pub(super) fn settle_far(&mut self) {
        let mut by_target: BTreeMap<NodeIx, Vec<Far>> = BTreeMap::new();
        for far in self.far.drain(..) {
            by_target.entry(far.target).or_default().push(far);
        }
        if by_target.is_empty() {
            return;
        }
        let mut ahead = self.graph.ahead();
        for (target, list) in by_target {
            ahead.look(target, list.iter().map(|far| far.from));
            self.problems
                .extend(list.into_iter().filter(|far| !ahead.found(far.from)).map(|far| far.problem));
        }
    }
}

/// The first part of a path that a closed schema does not have, and what it has.
fn missing_field(schema: &Json, path: &[String]) -> Option<(String, Vec<String>)> {
    let mut at = schema;
    for part in path {
        let properties = at.get("properties").and_then(Json::as_object)?;
        if at.get("additionalProperties") == Some(&Json::Bool(true)) {
            return None;
        }
        let required =
            at.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
        if !properties.contains_key(part) && !required.clone().any(|name| name == part) {
            let mut known: Vec<String> = properties.keys().cloned().collect();
            known.extend(required.filter(|name| !properties.contains_key(*name)).map(str::to_owned));
            return Some((part.clone(), known));
        }
        at = properties.get(part)?;
    }
    None
}
