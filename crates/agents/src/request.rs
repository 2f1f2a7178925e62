//! What starts an agent: everything decided, nothing left to look up.

use crate::children::Spawner;
use crate::definition::AgentDefinition;
use crate::effects::EffectLog;
use crate::permission::Permission;
use crate::purse::Purse;
use claw_kernel::ids::AgentId;
use claw_providers::request::Effort;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// One attempt of one agent.
#[derive(Clone)]
pub struct AgentRequest {
    /// Its id.
    pub id: AgentId,
    /// Shown in bars and prompts.
    pub label: String,
    /// What it is.
    pub definition: Arc<AgentDefinition>,
    /// Its task, as expanded.
    pub prompt: String,
    /// Why the answer was refused with which the conversation in the transcript ended: it is told, and the conversation
    /// goes on. `None`: an answer that is there is given again.
    pub fault: Option<String>,
    /// Added to the end of the system prompt.
    pub system_append: Option<String>,
    /// Tried in order; empty = the providers' default model.
    pub models: Vec<String>,
    /// How hard to think.
    pub effort: Option<Effort>,
    /// Narrows the definition's tools; `None` = all of them.
    pub tools: Option<Vec<String>>,
    /// Taken away.
    pub deny_tools: Vec<String>,
    /// What it may do: already the intersection with whoever starts it.
    pub permission: Permission,
    /// `None` = no limit.
    pub max_turns: Option<u32>,
    /// JSON Schema of its structured answer.
    pub output_schema: Option<Arc<Value>>,
    /// The workspace: relative paths count from here, writes stay below.
    pub workspace: PathBuf,
    /// Files outside the workspace that it may read (spilled outputs of others).
    pub readable: Vec<PathBuf>,
    /// Where its transcript is appended; goes on from what is whole in it.
    pub transcript: PathBuf,
    /// Folder for its spilled outputs.
    pub spill: PathBuf,
    /// No provider byte and no tool running for so long: the attempt fails with `timeout`.
    pub idle_timeout: Duration,
    /// Where effects are told before they happen.
    pub effects: Arc<dyn EffectLog>,
    /// What its requests are paid from; `None`: nobody counts.
    pub purse: Option<Arc<dyn Purse>>,
    /// Starts its children; `None`: it has none, and is not offered the tool.
    pub spawner: Option<Arc<dyn Spawner>>,
}
