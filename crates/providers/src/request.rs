//! One request to a model, free of any wire.
//!
//! Owns what a caller can ask for. Must not know which service will answer.

use crate::message::Message;
use serde_json::Value;
use std::sync::Arc;

/// A tool as the model sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// `^[a-zA-Z0-9_-]{1,64}$`.
    pub name: String,
    /// For the model.
    pub description: String,
    /// A JSON Schema whose root is an object.
    pub input_schema: Value,
}

/// How hard a model should think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// As little as it can.
    Low,
    /// The service's middle.
    Medium,
    /// As hard as it can.
    High,
}

impl Effort {
    /// The word that every wire uses.
    pub fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// Whether the model must call a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// It must call this one.
    Tool(String),
}

/// One request. Cheap to clone: the long parts are shared.
#[derive(Clone, Debug)]
pub struct Request {
    /// Tried in order: `provider/model`, a model's name or an alias; never empty.
    pub models: Arc<[String]>,
    /// The system prompt; empty for none.
    pub system: Arc<str>,
    /// In order, never empty, the last of role user.
    pub messages: Vec<Arc<Message>>,
    /// May be empty.
    pub tools: Arc<[ToolSpec]>,
    /// Whether a tool must be called.
    pub tool_choice: ToolChoice,
    /// Output limit in tokens; `None` = the table's default for the model.
    pub max_output: Option<u32>,
    /// How hard to think; `None` = the service's default.
    pub effort: Option<Effort>,
    /// A JSON Schema that the answer's text should satisfy: sent where the service can hold a model to it
    /// (profiles that say so), ignored elsewhere.
    pub answer_schema: Option<Arc<Value>>,
}
