//! Which tools or reasons a hook is for: `*`, names with `|` between them, or a regular expression. Pure.

use claw_tools::registry::key;
use regex::{Regex, RegexBuilder};
use std::fmt;

/// Bytes of a compiled expression.
const MOST_REGEX: usize = 1 << 20;

/// What a hook is for.
#[derive(Clone)]
pub(super) enum Matcher {
    All,
    /// In the form in which names are compared.
    Names(Vec<String>),
    Pattern(Regex),
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("*"),
            Self::Names(names) => f.write_str(&names.join("|")),
            Self::Pattern(pattern) => f.write_str(pattern.as_str()),
        }
    }
}

impl Matcher {
    /// Errors: no regular expression, or one that is too large.
    pub(super) fn parse(text: &str) -> Result<Self, regex::Error> {
        let text = text.trim();
        if text.is_empty() || text == "*" {
            return Ok(Self::All);
        }
        let is_name = |name: &str| {
            !name.is_empty()
                && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | ' ' | ':'))
        };
        if text.split('|').all(|name| is_name(name.trim())) {
            return Ok(Self::Names(text.split('|').map(key).collect()));
        }
        // A guard that matches too much is safe, one that matches too little is not: anywhere in the name, in any case.
        let pattern = RegexBuilder::new(text).case_insensitive(true).size_limit(MOST_REGEX).build()?;
        Ok(Self::Pattern(pattern))
    }

    /// `names`: the names by which the thing is known; none: the moment has no name, and only `*` is for it.
    pub(super) fn is_for(&self, names: &[&str]) -> bool {
        match self {
            Self::All => true,
            Self::Names(wanted) => names.iter().any(|name| wanted.contains(&key(name))),
            Self::Pattern(pattern) => names.iter().any(|name| pattern.is_match(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_for(text: &str, names: &[&str]) -> bool {
        Matcher::parse(text).unwrap().is_for(names)
    }

    #[test]
    fn names_alternatives_stars_and_expressions_are_understood() {
        let write = ["write_file", "Write"];
        for text in [
            "",
            "*",
            " * ",
            "Write",
            "write_file",
            "Edit|Write",
            "Bash | write-file",
            "Wri.*",
            "^write_file$",
        ] {
            assert!(is_for(text, &write), "{text}");
        }
        for text in ["Edit", "Edit|MultiEdit", "mcp__.*", "^file"] {
            assert!(!is_for(text, &write), "{text}");
        }
        assert!(is_for("mcp__memory__.*", &["mcp__memory__read_graph"]));
        assert!(is_for("mcp__memory", &["mcp__memory"]) && !is_for("startup", &[]));
        assert!(Matcher::parse("(").is_err());
    }
}
