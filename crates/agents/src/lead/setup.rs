//! What a lead is started with.

use crate::children::Spawner;
use crate::definition::AgentDefinition;
use crate::permission::Permission;
use crate::purse::Purse;
use crate::services::AgentServices;
use claw_kernel::ids::AgentId;
use claw_providers::request::Effort;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Everything decided, nothing left to look up.
#[derive(Clone)]
pub struct LeadSetup {
    /// What it works with; `compaction` holds for it as for every agent.
    pub services: Arc<AgentServices>,
    /// Its id, for questions and children.
    pub id: AgentId,
    /// What it is: `roles::lead()`, or an agent that the user chose.
    pub definition: Arc<AgentDefinition>,
    /// Tried in order; empty = the providers' default model.
    pub models: Vec<String>,
    /// How hard to think.
    pub effort: Option<Effort>,
    /// Narrows its tools; `None` = all of them.
    pub tools: Option<Vec<String>>,
    /// Taken away.
    pub deny_tools: Vec<String>,
    /// What it may do.
    pub permission: Permission,
    /// Of each prompt; `None` = no limit.
    pub max_turns: Option<u32>,
    /// Added to the end of the system prompt.
    pub system_append: Option<String>,
    /// The workspace, resolved.
    pub workspace: PathBuf,
    /// No provider byte and no tool running for so long: the turn fails.
    pub idle_timeout: Duration,
    /// What requests are paid from; `None`: nobody counts.
    pub purse: Option<Arc<dyn Purse>>,
    /// Starts its agents; `None`: it has none.
    pub spawner: Option<Arc<dyn Spawner>>,
}
