//! Why a page was not fetched. For the model: what, where, what to do next.

use std::time::Duration;

/// A page that did not come.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebError {
    /// No address.
    #[error("`{typed}` is no address of a page: {why}; give one such as https://example.org/page")]
    NoAddress {
        /// As typed, cut.
        typed: String,
        /// Why not.
        why: String,
    },
    /// Another scheme.
    #[error("only http and https are fetched, not `{0}:`")]
    Scheme(String),
    /// A name or password in it.
    #[error("addresses with a user name or password are not fetched; leave out what is before the `@`")]
    Credentials,
    /// The address is not one of the public internet.
    #[error(
        "{host} is not fetched: {why}; only hosts of the public internet are, for what is here or in this network use bash"
    )]
    NotPublic {
        /// The host, and what it resolved to.
        host: String,
        /// What it is.
        why: &'static str,
    },
    /// The name has no address.
    #[error("the name {host} has no address: {why}")]
    NoHost {
        /// The host.
        host: String,
        /// What the resolver said.
        why: String,
    },
    /// Redirected too often.
    #[error("redirected more than {0} times; the last one led to {1}")]
    TooManyHops(usize, String),
    /// No answer, or a broken one.
    #[error("{host} did not answer: {why}")]
    Broken {
        /// The host.
        host: String,
        /// What happened.
        why: String,
    },
    /// Too slow.
    #[error("{host} did not answer within {} s", .after.as_secs())]
    TimedOut {
        /// The host.
        host: String,
        /// The limit.
        after: Duration,
    },
    /// A status that is no success.
    #[error("{url} answers {status}{}", if body.is_empty() { String::new() } else { format!(":\n{body}") })]
    Status {
        /// The address.
        url: String,
        /// The status with its words.
        status: String,
        /// The start of what it says.
        body: String,
    },
    /// An encoding of the content that was not asked for.
    #[error("{url} sends its content as `{encoding}`, which is not read")]
    Encoding {
        /// The address.
        url: String,
        /// The encoding.
        encoding: String,
    },
    /// Not for reading.
    #[error(
        "{url} is {what}; only text is shown. To keep the file, download it with bash where the network is open"
    )]
    NotText {
        /// The address.
        url: String,
        /// What it is.
        what: String,
    },
    /// The client could not be made.
    #[error("the web cannot be reached from here: {0}")]
    Setup(String),
    /// Cancelled.
    #[error("cancelled")]
    Cancelled,
}
