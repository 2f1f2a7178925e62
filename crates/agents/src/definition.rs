//! What an agent is: its prompt, its tools, its limits.

use crate::permission::Permission;

/// Which tools an agent may call, by canonical name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolSet {
    /// All that this build offers.
    All,
    /// These only.
    Only(Vec<String>),
}

/// A built-in role, or an agent that a file defines.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentDefinition {
    /// As shown: letters, digits, `-`, `_`.
    pub name: String,
    /// One line, for people and for models that choose.
    pub description: String,
    /// Counted up when a built-in's prompt or tools change; part of a step's content key.
    pub revision: u32,
    /// Its part of the system prompt.
    pub prompt: String,
    /// What it may call.
    pub tools: ToolSet,
    /// Taken away from `tools`.
    pub deny_tools: Vec<String>,
    /// Models to use, in order; empty = inherit.
    pub models: Vec<String>,
    /// At most this; `None` = inherit.
    pub permission: Option<Permission>,
    /// Turns; `None` = the caller's default.
    pub max_turns: Option<u32>,
}

impl AgentDefinition {
    /// Whether its commands write a copy of the workspace that is thrown away, instead of nothing: for those who check.
    pub fn works_on_a_copy(&self) -> bool {
        self.name == crate::roles::VERIFICATION
    }
}
