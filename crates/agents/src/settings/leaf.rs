//! One thing that a file says: a key's path down to a value that is taken as a whole.

use super::keys::{Joins, Who};
use super::node::{Node, Place};
use super::origin::{Origin, Sourced};
use std::fmt::Write;

/// One thing that a file says.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// Names from the top, as the table has them.
    pub path: Vec<String>,
    /// Which element of a list that adds up.
    pub index: Option<usize>,
    /// The value.
    pub node: Node,
    /// Where to point at: the value, or the key of an object.
    pub place: Place,
    /// Whose word counts.
    pub who: Who,
    /// What several files make together.
    pub joins: Joins,
}

/// `permissions.allow`; names with blanks or points in quotes.
pub fn joined(path: &[String]) -> String {
    let mut out = String::new();
    for part in path {
        let plain =
            !part.is_empty() && !part.contains(|c: char| c.is_whitespace() || matches!(c, '.' | '"' | '['));
        if !out.is_empty() {
            out.push('.');
        }
        if plain {
            out.push_str(part);
        } else {
            let _ = write!(out, "{part:?}");
        }
    }
    out
}

impl Leaf {
    /// `permissions.allow[2]`.
    pub fn key(&self) -> String {
        let mut key = joined(&self.path);
        if let Some(index) = self.index {
            let _ = write!(key, "[{index}]");
        }
        key
    }

    /// Where it is said.
    pub fn origin(&self) -> Origin {
        self.place.origin(&self.key())
    }

    /// A value made of it.
    pub fn sourced<T>(&self, value: T) -> Sourced<T> {
        Sourced { value, origin: self.origin() }
    }

    /// Whether it stands at this path.
    pub fn is_at(&self, path: &[&str]) -> bool {
        self.path.iter().map(String::as_str).eq(path.iter().copied())
    }

    /// Whether it stands below this path, at any depth.
    pub fn is_below(&self, path: &[&str]) -> bool {
        self.path.len() > path.len() && self.path.iter().zip(path).all(|(own, other)| own == other)
    }

    /// The last name of its path.
    pub fn name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }
}
