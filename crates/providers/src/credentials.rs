//! Keys: where they come from and how they go out. No key is ever printed.
//!
//! Owns secrets. Must not know which request they serve.

use std::fmt;
use std::sync::Arc;

/// A key or token. `Debug` never shows it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Secret(Arc<str>);

impl Secret {
    /// A value of the environment or a file: trimmed; empty counts as unset.
    pub fn new(raw: &str) -> Option<Self> {
        let value = raw.trim();
        (!value.is_empty()).then(|| Self(value.into()))
    }

    /// The secret itself: for headers and redaction only.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

/// How a service learns who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// `x-api-key`.
    ApiKey(Secret),
    /// `authorization: Bearer`.
    Bearer(Secret),
    /// The token of a saved login: bearer, with the header that says so.
    Login(Secret),
    /// A server on this machine that wants none.
    NotNeeded,
}

impl Credentials {
    /// The headers to send, names in lower case.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::ApiKey(key) => vec![("x-api-key", key.reveal().to_owned())],
            Self::Bearer(token) => vec![("authorization", format!("Bearer {}", token.reveal()))],
            Self::Login(token) => vec![
                ("authorization", format!("Bearer {}", token.reveal())),
                ("anthropic-beta", "oauth-2025-04-20".to_owned()),
            ],
            Self::NotNeeded => Vec::new(),
        }
    }

    /// The secret in it.
    pub fn secret(&self) -> Option<&Secret> {
        match self {
            Self::ApiKey(secret) | Self::Bearer(secret) | Self::Login(secret) => Some(secret),
            Self::NotNeeded => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_never_shows_itself_and_an_empty_one_is_none() {
        let secret = Secret::new(" sk-123 \n").unwrap();
        assert_eq!(secret.reveal(), "sk-123");
        assert!(!format!("{:?}", Credentials::Bearer(secret)).contains("123"));
        assert_eq!(Secret::new("  "), None);
    }
}
