//! Limits, prices and writers: what a whole plan is held against, when all its nodes are known.

use super::build::Build;
use super::model::{EachSource, Node, NodeIx, Work};
use super::writers;
use crate::workflow::file::Val;
use crate::workflow::problem::Code;
use std::collections::HashMap;

impl Build<'_> {
    /// E132: agents that the plan is sure to need, for each file with a limit of its own.
    pub(super) fn check_limits(&mut self, nodes: &[Node]) {
        let mut needed = vec![0_usize; nodes.len()];
        for at in (0..nodes.len()).rev() {
            needed[at] = agents_of(&nodes[at], &needed);
        }
        for graph in &self.forest.graphs {
            let file = &self.forest.files[graph.file];
            let value = file.written.top.section("limits").and_then(|keys| keys.get("agents"));
            if !graph.sealed || (value.is_none() && graph.file > 0) {
                continue;
            }
            let sum = graph.body().nodes().fold(0_usize, |sum, ix| sum.saturating_add(needed[ix.at()]));
            let most = self.limits[graph.file].agents;
            if sum <= most {
                continue;
            }
            let span = value.map_or(0..0, |value: &Val| value.span.clone());
            let message = format!("the plan needs {sum} agents, the limit is {most}");
            let problem = file.source.problem(Code::E132, span, "limits.agents", message);
            self.late.push(problem.with_help("raise `limits.agents`, or take items out"));
        }
    }

    /// E131: models without a known price below a ceiling in dollars.
    pub(super) fn check_prices(&mut self, nodes: &[Node]) {
        let mut held = vec![None; nodes.len()];
        let mut known: HashMap<Option<String>, bool> = HashMap::new();
        for (at, node) in nodes.iter().enumerate() {
            let ix = NodeIx(u32::try_from(at).unwrap_or(u32::MAX));
            held[at] = self.ceiling_of(ix, node, &held);
            let (Some(ceiling), Some(agent)) = (&held[at], node.agent()) else { continue };
            let default = [None];
            let models: Vec<Option<String>> = agent.models.iter().cloned().map(Some).collect();
            for model in if models.is_empty() { &default[..] } else { &models[..] } {
                // A model that cannot be used at all was said already, the default one is said once.
                let name = model.as_deref();
                let unusable = name.is_some_and(|name| matches!(self.models.get(name), Some(Err(_))));
                if unusable || (name.is_none() && known.contains_key(model)) {
                    continue;
                }
                let surroundings = self.surroundings;
                if !*known.entry(model.clone()).or_insert_with(|| surroundings.price_known(name)) {
                    self.late.push(self.unpriced(ix, name, ceiling));
                }
            }
        }
    }

    /// The nearest ceiling in dollars over a node that says nothing of models without a price: the path of its key.
    fn ceiling_of(&self, ix: NodeIx, node: &Node, held: &[Option<String>]) -> Option<String> {
        let strict = |budget: &super::model::Budget| budget.usd.is_some() && !budget.tokens_only;
        if node.budget.as_ref().is_some_and(strict) {
            return Some(format!("node.{}.budget.usd", self.forest.slot(ix).node.path()));
        }
        let graph = self.forest.graph_of(ix);
        if graph.sealed {
            let file = &self.forest.files[graph.file];
            let budget = file.written.top.section("budget").map(super::from_source::budget);
            if budget.as_ref().is_some_and(strict) {
                return Some("budget.usd".to_owned());
            }
        }
        graph.parent.and_then(|parent| held[parent.at()].clone())
    }

    fn unpriced(&self, ix: NodeIx, model: Option<&str>, ceiling: &str) -> crate::workflow::problem::Problem {
        let slot = self.forest.slot(ix);
        let entry = slot.node.keys.entry("model");
        let span = entry.map_or(slot.node.span.clone(), |entry| entry.value.span.clone());
        let name = model.map_or("the default model".to_owned(), |model| format!("`{model}`"));
        let message = format!("the price of {name} is not known, and `{ceiling}` holds here");
        let path = format!("node.{}.model", slot.node.path());
        let source = &self.forest.files[slot.file].source;
        source.problem(Code::E131, span, path, message).with_help(
            "state its price in a profile, or write `unknown_price = \"tokens_only\"` and a ceiling of `tokens` in that budget",
        )
    }

    /// E143: whoever holds a lock takes only later ones, in the order of their names. So no two groups ever wait for each
    /// other, here or in another process.
    pub(super) fn check_locks(&mut self, nodes: &[Node]) {
        for (at, node) in nodes.iter().enumerate().filter(|(_, node)| !node.locks.is_empty()) {
            let mut around = node.parent;
            let mut held: Vec<&str> = Vec::new();
            while let Some(group) = around {
                held.extend(nodes[group.at()].locks.iter().map(String::as_str));
                around = nodes[group.at()].parent;
            }
            let Some(last) = held.iter().copied().max() else { continue };
            let early = |name: &&String| name.as_str() < last && !held.contains(&name.as_str());
            let Some(name) = node.locks.iter().find(early) else { continue };
            let slot = self.forest.slot(NodeIx(u32::try_from(at).unwrap_or(u32::MAX)));
            let span =
                slot.node.keys.entry("lock").map_or(slot.node.span.clone(), |lock| lock.value.span.clone());
            let message = format!("the lock `{name}` is taken while `{last}` is held by a group around it");
            let path = format!("node.{}.lock", slot.node.path());
            let problem = self.forest.files[slot.file].source.problem(Code::E143, span, path, message);
            self.late.push(problem.with_help(format!(
                "locks are taken in the order of their names: name `{name}` at the group too, or rename one"
            )));
        }
    }

    /// W140 once, or E140 for each node that forbids it.
    pub(super) fn check_writers(&mut self, nodes: &[Node]) {
        let writing = writers::writing(nodes);
        let mut warned = false;
        for graph in &self.forest.graphs {
            let found = writers::side_by_side(graph, nodes, &writing);
            let Some(first) = found.first() else { continue };
            let source = &self.forest.files[graph.file].source;
            let names: Vec<&str> = found.iter().take(5).map(|ix| nodes[ix.at()].id.as_str()).collect();
            let more = match found.len() - names.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let said = format!("these may write in one folder at the same time: {}{more}", names.join(", "));
            let problem = |code, ix: NodeIx| {
                let node = self.forest.slot(ix).node;
                source.problem(code, node.span.clone(), format!("node.{}", node.path()), said.clone())
            };
            let forbids =
                |ix: &NodeIx| self.forest.slot(*ix).node.keys.text("shared_writes") == Some("forbid");
            let forbidden: Vec<_> = found.iter().copied().filter(forbids).collect();
            if forbidden.is_empty() && !warned {
                warned = true;
                self.warnings.push(problem(Code::W140, *first).with_help(
                    "order them by `after`, give them `isolation = \"worktree\"`, or give the ones that only read `permission = \"read-only\"`",
                ));
            }
            self.late.extend(forbidden.into_iter().map(|ix| {
                problem(Code::E140, ix).with_help(
                    "order them by `after`, give them `isolation = \"worktree\"`, or narrow `tools` or `permission`",
                )
            }));
        }
    }
}

/// Agents that a node is sure to need, all its items and one iteration counted.
fn agents_of(node: &Node, needed: &[usize]) -> usize {
    let one = match &node.work {
        Work::Group(group) => group.body.nodes().fold(0_usize, |sum, ix| sum.saturating_add(needed[ix.at()])),
        Work::Agent(_) | Work::Merge(_) | Work::Command(_) | Work::Set { .. } | Work::Gate(_) => {
            usize::from(node.agent().is_some())
        }
    };
    match node.each.as_ref().map(|each| &each.source) {
        Some(EachSource::Static(items)) => one.saturating_mul(items.len()),
        Some(EachSource::Listed(items)) => one.saturating_mul(items.len()),
        Some(_) | None => one,
    }
}
