//! The door through which a conversation asks for a child.

use super::background::Background;
use crate::effects::CallNo;
use futures_util::future::BoxFuture;

/// What a model wants a child for. Its description and its prompt are not blank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildTask {
    /// A few words for people.
    pub description: String,
    /// The whole task: a child sees nothing else of its parent.
    pub prompt: String,
    /// Which agent; `None`: the default one.
    pub subagent_type: Option<String>,
    /// Shown to people; `None`: the description.
    pub name: Option<String>,
    /// Instead of its definition's.
    pub model: Option<String>,
    /// The call is answered at once: its end is told later.
    pub background: bool,
    /// It works in a work tree of its own.
    pub isolated: bool,
}

/// One call of the tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnRequest {
    /// Which call: the same again when an interrupted attempt is gone on with.
    pub call: CallNo,
    /// What for.
    pub task: ChildTask,
}

/// What the parent's model is told at the end of the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildSaid {
    /// The child's last text, or why there is none. Bounded.
    pub text: String,
    /// The child failed, or never started.
    pub is_error: bool,
}

impl ChildSaid {
    /// Why there is no child, or no answer of it.
    pub fn error(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: true }
    }
}

/// Starts children of one conversation.
pub trait Spawner: Send + Sync {
    /// Asks for it at once: calls come in the order in which their children are numbered. The future is done when the
    /// child has ended, or when it is refused. Whoever drops the future no longer waits; the child ends
    /// with its parent.
    fn spawn(&self, request: SpawnRequest) -> BoxFuture<'_, ChildSaid>;

    /// Agents that work while the conversation goes on; `None`: it waits for all that it starts.
    fn background(&self) -> Option<&dyn Background> {
        None
    }
}
