//! Which nodes a node's texts name: what a scope must hold for it.

use super::model::{AgentWork, Body, CommandLine, Each, EachSource, MergeStrategy, Node, NodeIx, Plan, Work};
use crate::expr::{Expr, Reference, Template};
use claw_kernel::digest::Digest;

/// Texts of a node.
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
        match &node.work {
            // Its result is read behind its body.
            Work::Group(group) => {
                let nested = group.nested.iter().flat_map(|nested| &nested.with);
                texts.exprs.extend(nested.map(|(_, with)| with));
            }
            work => texts.content(work),
        }
        texts
    }

    /// Texts that are read when an iteration has run.
    fn over(node: &'a Node) -> Self {
        let mut texts = Self::default();
        if let Some(repeat) = &node.repeat {
            texts.exprs.extend(&repeat.until);
            texts.exprs.extend(repeat.carry.iter().map(|(_, value)| value));
        }
        if let Work::Group(group) = &node.work
            && group.nested.is_none()
        {
            texts.exprs.extend(&group.result);
        }
        texts
    }

    fn each(&mut self, each: &'a Each) {
        self.templates.extend(&each.key);
        match &each.source {
            EachSource::Static(_) | EachSource::Listed(_) => {}
            EachSource::Items(expr) => self.exprs.push(expr),
            EachSource::Glob { include, exclude } => self.templates.extend(include.iter().chain(exclude)),
            EachSource::Lines(path) | EachSource::Jsonl(path) => self.templates.push(path),
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

/// Names of nodes, each once.
fn names<'a>(texts: &Texts<'a>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for name in texts.references().filter_map(Reference::node) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

impl Plan {
    /// The nodes that the texts of a node name, each once: what their scopes must hold. Of a group, what its `result`
    /// and its loop name of the body too; of a loop over one node, not the node itself.
    pub fn reads(&self, ix: NodeIx) -> Vec<NodeIx> {
        let node = &self.nodes[ix.at()];
        let beside = names(&Texts::of(node)).into_iter().filter_map(|name| self.resolve(ix, name));
        let over = names(&Texts::over(node)).into_iter().filter_map(|name| match &node.work {
            Work::Group(group) if group.nested.is_none() => self.resolve_inside(ix, name),
            _ => self.resolve(ix, name),
        });
        let result = self.nested_result(node).into_iter();
        let mut out: Vec<NodeIx> = Vec::new();
        for found in beside.chain(over).chain(result).filter(|found| *found != ix) {
            if !out.contains(&found) {
                out.push(found);
            }
        }
        out
    }

    /// The nodes' names that the body of a group uses, with its loop and its result: at any depth, some more than
    /// once. A nested file sees nothing of what is around it.
    pub fn names_inside(&self, group: NodeIx) -> Vec<&str> {
        let mut out = Vec::new();
        let mut groups = vec![group];
        while let Some(ix) = groups.pop() {
            let node = &self.nodes[ix.at()];
            out.extend(Texts::over(node).references().filter_map(Reference::node));
            let Work::Group(work) = &node.work else { continue };
            for inner in work.body.nodes().filter(|_| work.nested.is_none()) {
                out.extend(Texts::of(&self.nodes[inner.at()]).references().filter_map(Reference::node));
                groups.push(inner);
            }
        }
        out
    }

    /// The nodes that `workflow.result` names.
    pub fn result_reads(&self) -> Vec<NodeIx> {
        let exprs = self.result.iter().collect();
        let texts = Texts { exprs, ..Texts::default() };
        names(&texts).into_iter().filter_map(|name| self.among(self.top, name)).collect()
    }

    /// What the result of a nested file names of its nodes.
    fn nested_result(&self, node: &Node) -> Vec<NodeIx> {
        let Work::Group(group) = &node.work else { return Vec::new() };
        let exprs = group.result.iter().filter(|_| group.nested.is_some()).collect();
        let texts = Texts { exprs, ..Texts::default() };
        names(&texts).into_iter().filter_map(|name| self.among(group.body, name)).collect()
    }

    /// The node that a name stands for in a text of a node: the nearest of that name beside it, beside its group, and
    /// so on up to the file.
    pub fn resolve(&self, from: NodeIx, name: &str) -> Option<NodeIx> {
        let node = &self.nodes[from.at()];
        // Direct needs first: they are few, the graph may be large.
        let near = node.needs.iter().chain(&node.after).copied();
        let found = near.into_iter().find(|other| self.nodes[other.at()].id.as_str() == name);
        found.or_else(|| match node.parent {
            Some(parent) => self.resolve_inside(parent, name),
            None => self.among(self.top, name),
        })
    }

    /// As [`Plan::resolve`], for a text that stands in the body of a group.
    pub fn resolve_inside(&self, group: NodeIx, name: &str) -> Option<NodeIx> {
        let Work::Group(work) = &self.nodes[group.at()].work else { return self.resolve(group, name) };
        let found = self.among(work.body, name);
        if found.is_some() || work.nested.is_some() { found } else { self.resolve(group, name) }
    }

    fn among(&self, body: Body, name: &str) -> Option<NodeIx> {
        body.nodes().find(|ix| self.nodes[ix.at()].id.as_str() == name)
    }

    /// A node by its name, one of the file itself first.
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
