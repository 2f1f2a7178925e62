//! Names in expressions: visible or not (E180, E123), and whether the producer's schema has the field (E181).

use super::build::{Build, Far, Spot, Stand, Visible};
use super::graph::Ahead;
use super::model::NodeIx;
use crate::expr::{Reference, Root};
use crate::workflow::file::Section;
use crate::workflow::problem::{Code, Problem};
use claw_kernel::near::nearest;
use serde_json::Value as Json;
use std::collections::BTreeMap;

const NODE_FIELDS: [&str; 5] = ["status", "error", "usage", "attempts", "iterations"];
const RUN_FIELDS: [&str; 3] = ["id", "dir", "base_commit"];

impl<'a> Build<'a> {
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
            Root::Loop => self.check_loop(spot, name, offset, visible),
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
        match self.inputs[self.file].get(id) {
            None => {
                let ids: Vec<&str> = self.inputs[self.file].keys().map(String::as_str).collect();
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

    fn check_loop(&mut self, spot: &Spot<'_>, name: &Reference, offset: usize, visible: &Visible<'_>) {
        let Some(repeat) = self.loop_round(visible) else {
            return self.hidden(spot, name, offset, "`loop` is visible only inside a `loop`".into(), None);
        };
        let names: Vec<&str> = std::iter::once("index")
            .chain(repeat.map("carry").iter().map(|(name, ..)| name.as_ref()))
            .collect();
        let Some(word) = name.path.get(1) else {
            let help = format!("there is {}", loop_names(&names));
            return self.hidden(spot, name, offset, "`loop` needs a name behind it".into(), Some(help));
        };
        if !names.contains(&word.as_str()) {
            let help = self.near(word, &names).unwrap_or_else(|| format!("there is {}", loop_names(&names)));
            self.hidden(spot, name, offset, format!("the loop carries no `{word}`"), Some(help));
        }
    }

    /// The nearest `loop` round a text.
    fn loop_round(&self, visible: &Visible<'_>) -> Option<&'a Section> {
        let own = visible.own_loop.and_then(|ix| self.forest.slot(ix).node.keys.section("loop"));
        own.or_else(|| {
            self.groups_round(visible).find_map(|ix| self.forest.slot(ix).node.keys.section("loop"))
        })
    }

    /// The groups round a text, the nearest first, up to the file.
    pub(super) fn groups_round(&self, visible: &Visible<'_>) -> impl Iterator<Item = NodeIx> + use<'a> {
        let forest = self.forest;
        let graph = match visible.stand {
            Stand::At(ix) => forest.slot(ix).graph,
            Stand::Behind(graph) => graph,
        };
        std::iter::successors(forest.outside(graph), move |ix| forest.outside(forest.slot(*ix).graph))
    }

    /// The graphs that a text sees, the nearest first, each with the node before which it looks (`None`: all of it).
    fn levels(&self, visible: &Visible<'_>) -> impl Iterator<Item = (usize, Option<NodeIx>)> + use<'a> {
        let forest = self.forest;
        let first = match visible.stand {
            Stand::At(ix) => (forest.slot(ix).graph, Some(ix)),
            Stand::Behind(graph) => (graph, None),
        };
        let outer = self.groups_round(visible).map(move |ix| (forest.slot(ix).graph, Some(ix)));
        std::iter::once(first).chain(outer)
    }

    /// The nearest node of a name, and the node before which it has to come.
    pub(super) fn find_node(&self, name: &str, visible: &Visible<'_>) -> Option<(NodeIx, Option<NodeIx>)> {
        self.levels(visible)
            .find_map(|(graph, from)| Some((*self.forest.graphs[graph].by_name.get(name)?, from)))
    }

    /// Names of items round a text.
    fn items_round(&self, visible: &Visible<'_>) -> impl Iterator<Item = &'a str> + use<'a> {
        let forest = self.forest;
        self.groups_round(visible).filter_map(move |ix| forest.bind(ix))
    }

    fn is_bound(&self, word: &str, visible: &Visible<'_>) -> bool {
        if visible.bound.contains(&word) || visible.item == Some(word) {
            return true;
        }
        let mut outer = self.items_round(visible).filter(|_| !visible.no_nodes);
        if word == "index" {
            return visible.item.is_some() || outer.next().is_some();
        }
        outer.any(|item| item == word)
    }

    fn check_other(&mut self, spot: &Spot<'_>, name: &Reference, offset: usize, visible: &Visible<'_>) {
        let word = name.name();
        if self.is_bound(word, visible) {
            return;
        }
        let is_node = self.find_node(word, visible).is_some();
        if is_node && !visible.no_nodes {
            return self.check_node(spot, name, word, offset, visible);
        }
        let help = if self.inputs[self.file].contains_key(word) {
            Some(format!("did you mean `inputs.{word}`?"))
        } else if is_node
            || (visible.no_nodes && self.is_bound(word, &Visible { no_nodes: false, ..*visible }))
        {
            Some("the keys of a list in the file are made before any node runs".to_owned())
        } else if matches!(word, "item" | "items" | "index") {
            Some(
                "only nodes with `each` have `item` and `index`, only merges have `item` and `items`"
                    .to_owned(),
            )
        } else {
            let names = self.names_near(visible);
            self.near(word, &names)
        };
        self.hidden(spot, name, offset, format!("`{word}` is not a name here"), help);
    }

    /// Names that may have been meant.
    fn names_near<'v>(&self, visible: &Visible<'v>) -> Vec<&'v str>
    where
        'a: 'v,
    {
        let mut names: Vec<&'v str> = visible.item.into_iter().chain(visible.bound.iter().copied()).collect();
        if visible.no_nodes {
            return names;
        }
        for (graph, from) in self.levels(visible) {
            match from {
                Some(node) => {
                    let graph = self.forest.graph_of(node);
                    let waits = graph.needs(node).iter().chain(graph.after(node));
                    names.extend(waits.map(|other| self.forest.slot(*other).node.id.as_str()));
                }
                None => names.extend(self.ids_of(graph)),
            }
        }
        names.extend(self.items_round(visible));
        names
    }

    fn check_node(
        &mut self,
        spot: &Spot<'_>,
        name: &Reference,
        node: &str,
        offset: usize,
        visible: &Visible<'_>,
    ) {
        let Some((target, from)) = self.find_node(node, visible).filter(|_| !visible.no_nodes) else {
            let names: Vec<&str> = self.levels(visible).flat_map(|(graph, _)| self.ids_of(graph)).collect();
            let help = if visible.no_nodes { None } else { self.near(node, &names) };
            return self.hidden(spot, name, offset, format!("there is no node `{node}` here"), help);
        };
        let own = visible.itself && matches!(visible.stand, Stand::At(ix) if ix == target);
        if let Some(from) = from.filter(|_| !own)
            && !self.forest.graph_of(from).waits_for(from, target)
        {
            let problem = self.not_before(spot, name, offset, (from, target), visible);
            self.far.push(Far { from, target, problem, hides: false });
        }
        if name.root() == Root::Other {
            self.check_fields(spot, name, target, own, offset);
        }
    }

    /// What is said where a node does not come before the text.
    fn not_before(
        &self,
        spot: &Spot<'_>,
        name: &Reference,
        offset: usize,
        (from, target): (NodeIx, NodeIx),
        visible: &Visible<'_>,
    ) -> Problem {
        let node = self.forest.slot(target).node.id.as_str();
        let here = matches!(visible.stand, Stand::At(ix) if ix == from);
        let round = self.forest.slot(from).node.id.as_str();
        let message = match here {
            true => format!("`{node}` does not come before this node"),
            false if from == target => format!("`{node}` is the group that this stands in"),
            false => format!("`{node}` does not come before `{round}`, in whose body this stands"),
        };
        let help = match (here, from == target) {
            (true, true) => "a node cannot name itself".to_owned(),
            (false, true) => "what a group gives is known behind it".to_owned(),
            (true, false) => format!("add \"{node}\" to `needs`"),
            (false, false) => format!("add \"{node}\" to `needs` of `{round}`"),
        };
        spot.problem_at(Code::E180, name.name(), offset, message).with_help(help)
    }

    fn ids_of(&self, graph: usize) -> impl Iterator<Item = &'a str> + use<'a> {
        let forest = self.forest;
        forest.graphs[graph].body().nodes().map(move |ix| forest.slot(ix).node.id.as_str())
    }

    /// E106 where the name of an item is one of a node of its graph, or of something visible from there.
    pub(super) fn bind_hides(&mut self, spot: &Spot<'_>, bind: &str, visible: &Visible<'_>) {
        if let Stand::At(ix) = visible.stand
            && self.forest.graph_of(ix).by_name.contains_key(bind)
        {
            let message = format!("`{bind}` hides the node of that name");
            return self.problems.push(spot.problem(Code::E106, message));
        }
        self.hides(spot, bind, visible);
    }

    /// E106 where the name of a node in a body hides one that is visible there.
    pub(super) fn body_names_hide(&mut self) {
        for graph in 0..self.forest.graphs.len() {
            let Some(group) = self.forest.outside(graph) else { continue };
            self.enter(self.forest.graphs[graph].file);
            for ix in self.forest.graphs[graph].body().nodes() {
                let node = self.forest.slot(ix).node;
                let span = node.span.clone();
                let spot = Spot { source: self.source, span, node: Some(node), key: "", exact: false };
                let item = self.forest.bind(group);
                self.hides(&spot, node.id.as_str(), &Visible { item, ..Visible::from(Stand::At(group)) });
            }
        }
    }

    /// E106 where a carried name is one that is visible where the loop looks, or that of a loop round it.
    pub(super) fn carry_hides(&mut self, spot: &Spot<'_>, name: &str, ix: NodeIx, over: &Visible<'_>) {
        let outer = Visible::from(Stand::At(ix));
        let carried = self
            .loop_round(&outer)
            .is_some_and(|repeat| repeat.map("carry").iter().any(|(known, ..)| known.as_ref() == name));
        let itself = over.itself && self.forest.slot(ix).node.id.as_str() == name;
        if carried || itself {
            let what = if itself { "the node of that name" } else { "the one of the loop round this one" };
            let message = format!("`{name}` hides {what}");
            return self.problems.push(spot.problem(Code::E106, message).with_help("choose another name"));
        }
        self.hides(spot, name, over);
    }

    fn hides(&mut self, spot: &Spot<'_>, name: &str, visible: &Visible<'_>) {
        let path = spot.path();
        let problem = |message: String| {
            let mut problem = spot.problem(Code::E106, message).with_help("choose another name");
            problem.path = path.trim_end_matches('.').to_owned();
            problem
        };
        let outer = self.items_round(visible);
        // The item of the node itself is asked for by what stands inside it, never by `each` itself.
        if visible.item == Some(name) || outer.into_iter().any(|item| item == name) {
            let mut problem = problem(format!("`{name}` hides the item of that name"));
            if spot.key == "each.as" {
                problem.help = Some("give the inner item another name with `as`".to_owned());
            }
            return self.problems.push(problem);
        }
        let levels: Vec<_> = self.levels(visible).collect();
        for (graph, from) in levels {
            let Some(target) = self.forest.graphs[graph].by_name.get(name).copied() else { continue };
            let problem = problem(format!("`{name}` hides the node of that name"));
            match from {
                None => self.problems.push(problem),
                Some(from) if from == target => continue,
                Some(from) if self.forest.graph_of(from).waits_for(from, target) => {
                    self.problems.push(problem)
                }
                Some(from) => self.far.push(Far { from, target, problem, hides: true }),
            }
            return;
        }
    }

    /// `own`: the node looks at itself, so at one item.
    fn check_fields(&mut self, spot: &Spot<'_>, name: &Reference, target: NodeIx, own: bool, offset: usize) {
        let facts = &self.facts[target.at()];
        let each = facts.each && !own;
        let Some(first) = name.path.get(1) else { return };
        let missing = if each {
            (first != "outputs").then(|| (first.clone(), vec!["outputs".to_owned()]))
        } else {
            facts.schema.as_deref().and_then(|schema| missing_field(schema, &name.path[1..]))
        };
        let Some((field, known)) = missing else { return };
        let message = match each {
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
        let mut by_target: BTreeMap<(usize, NodeIx), Vec<Far>> = BTreeMap::new();
        for far in self.far.drain(..) {
            by_target.entry((self.forest.slot(far.target).graph, far.target)).or_default().push(far);
        }
        let mut looking: Option<(usize, Ahead<'a>)> = None;
        for ((graph, target), list) in by_target {
            let ahead = match &mut looking {
                Some((known, ahead)) if *known == graph => ahead,
                _ => &mut looking.insert((graph, self.forest.graphs[graph].ahead())).1,
            };
            ahead.look(target, list.iter().map(|far| far.from));
            let said = list.into_iter().filter(|far| ahead.found(far.from) == far.hides);
            self.problems.extend(said.map(|far| far.problem));
        }
    }
}

fn loop_names(names: &[&str]) -> String {
    names.iter().map(|name| format!("`loop.{name}`")).collect::<Vec<_>>().join(", ")
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
