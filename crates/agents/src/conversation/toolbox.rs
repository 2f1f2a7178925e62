//! The tools of one conversation: which it may call, how a name is understood. Pure; shared between conversations
//! that have the same set.

use super::schema::AnswerSchema;
use crate::definition::{AgentDefinition, ToolSet};
use claw_kernel::near::nearest;
use claw_providers::request::ToolSpec;
use claw_tools::registry::Registry;
use std::sync::Arc;

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

/// A set of tools.
#[derive(Debug)]
pub(crate) struct Toolbox {
    registry: Arc<Registry>,
    specs: Arc<[ToolSpec]>,
    /// Held so that its place in memory names it in the cache of toolboxes.
    _answer: Option<Arc<AnswerSchema>>,
}

impl Toolbox {
    /// Of the tools `names` (canonical), and the one that takes the answer.
    pub(crate) fn new(
        registry: Arc<Registry>,
        names: &[&'static str],
        answer: Option<Arc<AnswerSchema>>,
    ) -> Self {
        let own = registry.only(|name| names.contains(&name)).specs().into_iter().map(|spec| ToolSpec {
            name: spec.name.to_owned(),
            description: spec.description,
            input_schema: spec.input_schema,
        });
        let specs = own.chain(answer.as_ref().map(|schema| schema.spec())).collect();
        Self { registry, specs, _answer: answer }
    }

    pub(crate) fn specs(&self) -> &Arc<[ToolSpec]> {
        &self.specs
    }

    /// In lower case, without `_` and `-`, by alias.
    pub(crate) fn meaning(&self, name: &str) -> Meaning {
        match self.registry.canonical(name) {
            Some(canonical) if self.specs.iter().any(|spec| spec.name == canonical) => {
                Meaning::Offered(canonical)
            }
            Some(canonical) => Meaning::Withheld(canonical),
            None => {
                let near =
                    self.registry.near(name).filter(|near| self.specs.iter().any(|spec| spec.name == *near));
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
