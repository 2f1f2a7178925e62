//! The tools by name. Names compare in lower case without `_` and `-`, aliases of other programs count.

use crate::builtin::{Bash, EditFile, GlobSearch, GrepSearch, ReadFile, WriteFile};
use crate::tool::Tool;
use claw_kernel::near::nearest;
use indexmap::IndexMap;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// A tool as a model is told of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Canonical name.
    pub name: &'static str,
    /// What it is for.
    pub description: String,
    /// JSON Schema of its input.
    pub input_schema: Value,
}

/// A set of tools in a fixed order. Cheap to clone.
#[derive(Clone, Default)]
pub struct Registry {
    tools: IndexMap<&'static str, Arc<dyn Tool>>,
    keys: IndexMap<String, &'static str>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

impl Registry {
    /// No tools.
    pub fn empty() -> Self {
        Self::default()
    }

    /// The tools that need nothing but the machine: all but `structured_output`, which has a schema of its own each
    /// time.
    pub fn builtin() -> Self {
        let tools: [Arc<dyn Tool>; 6] = [
            Arc::new(Bash),
            Arc::new(ReadFile),
            Arc::new(WriteFile),
            Arc::new(EditFile),
            Arc::new(GlobSearch),
            Arc::new(GrepSearch),
        ];
        tools.into_iter().fold(Self::empty(), Self::with)
    }

    /// One more tool; it takes the place of one of the same name.
    pub fn with(mut self, tool: Arc<dyn Tool>) -> Self {
        let name = tool.name();
        for known in tool.aliases().iter().copied().chain([name]) {
            self.keys.insert(key(known), name);
        }
        self.tools.insert(name, tool);
        self
    }

    /// Only those that `keep` says yes to.
    pub fn only(&self, keep: impl Fn(&str) -> bool) -> Self {
        self.tools
            .values()
            .filter(|tool| keep(tool.name()))
            .fold(Self::empty(), |set, tool| set.with(Arc::clone(tool)))
    }

    /// A tool by its name or an alias.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.get(self.canonical(name)?)
    }

    /// The canonical name behind a name or an alias.
    pub fn canonical(&self, name: &str) -> Option<&'static str> {
        match self.tools.get(name) {
            Some(tool) => Some(tool.name()),
            None => self.keys.get(&key(name)).copied(),
        }
    }

    /// The canonical name that an unknown name was probably meant to be.
    pub fn near(&self, name: &str) -> Option<&'static str> {
        let found = nearest(&key(name), self.keys.keys().map(String::as_str))?;
        self.keys.get(found).copied()
    }

    /// Canonical names, in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.tools.keys().copied()
    }

    /// What a model is told of the whole set, in order.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools
            .values()
            .map(|tool| ToolSpec {
                name: tool.name(),
                description: tool.description(),
                input_schema: tool.input_schema(),
            })
            .collect()
    }
}

/// What names are compared by.
pub fn key(name: &str) -> String {
    name.trim().chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_programs_are_understood() {
        let tools = Registry::builtin();
        let known = [
            ("Bash", "bash"),
            ("Read", "read_file"),
            ("READ-FILE", "read_file"),
            ("Edit", "edit_file"),
            ("Write", "write_file"),
            ("Glob", "glob_search"),
            ("LS", "glob_search"),
            ("Grep", "grep_search"),
            ("NotebookRead", "read_file"),
        ];
        for (theirs, ours) in known {
            assert_eq!(tools.canonical(theirs), Some(ours), "{theirs}");
        }
        assert_eq!(tools.get("banana").map(|tool| tool.name()), None);
        assert_eq!(tools.near("raed_file"), Some("read_file"));
    }

    #[test]
    fn schemas_are_small_and_hold_no_reference() {
        let tools = Registry::builtin();
        let mut total = 0;
        for spec in tools.specs() {
            let schema = spec.input_schema.to_string();
            assert!(!schema.contains("$ref") && !schema.contains("$defs"), "{schema}");
            assert_eq!(spec.input_schema["type"], "object");
            total += schema.len() + spec.description.len();
        }
        assert!(total < 8_000, "{total}");
    }
}
