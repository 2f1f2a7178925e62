//! All that is said, put together: which value counts, and what it shadows.

use super::gate::{Gated, mode_of};
use super::keys::Joins;
use super::leaf::{Leaf, joined};
use super::node::Value;
use super::origin::Scope;
use crate::permission::Permission;
use crate::trust::TrustItem;
use indexmap::IndexMap;

/// One key of the whole.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Names from the top.
    pub path: Vec<String>,
    /// What counts: one, or the elements of a list that adds up, lowest first.
    pub values: Vec<Leaf>,
    /// What is said lower, and does not count for it; the highest first.
    pub shadows: Vec<Leaf>,
}

/// All that counts.
#[derive(Clone, Debug, Default)]
pub struct Merged {
    entries: IndexMap<String, Entry>,
    /// What waits for a decision and does not count.
    pub waiting: Vec<TrustItem>,
}

impl Merged {
    /// `gated`: low to high. `trusted`: the user's decision.
    pub(super) fn new(gated: &[Gated], trusted: &dyn Fn(&TrustItem) -> bool) -> Self {
        let mut merged = Self::default();
        for one in gated {
            let waits = one.item.as_ref().filter(|item| !trusted(item));
            let narrowed = mode_of(&one.leaf).filter(|_| waits.is_some()).map(|mode| merged.narrowed(mode));
            match (waits, narrowed) {
                (None, _) => merged.add(one.leaf.clone()),
                (Some(item), Some(mode)) => {
                    merged.waiting.push(item.clone());
                    let mut leaf = one.leaf.clone();
                    leaf.node.value = Value::Text(mode.to_string());
                    merged.add(leaf);
                }
                (Some(item), None) => merged.waiting.push(item.clone()),
            }
        }
        merged
    }

    /// A mode below what was said before it.
    fn narrowed(&self, mode: Permission) -> Permission {
        let before = self.one(&["permissions", "defaultMode"]).and_then(mode_of);
        before.unwrap_or(Permission::WORKSPACE_WRITE).intersect(mode)
    }

    fn add(&mut self, leaf: Leaf) {
        let entry = self.entries.entry(joined(&leaf.path)).or_insert_with(|| Entry {
            path: leaf.path.clone(),
            values: Vec::new(),
            shadows: Vec::new(),
        });
        match leaf.joins {
            Joins::AddsUp => {
                let json = leaf.node.to_json();
                // The policy's own word stays its own, also where a lower one says the same.
                let same = |known: &Leaf| known.node.to_json() == json;
                match entry.values.iter().position(same) {
                    Some(at) if leaf.place.source.scope == Scope::Managed => entry.values[at] = leaf,
                    Some(_) => {}
                    None => entry.values.push(leaf),
                }
            }
            Joins::Replaces => {
                entry.shadows.splice(0..0, std::mem::take(&mut entry.values));
                entry.values.push(leaf);
            }
        }
    }

    /// In the order in which keys came up.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// The value of a key that has one.
    pub fn one(&self, path: &[&str]) -> Option<&Leaf> {
        self.many(path).last()
    }

    /// The elements of a list that adds up.
    pub fn many(&self, path: &[&str]) -> &[Leaf] {
        self.entries.get(path.join(".").as_str()).map_or(&[], |entry| &entry.values)
    }

    /// All that counts below a key.
    pub fn below<'a>(&'a self, path: &'a [&'a str]) -> impl Iterator<Item = &'a Leaf> {
        self.entries.values().flat_map(|entry| &entry.values).filter(move |leaf| leaf.is_below(path))
    }
}
