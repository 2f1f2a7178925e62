//! A plan for people and as JSON: what `--plan` shows.

use super::model::{AgentWork, CommandLine, Each, EachSource, MergeStrategy, Node, NodeIx, Plan, Work};
use crate::workflow::units::show_duration;
use claw_agents::permission::Permission;
use serde_json::{Value, json};
use std::fmt::Write;

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

fn agent(work: &Work) -> Option<&AgentWork> {
    match work {
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

/// What file and definition allow; `None` = what the run allows.
fn permission(work: &Work) -> Option<Permission> {
    match (agent(work), work) {
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
        (_, Some(max)) => format!("at most {max} items"),
        (_, None) => "items".to_owned(),
    }
}

impl Plan {
    /// Every node behind what it waits for; else in the order of the file.
    pub fn order(&self) -> Vec<NodeIx> {
        let mut waiting: Vec<usize> =
            self.nodes.iter().map(|node| node.needs.len() + node.after.len()).collect();
        let ix = |at: usize| NodeIx(u32::try_from(at).unwrap_or(u32::MAX));
        let mut ready: std::collections::BTreeSet<NodeIx> =
            waiting.iter().enumerate().filter(|(_, count)| **count == 0).map(|(at, _)| ix(at)).collect();
        let mut out = Vec::with_capacity(self.nodes.len());
        while let Some(node) = ready.pop_first() {
            out.push(node);
            for next in &self.nodes[node.at()].dependents {
                let other = &self.nodes[next.at()];
                let edges = other.needs.iter().chain(&other.after).filter(|from| **from == node).count();
                waiting[next.at()] -= edges;
                if waiting[next.at()] == 0 {
                    ready.insert(*next);
                }
            }
        }
        out
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
        for (id, input) in &self.inputs {
            let value = if input.secret { "(secret)".to_owned() } else { input.value.to_string() };
            let shown = &value[..value.floor_char_boundary(80)];
            let _ =
                writeln!(out, "input   {id} = {shown}{}", if shown.len() < value.len() { "…" } else { "" });
        }
        let width = self.nodes.iter().map(|node| node.id.as_str().len()).max().unwrap_or(0);
        for (number, ix) in self.order().into_iter().enumerate() {
            self.node_text(&mut out, number + 1, &self.nodes[ix.at()], width);
        }
        for warning in &self.warnings {
            let _ = writeln!(out, "warning {warning}");
        }
        out
    }

    fn node_text(&self, out: &mut String, number: usize, node: &Node, width: usize) {
        let mut words = vec![kind(&node.work).to_owned()];
        if let Work::Merge(merge) = &node.work {
            words.push(strategy(&merge.strategy).to_owned());
        }
        if let Some(agent) = agent(&node.work) {
            words.push(agent.definition.name.clone());
            words.push(if agent.models.is_empty() {
                "default model".into()
            } else {
                agent.models.join(" or ")
            });
            words.push(format!("{} turns", agent.max_turns));
        }
        if let Work::Command(command) = &node.work {
            words.push(match &command.run {
                CommandLine::Argv(argv) => {
                    argv.iter().map(|part| part.source()).collect::<Vec<_>>().join(" ")
                }
                CommandLine::Shell(text) => format!("sh: {}", text.lines().next().unwrap_or_default()),
            });
        }
        if matches!(node.work, Work::Command(_)) || agent(&node.work).is_some() {
            words.push(permission(&node.work).map_or("the run's permission".into(), |mode| mode.to_string()));
            words.push(show_duration(node.timeout));
        }
        words.extend(node.each.as_ref().map(items));
        let needs: Vec<&str> = node.needs.iter().map(|other| self.nodes[other.at()].id.as_str()).collect();
        let after: Vec<&str> = node.after.iter().map(|other| self.nodes[other.at()].id.as_str()).collect();
        if !needs.is_empty() {
            words.push(format!("needs {}", needs.join(", ")));
        }
        if !after.is_empty() {
            words.push(format!("after {}", after.join(", ")));
        }
        let _ = writeln!(out, "{number:>4}  {:width$}  {}", node.id.as_str(), words.join(" · "));
    }

    /// The same as JSON. Secrets are left out.
    pub fn json(&self) -> Value {
        let nodes: Vec<Value> =
            self.order().into_iter().map(|ix| self.node_json(&self.nodes[ix.at()])).collect();
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
            "limits": {
                "concurrency": self.limits.concurrency,
                "commands": self.limits.commands,
                "agents": self.limits.agents,
                "depth": self.limits.depth,
                "providers": self.limits.providers,
            },
            "nodes": nodes,
            "warnings": self.warnings,
        })
    }

    fn node_json(&self, node: &Node) -> Value {
        let names =
            |list: &[NodeIx]| list.iter().map(|ix| self.nodes[ix.at()].id.to_string()).collect::<Vec<_>>();
        let mut out = json!({
            "id": node.id.as_str(),
            "kind": kind(&node.work),
            "needs": names(&node.needs),
            "after": names(&node.after),
            "timeout": show_duration(node.timeout),
            "attempts": node.retry.attempts,
            "optional": node.optional,
            "critical_path": node.critical_path,
            "key": node.static_key.hex(),
        });
        if let Some(agent) = agent(&node.work) {
            out["agent"] = json!(agent.definition.name);
            out["models"] = json!(agent.models);
            out["max_turns"] = json!(agent.max_turns);
        }
        if let Work::Merge(merge) = &node.work {
            out["strategy"] = json!(strategy(&merge.strategy));
        }
        if let Some(mode) = permission(&node.work) {
            out["permission"] = json!(mode.to_string());
        }
        if let Some(each) = &node.each {
            out["each"] = match &each.source {
                EachSource::Static(items) => {
                    json!({ "keys": items.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>() })
                }
                EachSource::Items(_)
                | EachSource::Glob { .. }
                | EachSource::Lines(_)
                | EachSource::Jsonl(_) => {
                    json!({ "max": each.max })
                }
            };
        }
        out
    }
}
