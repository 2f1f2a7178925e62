//! Names of tools that come at run time, kept for the life of the process so that they can be passed on like the built-in
//! ones.
//!
//! Owns a bounded set of texts. Knows nothing of what they name.

use std::collections::HashSet;
use std::sync::{LazyLock, Mutex, PoisonError};

/// Names that a process keeps.
const MOST: usize = 16_384;
/// Bytes of one: what services take.
const MOST_BYTES: usize = 64;

/// A name that is not kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// It has other characters than letters, digits, `_` and `-`, or too many, or none.
    #[error("`{}` is no name of a tool: 1 to {MOST_BYTES} letters, digits, `_` or `-`", .0.escape_debug())]
    Shape(String),
    /// So many different names came that no more are kept.
    #[error("{MOST} different names of tools are known already")]
    TooMany,
}

/// The same text, for ever. Errors: it is no name, or there are too many.
pub fn interned(name: &str) -> Result<&'static str, BadName> {
    static KNOWN: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(Mutex::default);
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if name.is_empty() || name.len() > MOST_BYTES || !name.bytes().all(is_name) {
        return Err(BadName::Shape(crate::cut::head(name, 100)));
    }
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(kept) = known.get(name) {
        return Ok(kept);
    }
    if known.len() >= MOST {
        return Err(BadName::TooMany);
    }
    let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
    known.insert(kept);
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once_and_what_is_no_name_not_at_all() {
        let first = interned("mcp__docs__find-page").unwrap();
        assert!(std::ptr::eq(first, interned("mcp__docs__find-page").unwrap()));
        for bad in ["", "a/b", "a\u{1b}[2J", "é", &"a".repeat(65)] {
            assert!(matches!(interned(bad), Err(BadName::Shape(_))), "{bad:?}");
        }
    }
}
