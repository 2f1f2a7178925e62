//! The conversation that a person has: `claw` and `claw -p`. Not in the catalog: nobody starts it by name.

use crate::definition::{AgentDefinition, ToolSet};

/// Its name.
pub(crate) const LEAD: &str = "claw";

/// The definition: all tools, no limit of turns, no narrower mode.
pub fn lead() -> AgentDefinition {
    AgentDefinition {
        name: LEAD.into(),
        description: "The conversation with the user.".into(),
        revision: 1,
        prompt: String::new(),
        tools: ToolSet::All,
        deny_tools: Vec::new(),
        models: Vec::new(),
        permission: None,
        max_turns: None,
    }
}
