//! Agents, tools and models: found, or unknown with a near name. The last stage.

use super::build::{Build, Spot};
use crate::workflow::file::{Section, Val};
use crate::workflow::problem::{Code, Problem};
use claw_agents::definition::{AgentDefinition, ToolSet};
use claw_agents::permission::{Permission, Reach};
use claw_kernel::near::nearest;
use std::sync::Arc;

impl<'a> Build<'a> {
    /// `[agents.<id>]`.
    pub(super) fn own_agents(&mut self) {
        let file = &self.forest.files[self.file].written;
        for (name, span, value) in file.top.map("agents") {
            let Some(keys) = value.section() else { continue };
            let spot =
                Spot { source: self.source, span: span.clone(), node: None, key: "agents", exact: false };
            let prompt = self.agent_prompt(&spot, name, keys);
            let tools = keys.get("tools").map(|_| self.tools(&spot, keys, "tools"));
            let permission = self.permission(&spot, keys);
            let mut definition = AgentDefinition {
                name: name.to_string(),
                description: keys.text("description").unwrap_or_default().to_owned(),
                revision: 0,
                prompt,
                tools: tools.map_or(ToolSet::All, ToolSet::Only),
                deny_tools: self.tools(&spot, keys, "deny_tools"),
                models: self.models(&spot, keys),
                permission,
                max_turns: keys.int("max_turns").and_then(|turns| u32::try_from(turns).ok()),
            };
            if let Some(hidden) = self.surroundings.agent(name) {
                let message =
                    format!("the agent `{name}` hides the one of that name and keeps at most its tools");
                self.warnings.push(
                    spot.problem(Code::W201, message).with_help("choose another name if that is not meant"),
                );
                definition.tools = at_most(&definition.tools, &hidden.tools);
                definition.deny_tools.extend(hidden.deny_tools.iter().cloned());
            }
            if self.own_agents[self.file].insert(name.to_lowercase(), Arc::new(definition)).is_some() {
                let message = format!("there are two agents `{name}`; case does not tell them apart");
                self.problems.push(spot.problem(Code::E106, message));
            }
        }
    }

    fn agent_prompt(&mut self, spot: &Spot<'_>, name: &str, keys: &Section) -> String {
        match (keys.text("prompt"), keys.text("prompt_file")) {
            (Some(prompt), None) => prompt.to_owned(),
            (None, Some(file)) => {
                let path = self.folder.join(file);
                self.surroundings.read_text(&path).unwrap_or_else(|error| {
                    let message = format!("`{}` cannot be read: {error}", path.display());
                    self.problems.push(spot.problem(Code::E109, message));
                    String::new()
                })
            }
            (None, None) | (Some(_), Some(_)) => {
                let message = format!("the agent `{name}` needs one of `prompt` and `prompt_file`");
                self.problems.push(spot.problem(Code::E108, message));
                String::new()
            }
        }
    }

    /// An agent by name: of the file, then of the surroundings.
    pub(super) fn agent(&mut self, spot: &Spot<'_>, name: &str) -> Option<Arc<AgentDefinition>> {
        let lower = name.to_lowercase();
        if let Some(own) = self.own_agents[self.file].get(&lower) {
            return Some(Arc::clone(own));
        }
        let surroundings = self.surroundings;
        let found = self.agents.entry(lower).or_insert_with(|| surroundings.agent(name)).clone();
        if found.is_none() {
            let mut names = self.surroundings.agent_names();
            names.extend(self.own_agents[self.file].values().map(|agent| agent.name.clone()));
            names.sort();
            let problem = spot.problem(Code::E184, format!("there is no agent `{name}`"));
            let help = match nearest(name, names.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", names.join(", ")),
            };
            self.late.push(problem.with_help(help));
        }
        found
    }

