//! What can go wrong between a request and its answer.
//!
//! Owns the classes that retries, the breaker and the user see. No key is ever part of an error.

use crate::message::Block;
use crate::usage::Usage;
use claw_kernel::clock::Timestamp;
use std::time::Duration;

/// What kind of failure it was; decides who repeats what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// Connection, 408, 409, 5xx.
    Transient,
    /// 429 that time heals.
    RateLimit,
    /// 529, 503 or an overloaded error inside a stream.
    Overloaded,
    /// No byte within the limit.
    Timeout,
    /// The account has no quota or credit left.
    Quota,
    /// Missing or refused credentials.
    Auth,
    /// The conversation does not fit the model's window.
    ContextOverflow,
    /// 400, 404, 413, 422: the request itself is refused.
    Refused,
    /// The service does not know the model.
    UnknownModel,
    /// Cancelled by us.
    Cancelled,
}

/// One request failed for good. Built by the engine; `partial` is what had come of the last try.
#[derive(Debug, thiserror::Error)]
#[error("{kind}")]
pub struct ProviderError {
    /// What went wrong.
    #[source]
    pub kind: ProviderErrorKind,
    /// The class.
    pub class: ErrorClass,
    /// When it may work again, where the service said so.
    pub retry_at: Option<Timestamp>,
    /// Spent all the same.
    pub usage: Usage,
    /// What came before the stream broke.
    pub partial: Vec<Block>,
}

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum ProviderErrorKind {
    /// No credentials for a provider.
    #[error("missing {provider} credentials; export {}", variables.join(" or "))]
    MissingCredentials {
        /// Provider.
        provider: String,
        /// Variables that would hold them.
        variables: Vec<String>,
    },
    /// The service answered with an error.
    #[error("{provider} returned {status} ({kind}): {message}{}", request_id.as_deref().map(|id| format!(" [request {id}]")).unwrap_or_default())]
    Status {
        /// Provider.
        provider: String,
        /// HTTP status (200 for an error inside a stream).
        status: u16,
        /// The service's type, or the status' reason, capped.
        kind: String,
        /// The service's words, capped.
        message: String,
        /// The service's request id, capped.
        request_id: Option<String>,
    },
    /// The connection failed.
    #[error("cannot reach {provider} at {address}: {message}")]
    Connect {
        /// Provider.
        provider: String,
        /// Host and port.
        address: String,
        /// The cause, without addresses that hold secrets.
        message: String,
    },
    /// The stream broke.
    #[error("{provider} ended the stream early: {message}")]
    Broken {
        /// Provider.
        provider: String,
        /// The cause.
        message: String,
    },
    /// The answer is larger than any answer may be.
    #[error("the answer of {provider} is too large: {message}")]
    TooLarge {
        /// Provider.
        provider: String,
        /// The limit that it passed.
        message: String,
    },
    /// Nothing came for too long.
    #[error("no data from {provider} for {} s", waited.as_secs())]
    Stalled {
        /// Provider.
        provider: String,
        /// The limit.
        waited: Duration,
    },
    /// All tries failed.
    #[error("failed after {attempts} attempts: {last}")]
    Exhausted {
        /// How many.
        attempts: u32,
        /// The last error.
        #[source]
        last: Box<ProviderErrorKind>,
    },
    /// The service asks for a longer wait than a request may last.
    #[error("{provider} asks to wait {} s: {last}", wait.as_secs())]
    WaitTooLong {
        /// Provider.
        provider: String,
        /// What it asked for.
        wait: Duration,
        /// The error that said so.
        #[source]
        last: Box<ProviderErrorKind>,
    },
    /// Nothing more is sent to the service after an error that holds for all.
    #[error("nothing more is sent to {provider}: {why}")]
    Closed {
        /// Provider.
        provider: String,
        /// The error that said so.
        why: String,
    },
    /// A model's name could not be routed.
    #[error("unknown provider `{name}` in model `{model}`")]
    UnknownProvider {
        /// The part before the slash.
        name: String,
        /// As typed.
        model: String,
    },
    /// We stopped it.
    #[error("cancelled")]
    Cancelled,
    /// The configuration cannot work.
    #[error("{0}")]
    Config(String),
}
