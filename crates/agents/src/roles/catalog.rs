//! Finds an agent by name. Files of agents will be read into it; an unknown name is an error, never a default.

use super::{claude_code_guide, explore, general_purpose, plan, statusline_setup, verification};
use crate::definition::{AgentDefinition, ToolSet};
use claw_kernel::near::nearest;
use indexmap::IndexMap;
use std::sync::Arc;

/// No agent has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown agent `{name}`{}; agents are {}", near.as_deref().map(|n| format!(" (did you mean `{n}`?)")).unwrap_or_default(), known.join(", "))]
pub struct UnknownAgent {
    /// As typed.
    pub name: String,
    /// The nearest, where one is near.
    pub near: Option<String>,
    /// All names, in order.
    pub known: Vec<String>,
}

/// What became of an added definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// As it was.
    Whole,
    /// It has a built-in's name: its tools and mode were narrowed to the built-in's.
    Narrowed,
}

/// All agents that can be named.
#[derive(Clone, Debug)]
pub struct Catalog {
    agents: IndexMap<String, Arc<AgentDefinition>>,
}

impl Default for Catalog {
    fn default() -> Self {
        Self::builtin()
    }
}

impl Catalog {
    /// The built-in roles.
    pub fn builtin() -> Self {
        let all = [
            general_purpose::definition(),
            explore::definition(),
            plan::definition(),
            verification::definition(),
            claude_code_guide::definition(),
            statusline_setup::definition(),
        ];
        Self { agents: all.into_iter().map(|agent| (key(&agent.name), Arc::new(agent))).collect() }
    }

    /// Adds one that a project brings; it replaces one of the same name. With a built-in's name it gets at most the
    /// built-in's tools and mode.
    pub fn add(&mut self, mut agent: AgentDefinition) -> Added {
        let key = key(&agent.name);
        let mut added = Added::Whole;
        if let Some(builtin) = Self::builtin().agents.get(&key) {
            narrow(&mut agent, builtin);
            added = Added::Narrowed;
        }
        self.agents.insert(key, Arc::new(agent));
        added
    }

    /// By name, in any case.
    pub fn get(&self, name: &str) -> Result<Arc<AgentDefinition>, UnknownAgent> {
        self.agents.get(&key(name)).cloned().ok_or_else(|| {
            let near = nearest(name.trim(), self.agents.values().map(|agent| agent.name.as_str()));
            UnknownAgent {
                name: name.to_owned(),
                near: near.map(str::to_owned),
                known: self.agents.values().map(|agent| agent.name.clone()).collect(),
            }
        })
    }

    /// All of them, built-ins first.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<AgentDefinition>> {
        self.agents.values()
    }
}

fn key(name: &str) -> String {
    name.trim().to_lowercase()
}

fn narrow(agent: &mut AgentDefinition, builtin: &AgentDefinition) {
    agent.tools = match (&builtin.tools, std::mem::replace(&mut agent.tools, ToolSet::All)) {
        (ToolSet::All, own) => own,
        (ToolSet::Only(most), ToolSet::All) => ToolSet::Only(most.clone()),
        (ToolSet::Only(most), ToolSet::Only(mut own)) => {
            own.retain(|name| most.iter().any(|known| known.eq_ignore_ascii_case(name)));
            ToolSet::Only(own)
        }
    };
    agent.deny_tools.extend(builtin.deny_tools.iter().cloned());
    agent.permission = match (agent.permission, builtin.permission) {
        (Some(own), Some(most)) => Some(own.intersect(most)),
        (own, most) => own.or(most),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permission::Permission;

    #[test]
    fn a_name_is_found_in_any_case_and_an_unknown_one_names_the_near_one() {
        let catalog = Catalog::builtin();
        assert_eq!(catalog.get("EXPLORE").unwrap().name, "Explore");
        let error = catalog.get("Verfication").unwrap_err();
        assert_eq!(error.near.as_deref(), Some("Verification"));
        assert!(error.to_string().contains("did you mean `Verification`?"), "{error}");
    }

    #[test]
    fn a_projects_agent_with_a_builtins_name_gets_at_most_its_tools() {
        let mut catalog = Catalog::builtin();
        let mut own = (*catalog.get("general-purpose").unwrap()).clone();
        own.name = "explore".into();
        own.permission = Some(Permission::DANGER_FULL_ACCESS);
        assert_eq!(catalog.add(own.clone()), Added::Narrowed);
        let narrowed = catalog.get("Explore").unwrap();
        assert_eq!(narrowed.tools, Catalog::builtin().get("Explore").unwrap().tools);
        assert_eq!(narrowed.permission, Some(Permission::READ_ONLY));
        own.name = "mine".into();
        assert_eq!(catalog.add(own), Added::Whole);
    }

    #[test]
    fn only_three_agents_run_commands() {
        for agent in Catalog::builtin().iter() {
            let runs = match &agent.tools {
                ToolSet::All => true,
                ToolSet::Only(names) => names.iter().any(|name| name == "bash"),
            };
            assert_eq!(
                runs,
                matches!(agent.name.as_str(), "Verification" | "general-purpose" | "statusline-setup"),
                "{}",
                agent.name
            );
        }
    }
}