    /// All agents that can be named here: the file's own before those of the surroundings.
    pub(super) fn startable(&self) -> Vec<Arc<AgentDefinition>> {
        let own = &self.own_agents[self.file];
        let hidden = |name: &String| own.contains_key(&name.to_lowercase());
        let around = self.surroundings.agent_names().into_iter().filter(|name| !hidden(name));
        own.values().cloned().chain(around.filter_map(|name| self.surroundings.agent(&name))).collect()
    }

    fn value_spot<'s>(&self, spot: &Spot<'s>, value: &Val, key: &'s str) -> Spot<'s> {
        Spot {
            span: value.span.clone(),
            key: if spot.node.is_none() { spot.key } else { key },
            ..spot.clone()
        }
    }

    /// Canonical names of a list of tools.
    pub(super) fn tools(&mut self, spot: &Spot<'_>, keys: &Section, key: &'static str) -> Vec<String> {
        let mut out = Vec::new();
        for value in keys.list(key) {
            let name = value.text().unwrap_or_default();
            // Tools of MCP servers are known when the servers are there.
            if name.starts_with("mcp__") {
                out.push(name.to_owned());
                continue;
            }
            match self.surroundings.canonical_tool(name) {
                Some(canonical) if out.contains(&canonical) => {}
                Some(canonical) => {
                    // What is taken away may be denied as well.
                    let why = self.surroundings.refused_tool(&canonical).filter(|_| key == "tools");
                    if let Some(why) = why {
                        let spot = self.value_spot(spot, value, key);
                        self.late.push(refused(&spot, &format!("the tool `{name}` is refused: {why}")));
                    }
                    out.push(canonical);
                }
                None => {
                    let names = self.surroundings.tool_names();
                    let near = nearest(name, names.iter().map(String::as_str));
                    let spot = self.value_spot(spot, value, key);
                    self.late.push(spot.problem(Code::E185, format!("there is no tool `{name}`")).near(near));
                }
            }
        }
        out
    }

    /// Names of models, each usable.
    pub(super) fn models(&mut self, spot: &Spot<'_>, keys: &Section) -> Vec<String> {
        for value in keys.list("model") {
            let name = value.text().unwrap_or_default();
            let surroundings = self.surroundings;
            let known = self.models.entry(name.to_owned()).or_insert_with(|| surroundings.check_model(name));
            if let Err(error) = known.clone() {
                let mut problem = self.value_spot(spot, value, "model").problem(Code::E186, error.message);
                problem.help = error.help;
                self.late.push(problem);
            }
        }
        keys.texts("model")
    }

    /// A mode. Full access is never given by a file.
    pub(super) fn permission(&mut self, spot: &Spot<'_>, keys: &Section) -> Option<Permission> {
        let value = keys.get("permission")?;
        let mode: Permission = value.text()?.parse().ok()?;
        if let Some(why) = self.surroundings.refused_mode(mode) {
            let spot = self.value_spot(spot, value, "permission");
            self.late.push(refused(&spot, &format!("the mode {mode} is refused: {why}")));
        }
        if mode.reach < Reach::DangerFullAccess {
            return Some(mode);
        }
        let message = "a file cannot give full access; workspace-write stays";
        let warning = self.value_spot(spot, value, "permission").problem(Code::W202, message);
        self.warnings
            .push(warning.with_help("full access comes from `--permission-mode` or from your own settings"));
        Some(Permission { reach: Reach::WorkspaceWrite, ..mode })
    }
}

pub(super) fn refused(spot: &Spot<'_>, message: &str) -> Problem {
    spot.problem(Code::E187, message).with_help("take it out of the file, or change the rule")
}

fn at_most(wanted: &ToolSet, bound: &ToolSet) -> ToolSet {
    match (wanted, bound) {
        (_, ToolSet::All) => wanted.clone(),
        (ToolSet::All, ToolSet::Only(_)) => bound.clone(),
        (ToolSet::Only(wanted), ToolSet::Only(bound)) => {
            ToolSet::Only(wanted.iter().filter(|tool| bound.contains(tool)).cloned().collect())
        }
    }
}
