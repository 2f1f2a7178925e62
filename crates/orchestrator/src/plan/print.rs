//! A plan for people and as JSON: what `--plan` shows.

use super::model::{
    AgentWork, Base, Body, Budget, CommandLine, CommandWork, Each, EachSource, Isolation, Limits,
    MergeStrategy, Node, NodeIx, Plan, Work,
};
use crate::expr::{Expr, Template};
use crate::workflow::units::show_duration;
use claw_agents::permission::Permission;
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Duration;

/// Kind as in the file.
fn kind(work: &Work) -> &'static str {
    match work {
        Work::Agent(_) => "agent",
        Work::Command(_) => "command",
        Work::Set { .. } => "set",
        Work::Merge(_) => "merge",
        Work::Group(group) if group.nested.is_some() => "workflow",
        Work::Group(_) => "group",
        Work::Gate(_) => "gate",
    }
}

fn strategy(strategy: &MergeStrategy) -> &'static str {
    match strategy {
        MergeStrategy::List => "list",
        MergeStrategy::Concat => "concat",
        MergeStrategy::Dedupe { .. } => "dedupe",
        MergeStrategy::Agent { .. } => "agent",
        MergeStrategy::Git(_) => "git",
    }
}

/// What file and definition allow; `None` = what the run allows.
fn permission(node: &Node) -> Option<Permission> {
    match (node.agent(), &node.work) {
        (Some(agent), _) => match (agent.permission, agent.definition.permission) {
            (Some(own), Some(definition)) => Some(own.intersect(definition)),
            (own, definition) => own.or(definition),
        },
        (None, Work::Command(command)) => command.permission,
        (None, Work::Agent(_) | Work::Set { .. } | Work::Merge(_) | Work::Group(_) | Work::Gate(_)) => None,
    }
}

fn items(each: &Each) -> String {
    match (&each.source, each.max) {
        (EachSource::Static(items), _) => format!("{} items", items.len()),
        (EachSource::Listed(items), _) => format!("{} items", items.len()),
        (_, Some(max)) => format!("at most {max} items"),
        (_, None) => "items".to_owned(),
    }
}

impl Plan {
    /// Every node behind what it waits for, else in the order of the file; the nodes of a body right behind their
    /// group.
    pub fn order(&self) -> Vec<NodeIx> {
        let mut out = Vec::with_capacity(self.nodes.len());
        // Bodies lie a bounded number of levels deep.
        let mut left: Vec<NodeIx> = self.order_of(self.top);
        left.reverse();
        while let Some(ix) = left.pop() {
            out.push(ix);
            if let Work::Group(group) = &self.nodes[ix.at()].work {
                left.extend(self.order_of(group.body).into_iter().rev());
            }
        }
        out
    }

    /// The nodes of one graph, each behind what it waits for, else in the order of the file.
    pub fn order_of(&self, body: Body) -> Vec<NodeIx> {
        let place = |ix: NodeIx| ix.at() - body.first as usize;
        let mut waiting: Vec<usize> = body
            .nodes()
            .map(|ix| &self.nodes[ix.at()])
            .map(|node| node.needs.len() + node.after.len())
            .collect();
        let mut ready: std::collections::BTreeSet<NodeIx> =
            body.nodes().filter(|ix| waiting[place(*ix)] == 0).collect();
        let mut out = Vec::with_capacity(waiting.len());
        while let Some(node) = ready.pop_first() {
            out.push(node);
            for next in &self.nodes[node.at()].dependents {
                let other = &self.nodes[next.at()];
                let edges = other.needs.iter().chain(&other.after).filter(|from| **from == node).count();
                waiting[place(*next)] -= edges;
                if waiting[place(*next)] == 0 {
                    ready.insert(*next);
                }
            }
        }
        out
    }

    /// Groups and nested files round a node.
    pub fn level(&self, ix: NodeIx) -> usize {
        std::iter::successors(self.nodes[ix.at()].parent, |ix| self.nodes[ix.at()].parent).count()
    }

