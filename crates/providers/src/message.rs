//! What a conversation consists of, free of any wire.
//!
//! Owns the shapes that transcripts keep. Must not know how a service spells them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person, or the results of tool calls.
    User,
    /// The model.
    Assistant,
}

/// One message: a role and its blocks in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// Never empty in a request.
    pub content: Vec<Block>,
}

impl Message {
    /// A message of the user that holds one text.
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, content: vec![Block::Text { text: text.into() }] }
    }

    /// All text blocks, joined without a separator.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(Block::as_text).collect()
    }
}

/// One piece of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// The model's thinking. Sent back only where signed and only to the model that made it.
    Thinking {
        /// May be empty.
        thinking: String,
        /// Byte for byte as the service gave it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
        /// The model that made it (as requested).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// Thinking that the service gave in encrypted form.
    RedactedThinking {
        /// Opaque, byte for byte.
        data: String,
        /// The model that made it (as requested).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// A call of a tool.
    ToolUse {
        /// The id as claw sends it: unique within a conversation (a service may repeat its own).
        id: String,
        /// As the model wrote it.
        name: String,
        /// A JSON object; `{}` where the model gave none.
        input: Value,
    },
    /// The result of a call, in a message of the user.
    ToolResult {
        /// The id of the call.
        tool_use_id: String,
        /// Text for the model.
        content: String,
        /// Images beside the text.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
        /// Whether the call failed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    /// An image in a message of the user.
    Image(Image),
}

impl Block {
    /// The text of a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            Self::Thinking { .. }
            | Self::RedactedThinking { .. }
            | Self::ToolUse { .. }
            | Self::ToolResult { .. }
            | Self::Image(_) => None,
        }
    }
}

/// An image, base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Such as `image/png`.
    pub media_type: String,
    /// Base64 of the bytes.
    pub data: String,
}
