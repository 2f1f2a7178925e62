//! What a tool call gives back: short plain text for the model, data where a caller asked for it.

use serde_json::Value;
use std::path::PathBuf;

/// A finished call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    /// For the model: short and plain.
    pub text: String,
    /// The call ran and reports a failure (such as a non-zero exit code the model should notice).
    pub is_error: bool,
    /// The result as data, in the shapes of the tools page ("Text of tool results").
    pub data: Value,
    /// Images beside the text: media type and base64.
    pub images: Vec<(String, String)>,
    /// The file that holds the whole output where `text` was cut.
    pub spilled: Option<PathBuf>,
}

impl ToolOutput {
    /// Plain text, no data.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}