    /// For `--plan`: nodes in order, agents, models, permissions, limits; then the warnings.
    pub fn text(&self) -> String {
        let mut out = format!("workflow {}  ({} nodes)\n", self.name, self.nodes.len());
        if !self.description.is_empty() {
            let _ = writeln!(out, "  {}", self.description);
        }
        let limits = &self.limits;
        let _ = writeln!(
            out,
            "limits  {} agents at once, {} commands at once, {} agents in all, depth {}",
            limits.concurrency, limits.commands, limits.agents, limits.depth
        );
        for (name, most) in &limits.providers {
            let _ = writeln!(out, "        {name}: {most} requests in flight");
        }
        if let Some(budget) = &self.budget {
            let _ = writeln!(out, "budget  {}", shown_budget(budget));
        }
        for (id, input) in &self.inputs {
            let value = if input.secret { "(secret)".to_owned() } else { input.value.to_string() };
            let shown = &value[..value.floor_char_boundary(80)];
            let _ =
                writeln!(out, "input   {id} = {shown}{}", if shown.len() < value.len() { "…" } else { "" });
        }
        let order = self.order();
        let name = |ix: &NodeIx| 2 * self.level(*ix) + self.nodes[ix.at()].id.as_str().len();
        let width = order.iter().map(name).max().unwrap_or(0);
        let mut numbers: Vec<usize> = Vec::new();
        for ix in order {
            let level = self.level(ix);
            numbers.resize(level + 1, 0);
            numbers[level] += 1;
            let number = numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(".");
            let node = &self.nodes[ix.at()];
            let name = format!("{}{}", "  ".repeat(level), node.id);
            let _ = writeln!(out, "{number:>4}  {name:width$}  {}", self.words(node).join(" · "));
        }
        for warning in &self.warnings {
            let _ = writeln!(out, "warning {warning}");
        }
        out
    }

    fn words(&self, node: &Node) -> Vec<String> {
        let mut words = vec![kind(&node.work).to_owned()];
        match &node.work {
            Work::Merge(merge) => words.push(strategy(&merge.strategy).to_owned()),
            Work::Command(command) => words.push(command_words(command)),
            Work::Group(group) => {
                words.extend(group.nested.iter().map(|nested| nested.file.display().to_string()))
            }
            Work::Gate(gate) => words.push(gate.choices.join(" or ")),
            Work::Agent(_) | Work::Set { .. } => {}
        }
        if let Some(agent) = node.agent() {
            words.extend(agent_words(agent));
        }
        if matches!(node.work, Work::Command(_)) || node.agent().is_some() {
            words.push(permission(node).map_or("the run's permission".into(), |mode| mode.to_string()));
        }
        words.extend(bound(node).map(show_duration));
        words.extend(node.each.as_ref().map(items));
        words.extend(node.repeat.as_ref().map(|repeat| format!("at most {} iterations", repeat.max)));
        match node.isolation {
            Isolation::None => {}
            Isolation::Worktree(base) => words.push(format!("worktree of {}", base_word(base))),
        }
        if !node.locks.is_empty() {
            words.push(format!("lock {}", node.locks.join(", ")));
        }
        words.extend(node.budget.as_ref().map(|budget| format!("budget {}", shown_budget(budget))));
        let flags = [("final", node.is_final), ("optional", node.optional)];
        words.extend(flags.into_iter().filter(|(_, on)| *on).map(|(word, _)| word.to_owned()));
        for (word, list) in [("needs", &node.needs), ("after", &node.after)] {
            if !list.is_empty() {
                words.push(format!("{word} {}", self.ids(list).join(", ")));
            }
        }
        if let Work::Group(group) = &node.work
            && let Some(nested) = &group.nested
        {
            words.push(format!("{} agents in all", nested.limits.agents));
            words.extend(nested.budget.as_ref().map(|budget| format!("its budget {}", shown_budget(budget))));
        }
        words
    }

    fn ids(&self, list: &[NodeIx]) -> Vec<String> {
        list.iter().map(|ix| self.nodes[ix.at()].id.to_string()).collect()
    }

    /// The same as JSON. Secrets are left out.
    pub fn json(&self) -> Value {
        let nodes = self.body_json(self.top);
        let inputs: serde_json::Map<String, Value> = self
            .inputs
            .iter()
            .map(|(id, input)| (id.clone(), if input.secret { Value::Null } else { input.value.clone() }))
            .collect();
        json!({
            "schema": 1,
            "workflow": self.name,
            "description": self.description,
            "file": self.file,
            "inputs": inputs,
            "limits": limits_json(&self.limits),
            "budget": self.budget.as_ref().map(budget_json),
            "nodes": nodes,
            "warnings": self.warnings,
        })
    }

    /// Bodies lie a bounded number of levels deep.
    fn body_json(&self, body: Body) -> Vec<Value> {
        self.order_of(body).into_iter().map(|ix| self.node_json(&self.nodes[ix.at()])).collect()
    }

