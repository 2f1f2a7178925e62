//! Known secrets leave a text once, where it enters: what is sent, shown and stored is the same text.

use std::borrow::Cow;

/// Shorter values are no secrets: replacing them would maim ordinary text.
const SHORTEST: usize = 8;
const MARK: &str = "[redacted]";

/// Holds the known secrets.
#[derive(Clone, Default)]
pub struct Redactor {
    secrets: Vec<String>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} secrets)", self.secrets.len())
    }
}

impl Redactor {
    /// Values below 8 bytes are left out. A longer secret that holds a shorter one is replaced first.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> = secrets.into_iter().filter(|s| s.len() >= SHORTEST).collect();
        secrets.sort_by_key(|s| std::cmp::Reverse(s.len()));
        secrets.dedup();
        Self { secrets }
    }

    /// The text without any known secret.
    pub fn apply<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut clean = Cow::Borrowed(text);
        for secret in &self.secrets {
            if clean.contains(secret.as_str()) {
                clean = Cow::Owned(clean.replace(secret.as_str(), MARK));
            }
        }
        clean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_secret_is_taken_out() {
        let redactor =
            Redactor::new(["sk-12345678".to_owned(), "sk-12345678-long".to_owned(), "none".to_owned()]);
        assert_eq!(redactor.apply("a sk-12345678-long b sk-12345678 none"), "a [redacted] b [redacted] none");
    }
}
