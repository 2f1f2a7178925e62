//! What a plan needs to know beside the file, as a trait: so the plan stays a pure function.

use super::model::Limits;
use claw_agents::definition::AgentDefinition;
use claw_agents::permission::Permission;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A model that cannot be used, in words for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelProblem {
    /// What is wrong, a fragment.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

/// Agents, tools, files and models, read before the plan is made.
pub trait Surroundings {
    /// An agent by name, compared without case. The file's own agents are not asked for here.
    fn agent(&self, name: &str) -> Option<Arc<AgentDefinition>>;
    /// For near names.
    fn agent_names(&self) -> Vec<String>;
    /// Canonical names.
    fn tool_names(&self) -> Vec<String>;
    /// `Read` → `read_file`.
    fn canonical_tool(&self, name: &str) -> Option<String>;
    /// Why a tool is denied whatever its input is. Its canonical name.
    fn refused_tool(&self, _name: &str) -> Option<String> {
        None
    }
    /// Why a mode is past what anybody here may have.
    fn refused_mode(&self, _mode: Permission) -> Option<String> {
        None
    }
    /// Why a command line never runs.
    fn refused_command(&self, _line: &str) -> Option<String> {
        None
    }
    /// A prompt or a schema beside the workflow file.
    ///
    /// # Errors
    /// As the file system says.
    fn read_text(&self, path: &Path) -> io::Result<String>;
    /// `limits.commands` where the file says nothing: 2 × cores.
    fn default_commands(&self) -> usize;
    /// `limits` where the file says nothing.
    fn default_limits(&self) -> Limits {
        Limits::standard(self.default_commands())
    }
    /// Whether a model, alias or `provider/model` can be used at all.
    ///
    /// # Errors
    /// Where it cannot.
    fn check_model(&self, model: &str) -> Result<(), ModelProblem>;
    /// Whether the price of a model is known; `None` asks for the model of nodes that name none.
    fn price_known(&self, model: Option<&str>) -> bool;
    /// Whether reading a prompt from its service's cache is cheaper than sending it anew; `None` as above.
    fn cache_pays(&self, model: Option<&str>) -> bool;
}
