//! The static part of a step's content key: what stands in the file or the agent's definition, and nothing that only
//! says when, how often or how it looks.

use super::model::{
    AgentWork, Base, CommandLine, CommandWork, GateWork, GitMerge, GroupWork, Isolation, MergeStrategy,
    MergeWork, OutputSpec, Work,
};
use crate::expr::{Expr, Template};
use claw_agents::definition::{AgentDefinition, ToolSet};
use claw_agents::permission::Permission;
use claw_kernel::digest::Digest;
use claw_providers::request::Effort;

/// Counted up when the meaning of a key changes.
const VERSION: &str = "claw-key-1";

/// Parts, each with its name, so that no two nodes meet by accident.
#[derive(Default)]
struct Parts(Vec<String>);

impl Parts {
    fn put(&mut self, name: &str, value: impl Into<String>) {
        self.0.push(name.to_owned());
        self.0.push(value.into());
    }

    fn list<'t>(&mut self, name: &str, values: impl IntoIterator<Item = &'t str>) {
        self.0.push(format!("{name}["));
        self.0.extend(values.into_iter().map(str::to_owned));
        self.0.push("]".to_owned());
    }

    /// A list whose order means nothing.
    fn set<'t>(&mut self, name: &str, values: impl IntoIterator<Item = &'t str>) {
        let mut values: Vec<&str> = values.into_iter().collect();
        values.sort_unstable();
        self.list(name, values);
    }

    fn template(&mut self, name: &str, template: Option<&Template>) {
        if let Some(template) = template {
            self.put(name, template.source());
        }
    }

    fn permission(&mut self, permission: Option<Permission>) {
        if let Some(permission) = permission {
            self.put("permission", permission.to_string());
        }
    }
}

/// Digest over kind, agent, texts as written, tools, permission, output and the worktree it works in.
pub(super) fn static_key(work: &Work, output: &OutputSpec, folder: Isolation) -> Digest {
    let mut parts = Parts(vec![VERSION.to_owned()]);
    match work {
        Work::Agent(agent) => {
            parts.put("kind", "agent");
            agent_parts(&mut parts, agent);
        }
        Work::Command(command) => command_parts(&mut parts, command),
        Work::Set { value } => {
            parts.put("kind", "set");
            parts.put("value", value.source());
        }
        Work::Merge(merge) => merge_parts(&mut parts, merge),
        Work::Group(group) => group_parts(&mut parts, group),
        Work::Gate(gate) => gate_parts(&mut parts, gate),
    }
    match output {
        OutputSpec::Text => parts.put("output", "text"),
        OutputSpec::Json => parts.put("output", "json"),
        OutputSpec::Schema(schema) => parts.put("schema", schema.to_string()),
    }
    match folder {
        Isolation::None => {}
        Isolation::Worktree(Base::ParentHead) => parts.put("worktree", "parent_head"),
        Isolation::Worktree(Base::ParentDirty) => parts.put("worktree", "parent_dirty"),
    }
    Digest::of_parts(parts.0)
}

fn agent_parts(parts: &mut Parts, agent: &AgentWork) {
    definition_parts(parts, &agent.definition);
    parts.put("prompt", agent.prompt.source());
    parts.template("system_append", agent.system_append.as_ref());
    parts.list("models", agent.models.iter().map(String::as_str));
    if let Some(effort) = agent.effort {
        parts.put(
            "effort",
            match effort {
                Effort::Low => "low",
                Effort::Medium => "medium",
                Effort::High => "high",
            },
        );
    }
    if let Some(tools) = &agent.tools {
        parts.set("tools", tools.iter().map(String::as_str));
    }
    parts.set("deny_tools", agent.deny_tools.iter().map(String::as_str));
    parts.permission(agent.permission);
    parts.list("attach", agent.attach.iter().map(Template::source));
}

fn definition_parts(parts: &mut Parts, definition: &AgentDefinition) {
    parts.put("agent", definition.name.to_lowercase());
    // A built-in counts its revisions; of others all that they say counts.
    if definition.revision > 0 {
        return parts.put("revision", definition.revision.to_string());
    }
    parts.put("agent_prompt", definition.prompt.as_str());
    match &definition.tools {
        ToolSet::All => parts.put("agent_tools", "all"),
        ToolSet::Only(tools) => parts.set("agent_tools", tools.iter().map(String::as_str)),
    }
    parts.set("agent_deny_tools", definition.deny_tools.iter().map(String::as_str));
    parts.permission(definition.permission);
}

fn command_parts(parts: &mut Parts, command: &CommandWork) {
    parts.put("kind", "command");
    match &command.run {
        CommandLine::Argv(argv) => parts.list("argv", argv.iter().map(Template::source)),
        CommandLine::Shell(text) => parts.put("shell", text.as_str()),
    }
    parts.template("cwd", command.cwd.as_ref());
    let mut env: Vec<_> = command.env.iter().collect();
    env.sort_unstable_by_key(|(name, _)| name.as_str());
    for (name, value) in env {
        parts.put(&format!("env {name}"), value.source());
    }
    parts.template("stdin", command.stdin.as_ref());
    parts.put("ok_exit", format!("{:?}", command.ok_exit));
    parts.put("parse", format!("{:?}", command.parse));
    parts.permission(command.permission);
}

fn merge_parts(parts: &mut Parts, merge: &MergeWork) {
    parts.put("kind", "merge");
    parts.list("from", merge.from.iter().map(|expr| expr.source()));
    match &merge.strategy {
        MergeStrategy::List => parts.put("strategy", "list"),
        MergeStrategy::Concat => parts.put("strategy", "concat"),
        MergeStrategy::Dedupe { key, prefer } => {
            parts.put("strategy", "dedupe");
            parts.put("key", key.source());
            parts.put("prefer", prefer.as_ref().map_or("", |expr| expr.source()));
        }
        MergeStrategy::Agent { agent, window } => {
            parts.put("strategy", "agent");
            parts.put("window", window.to_string());
            agent_parts(parts, agent);
        }
        MergeStrategy::Git(git) => git_parts(parts, git),
    }
    parts.template("write", merge.write.as_ref());
}

/// The body has keys of its own.
fn group_parts(parts: &mut Parts, group: &GroupWork) {
    parts.put("kind", "group");
    parts.put("result", group.result.as_ref().map_or("", Expr::source));
    for (name, value) in group.nested.iter().flat_map(|nested| &nested.with) {
        parts.put(&format!("with {name}"), value.source());
    }
}

fn gate_parts(parts: &mut Parts, gate: &GateWork) {
    parts.put("kind", "gate");
    parts.put("message", gate.message.source());
    parts.list("show", gate.show.iter().map(Expr::source));
    parts.list("choices", gate.choices.iter().map(String::as_str));
}

fn git_parts(parts: &mut Parts, git: &GitMerge) {
    parts.put("strategy", "git");
    parts.put("apply", format!("{:?}", git.apply));
    parts.list("verify", git.verify.iter().flatten().map(Template::source));
    parts.put("on_conflict", format!("{:?}", git.on_conflict));
}
