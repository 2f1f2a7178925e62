//! Who answers what a server asks: a person, a model. Nobody there: declined.

use futures_util::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;

/// What a person does with a form.
#[derive(Clone, Debug, PartialEq)]
pub enum FormReply {
    /// Filled in; an object that fits the schema.
    Accept(Value),
    /// No.
    Decline,
    /// Put away without an answer.
    Cancel,
}

/// Somebody who can be asked for a server. Texts are the server's: show their control characters.
pub trait McpPerson: Send + Sync {
    /// Asks to fill in a form: an object schema of texts, numbers, flags and choices.
    fn fill_form(&self, server: &str, message: &str, schema: Value) -> BoxFuture<'_, FormReply>;
    /// Asks to open an address. True: the person agrees and opens it.
    fn open_address(&self, server: &str, message: &str, url: &str) -> BoxFuture<'_, bool>;
    /// Asks whether the changed tools of a server may be used; one line for each change.
    fn approve_tools(&self, server: &str, changes: Vec<String>) -> BoxFuture<'_, bool>;
}

/// What a server wants a model to answer.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleRequest {
    /// Who asks.
    pub server: String,
    /// Its words for the system prompt.
    pub system: Option<String>,
    /// Pairs of role (`user`, `assistant`) and text.
    pub messages: Vec<(String, String)>,
    /// The most it may say.
    pub max_tokens: u32,
}

/// Why no model answers: words for the server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoSample(pub String);

/// A model for servers; asks the user first.
pub trait Sampler: Send + Sync {
    /// The answer and the model's name.
    fn sample(&self, request: SampleRequest) -> BoxFuture<'_, Result<(String, String), NoSample>>;
}

/// Who is there.
#[derive(Clone, Default)]
pub struct McpPorts {
    /// A person.
    pub person: Option<Arc<dyn McpPerson>>,
    /// A model.
    pub sampler: Option<Arc<dyn Sampler>>,
}

impl std::fmt::Debug for McpPorts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpPorts")
            .field("person", &self.person.is_some())
            .field("sampler", &self.sampler.is_some())
            .finish()
    }
}
