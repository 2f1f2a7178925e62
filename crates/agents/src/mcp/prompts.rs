//! Prompts of servers, for slash commands.

use rmcp::model::{ContentBlock, GetPromptResult, Prompt};

/// A prompt that can be asked for. Texts are the server's: show their control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptInfo {
    /// Its server.
    pub server: String,
    /// The server's name for it.
    pub name: String,
    /// For people.
    pub description: String,
    /// Names of its arguments, and whether each is needed.
    pub arguments: Vec<(String, bool)>,
}

impl PromptInfo {
    pub(super) fn of(server: &str, prompt: Prompt) -> Self {
        let arguments = prompt.arguments.unwrap_or_default().into_iter();
        Self {
            server: server.to_owned(),
            name: prompt.name,
            description: prompt.description.unwrap_or_default(),
            arguments: arguments.map(|one| (one.name, one.required == Some(true))).collect(),
        }
    }
}

/// What a prompt says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptText {
    /// Its messages one after the other; what is no text is left out.
    pub text: String,
}

impl PromptText {
    pub(super) fn of(result: GetPromptResult) -> Self {
        let texts = result.messages.into_iter().filter_map(|message| match message.content {
            ContentBlock::Text(text) => Some(text.text),
            _ => None,
        });
        Self { text: texts.collect::<Vec<_>>().join("\n\n") }
    }
}