    fn node_json(&self, node: &Node) -> Value {
        let mut out = json!({
            "id": node.id.as_str(),
            "kind": kind(&node.work),
            "needs": self.ids(&node.needs),
            "after": self.ids(&node.after),
            "timeout": bound(node).map(show_duration),
            "attempts": node.retry.attempts,
            "optional": node.optional,
            "final": node.is_final,
            "critical_path": node.critical_path,
            "key": node.static_key.hex(),
        });
        self.work_json(node, &mut out);
        if let Some(mode) = permission(node) {
            out["permission"] = json!(mode.to_string());
        }
        if let Some(each) = &node.each {
            out["each"] = match &each.source {
                EachSource::Static(items) => {
                    json!({ "keys": items.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>() })
                }
                EachSource::Listed(items) => json!({ "max": items.len() }),
                EachSource::Items(_)
                | EachSource::Glob { .. }
                | EachSource::Lines(_)
                | EachSource::Jsonl(_) => {
                    json!({ "max": each.max })
                }
            };
        }
        if let Some(repeat) = &node.repeat {
            let carry: Vec<&str> = repeat.carry.iter().map(|(name, _)| name.as_str()).collect();
            out["loop"] = json!({
                "max": repeat.max,
                "until": repeat.until.as_ref().map(Expr::source),
                "carry": carry,
                "stall": repeat.stall,
            });
        }
        match node.isolation {
            Isolation::None => {}
            Isolation::Worktree(base) => {
                out["isolation"] = json!("worktree");
                out["base"] = json!(base_word(base));
            }
        }
        if !node.locks.is_empty() {
            out["lock"] = json!(node.locks);
        }
        if let Some(budget) = &node.budget {
            out["budget"] = budget_json(budget);
        }
        out
    }

    fn work_json(&self, node: &Node, out: &mut Value) {
        if let Some(agent) = node.agent() {
            out["agent"] = json!(agent.definition.name);
            out["models"] = json!(agent.models);
            out["max_turns"] = json!(agent.max_turns);
            out["spawn"] = json!(agent.spawn);
        }
        match &node.work {
            Work::Merge(merge) => {
                out["strategy"] = json!(strategy(&merge.strategy));
                if let MergeStrategy::Git(git) = &merge.strategy {
                    out["branches"] = json!(self.ids(&git.nodes));
                }
            }
            Work::Gate(gate) => {
                out["choices"] = json!(gate.choices);
                out["default"] = json!(gate.default);
            }
            Work::Group(group) => {
                if let Some(nested) = &group.nested {
                    out["file"] = json!(nested.file);
                    out["workflow"] = json!(nested.name);
                    out["limits"] = limits_json(&nested.limits);
                    out["file_budget"] = json!(nested.budget.as_ref().map(budget_json));
                }
                out["body"] = json!(self.body_json(group.body));
            }
            Work::Agent(_) | Work::Command(_) | Work::Set { .. } => {}
        }
    }
}

/// The longest that a step may take: of an attempt, of a wait, of a group.
fn bound(node: &Node) -> Option<Duration> {
    match &node.work {
        Work::Agent(_) | Work::Command(_) | Work::Gate(_) => Some(node.timeout),
        Work::Merge(merge) => match merge.strategy {
            MergeStrategy::Agent { .. } | MergeStrategy::Git(_) => Some(node.timeout),
            MergeStrategy::List | MergeStrategy::Concat | MergeStrategy::Dedupe { .. } => None,
        },
        Work::Group(group) => group.timeout,
        Work::Set { .. } => None,
    }
}

fn agent_words(agent: &AgentWork) -> Vec<String> {
    let models = if agent.models.is_empty() { "default model".to_owned() } else { agent.models.join(" or ") };
    let mut words = vec![agent.definition.name.clone(), models, format!("{} turns", agent.max_turns)];
    if agent.spawn {
        words.push("may start children".to_owned());
    }
    words
}

fn command_words(command: &CommandWork) -> String {
    match &command.run {
        CommandLine::Argv(argv) => argv.iter().map(Template::source).collect::<Vec<_>>().join(" "),
        CommandLine::Shell(text) => format!("sh: {}", text.lines().next().unwrap_or_default()),
    }
}

fn base_word(base: Base) -> &'static str {
    match base {
        Base::ParentHead => "parent_head",
        Base::ParentDirty => "parent_dirty",
    }
}

fn shown_budget(budget: &Budget) -> String {
    let mut words = Vec::new();
    words.extend(budget.usd.map(|usd| format!("{usd} USD")));
    words.extend(budget.tokens.map(|tokens| format!("{tokens} tokens")));
    words.extend(budget.output_tokens.map(|tokens| format!("{tokens} output tokens")));
    words.extend(budget.wall.map(show_duration));
    words.extend(budget.turns.map(|turns| format!("{turns} turns")));
    words.join(", ")
}

fn budget_json(budget: &Budget) -> Value {
    json!({
        "usd": budget.usd,
        "tokens": budget.tokens,
        "output_tokens": budget.output_tokens,
        "wall": budget.wall.map(show_duration),
        "turns": budget.turns,
        "warn": budget.warn,
        "reserve": budget.reserve,
        "tokens_only": budget.tokens_only,
    })
}

fn limits_json(limits: &Limits) -> Value {
    json!({
        "concurrency": limits.concurrency,
        "commands": limits.commands,
        "agents": limits.agents,
        "depth": limits.depth,
        "providers": limits.providers,
    })
}
