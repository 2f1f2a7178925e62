//! The tools of one conversation: which it may call, which of these are shown, how a name is understood. Pure; shared
//! between conversations that have the same set.

use super::schema::AnswerSchema;
use crate::children;
use crate::definition::{AgentDefinition, ToolSet};
use claw_kernel::near::nearest;
use claw_providers::request::ToolSpec;
use claw_tools::registry::{self, Registry};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

/// Shown in the first request, where they are among the tools of an agent. All others are held back until somebody asks
/// for them, so that the first request stays small.
const FIRST: [&str; 11] = [
    "bash",
    "read_file",
    "write_file",
    "edit_file",
    "glob_search",
    "grep_search",
    children::TOOL,
    "todo_write",
    "web_fetch",
    "skill",
    SEARCH,
];
/// Loads tools.
pub(super) const SEARCH: &str = "tool_search";
/// Bytes of the list of what is held back.
const MOST_LISTED: usize = 2_000;

/// What a name means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// A tool of this conversation, by canonical name.
    Offered(&'static str),
    /// A tool, but not of this conversation.
    Withheld(&'static str),
    /// No tool.
    Unknown {
        /// A near name among those offered.
        near: Option<String>,
    },
}

/// Names of tools, canonical.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ToolNames {
    /// The model has their schemas.
    pub(crate) shown: Vec<&'static str>,
    /// It may call them, and can ask for their schemas.
    pub(crate) held_back: Vec<&'static str>,
}

impl ToolNames {
    /// Of those that an agent may call. `loaded`: asked for, in that order: they come last, so that what is before them
    /// stays as it was.
    pub(crate) fn of(names: &[&'static str], loaded: &[&'static str]) -> Self {
        if !names.contains(&SEARCH) {
            return Self { shown: names.to_vec(), held_back: Vec::new() };
        }
        let (mut shown, mut held_back): (Vec<_>, Vec<_>) =
            names.iter().copied().partition(|name| FIRST.contains(name));
        shown.extend(loaded.iter().copied().filter(|name| held_back.contains(name)));
        held_back.retain(|name| !loaded.contains(name));
        Self { shown, held_back }
    }
}

/// A set of tools.
#[derive(Debug)]
pub(crate) struct Toolbox {
    registry: Arc<Registry>,
    names: ToolNames,
    specs: Arc<[ToolSpec]>,
    held_back: Arc<[registry::ToolSpec]>,
    /// Bytes of what a model is told of them.
    bytes: usize,
    /// Held so that its place in memory names it in the cache of toolboxes.
    _answer: Option<Arc<AnswerSchema>>,
}

impl Toolbox {
    /// Of these tools, and the one that takes the answer.
    pub(crate) fn new(registry: Arc<Registry>, names: &ToolNames, answer: Option<Arc<AnswerSchema>>) -> Self {
        let mut all: HashMap<&str, registry::ToolSpec> = registry
            .only(|name| names.shown.contains(&name) || names.held_back.contains(&name))
            .specs()
            .into_iter()
            .map(|spec| (spec.name, spec))
            .collect();
        let shown: Vec<registry::ToolSpec> = names.shown.iter().filter_map(|name| all.remove(name)).collect();
        let held_back: Arc<[_]> = names.held_back.iter().filter_map(|name| all.remove(name)).collect();
        let own = shown.into_iter().map(|spec| ToolSpec {
            name: spec.name.to_owned(),
            description: if spec.name == SEARCH {
                spec.description + &list(&held_back)
            } else {
                spec.description
            },
            input_schema: spec.input_schema,
        });
        let specs: Arc<[ToolSpec]> = own.chain(answer.as_ref().map(|schema| schema.spec())).collect();
        let told =
            |spec: &ToolSpec| spec.name.len() + spec.description.len() + spec.input_schema.to_string().len();
        let bytes = specs.iter().map(told).sum();
        Self { registry, names: names.clone(), specs, held_back, bytes, _answer: answer }
    }

    pub(crate) fn specs(&self) -> &Arc<[ToolSpec]> {
        &self.specs
    }

    /// Bytes of what a model is told of them: counted once for all conversations that have the same.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Those whose schemas the model does not have yet.
    pub(crate) fn held_back(&self) -> &Arc<[registry::ToolSpec]> {
        &self.held_back
    }

    /// The set from which it was made.
    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    pub(crate) fn names(&self) -> &ToolNames {
        &self.names
    }

