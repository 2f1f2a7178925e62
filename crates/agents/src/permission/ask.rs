//! Whom to ask when a call leaves what its mode contains.
//!
//! Owns the question's shape. Must not know how it is shown.

use claw_kernel::ids::AgentId;
use futures_util::future::BoxFuture;

/// One question about one call.
#[derive(Clone, Debug)]
pub struct AskRequest {
    /// Whose call.
    pub agent: AgentId,
    /// The agent's name as shown.
    pub label: String,
    /// Canonical name of the tool.
    pub tool: String,
    /// The command line or the resolved paths.
    pub subject: String,
    /// Each simple command of a line that has several.
    pub parts: Vec<String>,
    /// Why it is asked: names the mode in force and what the call needs.
    pub why: String,
    /// The rule that an answer for always writes, and that may be answered for the session; `None`: it is asked each
    /// time.
    pub rule: Option<String>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The call runs.
    Allow,
    /// It does not.
    Deny {
        /// The person's words for the model, where there are some.
        message: Option<String>,
    },
    /// Nobody is there: the reason names what would allow it.
    Nobody,
}

/// Puts questions to a person. Waiting ends when the future is dropped.
pub trait Asker: Send + Sync {
    /// Asks and waits for the answer.
    fn ask(&self, request: AskRequest) -> BoxFuture<'_, Reply>;
}

/// Every question is answered at once: nobody is there.
#[derive(Clone, Copy, Debug, Default)]
pub struct NobodyToAsk;

impl Asker for NobodyToAsk {
    fn ask(&self, _: AskRequest) -> BoxFuture<'_, Reply> {
        Box::pin(std::future::ready(Reply::Nobody))
    }
}
