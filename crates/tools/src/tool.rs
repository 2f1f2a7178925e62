//! What every tool is: a name, a schema, what it does to the world, a call.

use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::ports::{Messenger, Ports};
use crate::state::ConversationState;
use claw_kernel::cancel::CancelToken;
use claw_kernel::redact::Redactor;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
pub use url::Url;

/// What a call would do to the world, known before it runs. The permission gate reads this, never the input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// Files and folders that it reads, resolved (symlinks, `..`), absolute.
    pub reads: Vec<PathBuf>,
    /// Files that it writes, resolved (through a final symlink to its target), absolute.
    pub writes: Vec<PathBuf>,
    /// The command line that it runs.
    pub executes: Option<String>,
    /// Whether it talks to the network.
    pub network: bool,
    /// The address that it fetches, where it is one.
    pub url: Option<Url>,
    /// The setting of the user that it changes.
    pub changes: Option<String>,
    /// The server outside of every sandbox that carries it out.
    pub server: Option<String>,
}

impl Effect {
    /// The path that is read.
    pub(crate) fn read(&self, tool: &'static str) -> Result<&Path, ToolError> {
        self.reads.first().map(PathBuf::as_path).ok_or_else(|| nothing_judged(tool))
    }

    /// The path that is written.
    pub(crate) fn written(&self, tool: &'static str) -> Result<&Path, ToolError> {
        self.writes.first().map(PathBuf::as_path).ok_or_else(|| nothing_judged(tool))
    }

    /// Whether nothing but reading happens.
    pub fn is_read_only(&self) -> bool {
        let stays = self.writes.is_empty() && self.executes.is_none() && self.changes.is_none();
        stays && !self.network && self.server.is_none()
    }
}

/// A call without the effect that was judged for it.
fn nothing_judged(tool: &'static str) -> ToolError {
    let message = "no path was judged for this call".to_owned();
    ToolError::Input { tool, path: "path".to_owned(), message }
}

/// A tool. One file for each; stateless: what a conversation carries is in `ToolContext`.
pub trait Tool: Send + Sync + 'static {
    /// Canonical name. Built-in: `^[a-z_]{1,64}$`; those that come at run time from `names::interned`.
    fn name(&self) -> &'static str;
    /// Names of other programs for it (compared in lower case without `_` and `-`).
    fn aliases(&self) -> &'static [&'static str];
    /// For the model.
    fn description(&self) -> String;
    /// JSON Schema of the input, derived from its type.
    fn input_schema(&self) -> Value;
    /// What a call with this input would do. Errors: the input is not valid.
    fn effect(&self, ctx: &ToolContext, input: &Value) -> Result<Effect, ToolError>;
    /// Runs the call. Cancel-safe: ends within 2 s of `ctx.cancel`, leaves nothing behind.
    ///
    /// `judged`: what `effect` said of this input and the gate let pass. Paths are taken from there and never resolved
    /// again: what was judged is what runs.
    fn call<'a>(
        &'a self,
        ctx: &'a ToolContext,
        judged: &'a Effect,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// Files that no tool may read, for tools that meet files on their way. The default hides nothing.
#[derive(Clone, Default)]
pub struct Hidden(Option<Arc<IsHidden>>);

type IsHidden = dyn Fn(&Path) -> bool + Send + Sync;

impl Hidden {
    /// Hides the paths (resolved, absolute) that `is_hidden` says yes to.
    pub fn by(is_hidden: impl Fn(&Path) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(is_hidden)))
    }

    /// Whether a path is hidden.
    pub fn hides(&self, path: &Path) -> bool {
        self.0.as_ref().is_some_and(|is_hidden| is_hidden(path))
    }
}

/// What one conversation lends to its calls. Cheap to clone.
#[derive(Clone)]
pub struct ToolContext {
    /// The agent's own working folder; `bash` carries it on.
    pub folder: Arc<crate::folder::WorkingFolder>,
    /// Who reads and writes: named in "changed since you read it, by agent B".
    pub agent: Arc<str>,
    /// Which file this agent read in which state; shared knowledge of who wrote what in this process.
    pub reads: Arc<crate::read_state::ReadState>,
    /// Ends the call.
    pub cancel: CancelToken,
    /// What commands may touch.
    pub sandbox: Arc<crate::sandbox::SandboxPolicy>,
    /// What rules let no tool read.
    pub hidden: Hidden,
    /// Folder for outputs too long for the model; made on first use.
    pub spill: Arc<PathBuf>,
    /// Known secrets leave a text before it is cut or kept: a cut would leave a part of one that nobody knows again.
    pub redactor: Arc<Redactor>,
    /// Variables that the user's settings give to commands.
    pub env: Arc<[(String, String)]>,
    /// What lives as long as the conversation: background commands, the todo list. Its owner ends it.
    pub state: Arc<ConversationState>,
    /// Who is there beyond the machine.
    pub ports: Arc<Ports>,
    /// Shows what this agent says to the user besides its answer; `None`: nobody looks.
    pub messenger: Option<Arc<dyn Messenger>>,
}
