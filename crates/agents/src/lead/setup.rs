//! What a lead is started with.

use crate::children::Spawner;
use crate::definition::AgentDefinition;
use crate::effects::{EffectLog, NoEffectLog};
use crate::permission::Permission;
use crate::purse::Purse;
use crate::request::AgentRequest;
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

impl LeadSetup {
    /// The system prompt that its conversations get. `date`: another day than today, as `2026-01-31`.
    pub fn system_prompt(&self, date: Option<&str>) -> String {
        let request = self.request(PathBuf::new(), Arc::new(NoEffectLog));
        crate::start::prompt_of(&self.services, &request, date).to_string()
    }

    /// A conversation of it, as its session is at `path`.
    pub(super) fn request(&self, path: PathBuf, effects: Arc<dyn EffectLog>) -> AgentRequest {
        let mut permission = self.permission;
        if let Some(most) = self.definition.permission {
            permission = permission.intersect(most);
        }
        AgentRequest {
            id: self.id.clone(),
            label: "claw".to_owned(),
            definition: self.definition.clone(),
            prompt: String::new(),
            fault: None,
            system_append: self.system_append.clone(),
            models: self.models.clone(),
            effort: self.effort,
            tools: self.tools.clone(),
            deny_tools: self.deny_tools.clone(),
            permission,
            max_turns: self.max_turns,
            output_schema: None,
            workspace: self.workspace.clone(),
            readable: Vec::new(),
            spill: path.with_extension("outputs"),
            transcript: path,
            idle_timeout: self.idle_timeout,
            effects,
            purse: self.purse.clone(),
            spawner: self.spawner.clone(),
        }
    }
}
