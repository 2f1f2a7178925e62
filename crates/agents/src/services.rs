//! What all agents of a process share: made once, lent to every conversation.
//!
//! Owns the list of services and what is worth making once for many agents. Must not know a single agent.

use crate::compaction::CompactionSettings;
use crate::conversation::{AnswerSchema, ToolNames, Toolbox};
use crate::definition::AgentDefinition;
use crate::hooks::Hooks;
use crate::mcp::McpServers;
use crate::model::Model;
use crate::permission::{Asker, Permission, RuleSet};
pub use crate::sandboxes::{Loan, Outfit, Sandboxes};
use claw_kernel::durable::LogWriter;
use claw_kernel::redact::Redactor;
use claw_providers::request::ToolSpec;
use claw_tools::builtin::BadSchema;
use claw_tools::ports::Ports;
use claw_tools::registry::{Registry, RegistryCell};
use serde_json::Value;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Kept of each kind; above it, all are made anew as they are needed.
const MOST_SHARED: usize = 256;

/// What agents work with.
pub struct AgentServices {
    /// Answers requests.
    pub model: Arc<dyn Model>,
    /// All tools; some come late and go again.
    pub registry: RegistryCell,
    /// Who is there beyond the machine.
    pub ports: Arc<Ports>,
    /// Takes secrets out where a text enters a conversation.
    pub redactor: Arc<Redactor>,
    /// Writes transcripts.
    pub logs: LogWriter,
    /// What people allowed, denied or want to be asked for.
    pub rules: Arc<RuleSet>,
    /// Whom to ask.
    pub asker: Arc<dyn Asker>,
    /// The sandbox of commands.
    pub sandboxes: Sandboxes,
    /// Commands of people that see, change or stop what agents do.
    pub hooks: Arc<Hooks>,
    /// Servers whose tools are in the registry.
    pub mcp: McpServers,
    /// Memory files for the system prompt; see `system_prompt::load_memory`.
    pub memory: Arc<str>,
    /// Never written by a tool: claw's own state, the running workflow file. Resolved, absolute.
    pub protected: Vec<PathBuf>,
    /// When histories are compacted.
    pub compaction: CompactionSettings,
    /// Start with the default.
    pub shared: Shared,
}

/// What many agents have in common, so that a thousand of them hold it once.
#[derive(Default)]
pub struct Shared {
    toolboxes: Mutex<HashMap<ToolboxKey, Arc<Toolbox>>>,
    prompts: Mutex<HashMap<PromptKey, Arc<str>>>,
    schemas: Mutex<Vec<Arc<AnswerSchema>>>,
    env: Arc<[(String, String)]>,
}

impl Shared {
    /// With variables that the settings give to commands.
    pub fn with_env(env: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { env: env.into_iter().collect(), ..Self::default() }
    }

    /// Variables that the settings give to commands.
    pub fn env(&self) -> &Arc<[(String, String)]> {
        &self.env
    }
}

/// What a system prompt is made from. The tools by the place where they lie: they are held here.
pub(crate) struct PromptKey {
    pub(crate) definition: Arc<AgentDefinition>,
    pub(crate) tools: Arc<[ToolSpec]>,
    pub(crate) folder: PathBuf,
    pub(crate) day: String,
    pub(crate) branch: Option<String>,
    pub(crate) permission: Permission,
    pub(crate) append: Option<String>,
}

impl PartialEq for PromptKey {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.tools, &other.tools)
            && (Arc::ptr_eq(&self.definition, &other.definition) || self.definition == other.definition)
            && (&self.folder, &self.day, self.permission) == (&other.folder, &other.day, other.permission)
            && (&self.branch, &self.append) == (&other.branch, &other.append)
    }
}

impl Eq for PromptKey {}

impl Hash for PromptKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.definition.name, Arc::as_ptr(&self.tools), &self.append).hash(state);
    }
}

/// The registry by the place where it lies, the names that are shown and those held back, and the schema by its place: all
/// are held as long as the toolbox is.
type ToolboxKey = (usize, ToolNames, Option<usize>);

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A cache: whatever a panic left in it is whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// The system prompt of a key, made where it is not there yet.
    pub(crate) fn prompt(&self, key: PromptKey, make: impl FnOnce(&PromptKey) -> String) -> Arc<str> {
        let mut prompts = held(&self.prompts);
        if let Some(known) = prompts.get(&key) {
            return known.clone();
        }
        if prompts.len() >= MOST_SHARED {
            prompts.clear();
        }
        let text: Arc<str> = make(&key).into();
        prompts.insert(key, text.clone());
        text
    }

    /// Errors: it is no schema.
    pub(crate) fn schema(&self, schema: &Arc<Value>) -> Result<Arc<AnswerSchema>, BadSchema> {
        let mut schemas = held(&self.schemas);
        if let Some(known) = schemas.iter().find(|known| Arc::ptr_eq(known.schema(), schema)) {
            return Ok(known.clone());
        }
        let compiled = Arc::new(AnswerSchema::new(schema.clone())?);
        if schemas.len() >= MOST_SHARED {
            schemas.clear();
        }
        schemas.push(compiled.clone());
        Ok(compiled)
    }

    /// `answer`: the schema of the structured-output tool, where that is offered.
    pub(crate) fn toolbox(
        &self,
        registry: &Arc<Registry>,
        names: ToolNames,
        answer: Option<&Arc<AnswerSchema>>,
    ) -> Arc<Toolbox> {
        let place = |schema: &Arc<AnswerSchema>| Arc::as_ptr(schema) as usize;
        let key = (Arc::as_ptr(registry) as usize, names, answer.map(place));
        let mut toolboxes = held(&self.toolboxes);
        if let Some(known) = toolboxes.get(&key) {
            return known.clone();
        }
        let toolbox = Arc::new(Toolbox::new(registry.clone(), &key.1, answer.cloned()));
        if toolboxes.len() >= MOST_SHARED {
            toolboxes.clear();
        }
        toolboxes.insert(key, toolbox.clone());
        toolbox
    }
}