    /// In lower case, without `_` and `-`, by alias. What is held back can be called all the same.
    pub(crate) fn meaning(&self, name: &str) -> Meaning {
        let is_own = |name: &str| {
            self.specs.iter().any(|spec| spec.name == name) || self.names.held_back.contains(&name)
        };
        match self.registry.canonical(name) {
            Some(canonical) if is_own(canonical) => Meaning::Offered(canonical),
            Some(canonical) => Meaning::Withheld(canonical),
            None => {
                let near = self.registry.near(name).filter(|near| is_own(near));
                let near = near.or_else(|| nearest(name, self.specs.iter().map(|spec| spec.name.as_str())));
                Meaning::Unknown { near: near.map(str::to_owned) }
            }
        }
    }

    /// The names offered, for an error.
    pub(crate) fn listed(&self) -> String {
        let names: Vec<&str> = self.specs.iter().map(|spec| spec.name.as_str()).collect();
        names.join(", ")
    }
}

/// What is held back, by name, within bounds; of a server with many tools the number.
fn list(held_back: &[registry::ToolSpec]) -> String {
    if held_back.is_empty() {
        return String::new();
    }
    let mut text = " There are: ".to_owned();
    let mut left = held_back.len();
    for (at, spec) in held_back.iter().enumerate() {
        if text.len() + spec.name.len() > MOST_LISTED {
            break;
        }
        let _ = write!(text, "{}{}", if at == 0 { "" } else { ", " }, spec.name);
        left -= 1;
    }
    if left > 0 {
        let _ = write!(text, " and {left} more: search by words");
    }
    text.push('.');
    text
}

/// The canonical names that a definition gives, narrowed by `tools` and `deny`, in the registry's order. Names that this
/// build lacks are left out.
pub fn offered(
    registry: &Registry,
    agent: &AgentDefinition,
    tools: Option<&[String]>,
    deny: &[String],
) -> Vec<&'static str> {
    let named =
        |names: &[String], tool: &str| names.iter().any(|name| registry.canonical(name) == Some(tool));
    let own = match &agent.tools {
        ToolSet::All => None,
        ToolSet::Only(names) => Some(names.as_slice()),
    };
    registry
        .names()
        .filter(|tool| own.is_none_or(|names| named(names, tool)))
        .filter(|tool| tools.is_none_or(|names| named(names, tool)))
        .filter(|tool| !named(&agent.deny_tools, tool) && !named(deny, tool))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::children::AgentTool;
    use crate::roles::Catalog;

    fn all() -> Arc<Registry> {
        Arc::new(Registry::every().with(Arc::new(AgentTool::new(&Catalog::builtin()))))
    }

    #[test]
    fn the_first_request_is_small_and_names_what_is_held_back() {
        let registry = all();
        let names: Vec<_> = registry.names().collect();
        let toolbox = Toolbox::new(registry, &ToolNames::of(&names, &[]), None);
        let shown: Vec<&str> = toolbox.specs().iter().map(|spec| spec.name.as_str()).collect();
        assert!(shown.iter().all(|name| FIRST.contains(name)), "{shown:?}");
        let size: usize = toolbox
            .specs()
            .iter()
            .map(|spec| spec.name.len() + spec.description.len() + spec.input_schema.to_string().len())
            .sum();
        assert!(size < 12_000, "{size}");
        let search = toolbox.specs().iter().find(|spec| spec.name == SEARCH).unwrap();
        assert!(search.description.contains("notebook_edit"), "{}", search.description);
        assert_eq!(toolbox.meaning("NotebookEdit"), Meaning::Offered("notebook_edit"));
    }

    #[test]
    fn what_was_asked_for_comes_last_and_others_stay_where_they_were() {
        let registry = all();
        let names: Vec<_> = registry.names().collect();
        let (before, after) = (ToolNames::of(&names, &[]), ToolNames::of(&names, &["sleep", "repl", "bash"]));
        assert_eq!(after.shown[..before.shown.len()], before.shown);
        assert_eq!(after.shown[before.shown.len()..], ["sleep", "repl"]);
        assert_eq!(after.held_back.len() + 2, before.held_back.len());
    }

    #[test]
    fn an_agent_that_cannot_search_has_all_its_tools_at_once() {
        let names = ["bash", "notebook_edit"];
        let all = ToolNames::of(&names, &[]);
        assert_eq!((all.shown.as_slice(), all.held_back.len()), (names.as_slice(), 0));
    }
}
