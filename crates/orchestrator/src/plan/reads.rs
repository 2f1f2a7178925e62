//! Which nodes a node's texts name: what a scope must hold for it.

use super::model::{AgentWork, CommandLine, Each, EachSource, MergeStrategy, Node, NodeIx, Plan, Work};
use crate::expr::{Expr, Reference, Template};
use claw_kernel::digest::Digest;

/// All texts of a node.
#[derive(Default)]
struct Texts<'a> {
    templates: Vec<&'a Template>,
    exprs: Vec<&'a Expr>,
}

impl<'a> Texts<'a> {
    fn of(node: &'a Node) -> Self {
        let mut texts = Self::default();
        texts.exprs.extend(&node.when);
        texts.templates.extend(&node.label);
        texts.templates.extend(node.artifacts.iter().map(|artifact| &artifact.path));
        if let Some(each) = &node.each {
            texts.each(each);
        }
        texts.content(&node.work);
        texts
    }

    fn each(&mut self, each: &'a Each) {
        self.templates.extend(&each.key);
        match &each.source {
            EachSource::Static(_) => {}
            EachSource::Items(expr) => self.exprs.push(expr),
            EachSource::Glob { include, exclude } => self.templates.extend(include.iter().chain(exclude)),
            EachSource::Lines(path) | EachSource::Jsonl(path) => self.templates.push(path),
        }
    }

    /// What a loop evaluates.
    fn repeat(&mut self, node: &'a Node) {
        if let Some(repeat) = &node.repeat {
            self.exprs.extend(&repeat.until);
            self.exprs.extend(repeat.carry.iter().map(|(_, carry)| carry));
        }
    }

    /// The texts that make the content of a step.
    fn content(&mut self, work: &'a Work) {
        match work {
            Work::Agent(agent) => self.agent(agent),
            Work::Command(command) => {
                match &command.run {
                    CommandLine::Argv(argv) => self.templates.extend(argv),
                    CommandLine::Shell(_) => {}
                }
                self.templates.extend(&command.cwd);
                self.templates.extend(command.env.values());
                self.templates.extend(&command.stdin);
            }
            Work::Set { value } => self.exprs.push(value),
            Work::Group(group) => {
                self.exprs.extend(&group.result);
                self.exprs
                    .extend(group.nested.iter().flat_map(|nested| nested.with.iter().map(|(_, with)| with)));
            }
            Work::Gate(gate) => {
                self.templates.push(&gate.message);
                self.exprs.extend(&gate.show);
            }
            Work::Merge(merge) => {
                self.exprs.extend(&merge.from);
                self.templates.extend(&merge.write);
                match &merge.strategy {
                    MergeStrategy::List | MergeStrategy::Concat => {}
                    MergeStrategy::Dedupe { key, prefer } => {
                        self.templates.push(key);
                        self.exprs.extend(prefer);
                    }
                    MergeStrategy::Agent { agent, .. } => self.agent(agent),
                    MergeStrategy::Git(git) => self.templates.extend(git.verify.iter().flatten()),
                }
            }
        }
    }

    fn agent(&mut self, agent: &'a AgentWork) {
        self.templates.push(&agent.prompt);
        self.templates.extend(&agent.system_append);
        self.templates.extend(&agent.attach);
    }

    fn references(&self) -> impl Iterator<Item = &'a Reference> {
        let templates = self
            .templates
            .clone()
            .into_iter()
            .flat_map(|template| template.references().map(|(name, _)| name));
        self.exprs.clone().into_iter().flat_map(|expr| expr.references()).chain(templates)
    }
}

impl Plan {
    /// The nodes that the texts of a node name, each once: what its scope must hold.
    pub fn reads(&self, node: NodeIx) -> Vec<NodeIx> {
        let node = &self.nodes[node.at()];
        let mut out: Vec<NodeIx> = Vec::new();
        let mut seen: Vec<&str> = Vec::new();
        for name in Texts::of(node).references().filter_map(Reference::node) {
            if seen.contains(&name) {
                continue;
            }
            seen.push(name);
            // Direct needs first: they are few, the plan may be large.
            let near = node.needs.iter().chain(&node.after).copied();
            let found = near.into_iter().find(|other| self.nodes[other.at()].id.as_str() == name);
            out.extend(found.or_else(|| self.find(name)));
        }
        out
    }

    /// The nodes' names that the body of a group uses, with its loop and its result: at any depth, some more than once.
    pub fn names_inside(&self, group: NodeIx) -> Vec<&str> {
        let mut out = Vec::new();
        let mut groups = vec![group];
        while let Some(ix) = groups.pop() {
            let node = &self.nodes[ix.at()];
            let mut texts = Texts::default();
            texts.repeat(node);
            let Work::Group(work) = &node.work else {
                out.extend(texts.references().filter_map(Reference::node));
                continue;
            };
            texts.exprs.extend(&work.result);
            out.extend(texts.references().filter_map(Reference::node));
            for inner in work.body.nodes() {
                out.extend(Texts::of(&self.nodes[inner.at()]).references().filter_map(Reference::node));
                groups.push(inner);
            }
        }
        out
    }

    /// The nodes that `workflow.result` names.
    pub fn result_reads(&self) -> Vec<NodeIx> {
        let mut out: Vec<NodeIx> = Vec::new();
        for name in self.result.iter().flat_map(|expr| expr.references()).filter_map(Reference::node) {
            out.extend(self.find(name).filter(|found| !out.contains(found)));
        }
        out
    }

    /// A node by its name.
    pub fn find(&self, name: &str) -> Option<NodeIx> {
        let at = self.nodes.iter().position(|node| node.id.as_str() == name)?;
        u32::try_from(at).ok().map(NodeIx)
    }
}

impl Node {
    /// The part of the content key that the values behind the names give: with `static_key`, the item's key, and the
    /// digests of what the node needs, this is the whole key.
    pub fn content_digest(&self, scope: &crate::expr::Scope) -> Digest {
        let mut texts = Texts::default();
        texts.content(&self.work);
        let exprs = texts.exprs.iter().map(|expr| expr.content_digest(scope));
        let templates = texts.templates.iter().map(|template| template.content_digest(scope));
        Digest::of_parts(exprs.chain(templates))
    }
}
