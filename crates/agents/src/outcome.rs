//! How an agent ended.

use claw_kernel::clock::Timestamp;
use claw_providers::usage::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Why an attempt failed: the closed list that `retry.on` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// Connection, 5xx.
    Transient,
    /// 429.
    RateLimit,
    /// 529.
    Overloaded,
    /// The attempt's own time limit, or silence.
    Timeout,
    /// Three wrong structured answers.
    Schema,
    /// A tool broke the conversation.
    Tool,
    /// A command's exit code.
    Exit,
    /// A required artifact is missing.
    Artifact,
    /// A merge conflict.
    Conflict,
    /// A panic.
    Panic,
    /// An expression or a template failed.
    Expr,
    /// Turns, depth, agents, budget.
    Limit,
    /// A permission was denied.
    Denied,
    /// No quota left.
    Quota,
    /// Credentials.
    Auth,
    /// Cancelled.
    Cancelled,
    /// The service refuses the request (400, 404, 413, 422, unknown model, context overflow).
    Refused,
}

/// How a conversation ended.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentEnd {
    /// The model was done.
    Completed {
        /// Its last text.
        text: String,
        /// Its structured answer, checked against the schema, where one was asked for.
        output: Option<Value>,
    },
    /// It failed.
    Failed {
        /// The class.
        class: FailureClass,
        /// One line for people.
        message: String,
        /// What came of the last message before it broke.
        partial: Option<String>,
        /// When it may work again (quota, rate limit).
        retry_at: Option<Timestamp>,
    },
    /// A ceiling above it leaves nothing for another request: a later attempt goes on from the transcript.
    OutOfBudget {
        /// Which ceiling, for people.
        reason: String,
    },
    /// Its token was cancelled.
    Cancelled,
}

/// A call that was not allowed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Denial {
    /// The tool.
    pub tool: String,
    /// Command line or path.
    pub subject: String,
    /// Names the mode, the rule or flag that would allow it.
    pub reason: String,
}

/// The final word of one attempt of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentOutcome {
    /// How it ended.
    pub end: AgentEnd,
    /// Spent in this attempt, failed requests included.
    pub usage: Usage,
    /// Turns in the whole conversation (over resumed attempts).
    pub turns: u32,
    /// Calls by canonical tool name.
    pub tool_calls: BTreeMap<String, u32>,
    /// What was denied.
    pub denials: Vec<Denial>,
    /// The model that answered last, as sent.
    pub model: Option<String>,
}
