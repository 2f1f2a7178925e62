//! Files of agents, skills and commands, as they lie round a folder.

use crate::services::{config_home, home};
use claw_agents::definition::AgentDefinition;
use claw_agents::library::{Library, Root};
use claw_agents::roles::Catalog;
use claw_orchestrator::rundir::project_top;
use claw_tools::registry::Registry;
use std::path::Path;
use std::sync::Arc;

/// Reads them.
pub fn load(cwd: &Path, registry: &Registry) -> Library {
    let roots = Root::around(cwd, &project_top(cwd), &config_home(), &home());
    Library::load(&roots, &|name| registry.canonical(name))
}

/// All agents that can be named: the built-in ones, then those of files.
pub fn catalog(library: &Library) -> Catalog {
    let mut catalog = Catalog::builtin();
    for agent in library.agents().iter().filter(|entry| entry.hidden_by.is_none()) {
        catalog.add(agent.item.definition.clone());
    }
    catalog
}

/// The file of an agent, where it has one.
pub fn file_of<'a>(
    library: &'a Library,
    agent: &Arc<AgentDefinition>,
) -> Option<&'a claw_agents::library::Entry<claw_agents::library::AgentFile>> {
    let is_it = |name: &str| name.eq_ignore_ascii_case(&agent.name);
    library.agents().iter().find(|entry| entry.hidden_by.is_none() && is_it(&entry.item.definition.name))
}
