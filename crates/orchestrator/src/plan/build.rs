//! What the stages behind the graph share: the text with its places, and where problems are gathered.

use super::forest::Forest;
use super::model::{InputValue, Limits, NodeIx};
use super::surroundings::{ModelProblem, Surroundings};
use crate::expr::{Expr, ParseError, Reference, Template};
use crate::workflow::file::{NodeFile, Val};
use crate::workflow::problem::{Code, Problem};
use crate::workflow::spans::Source;
use claw_agents::definition::AgentDefinition;
use indexmap::IndexMap;
use serde_json::Value as Json;
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// What others need to know of a node before it is built.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// Schema of its output (of one item under `each`).
    pub schema: Option<Arc<Json>>,
    /// Whether it has `each`.
    pub each: bool,
}

/// A reference to a node that is no direct need, or a name that must not be visible: looked at for all together.
#[derive(Debug)]
pub(super) struct Far {
    pub from: NodeIx,
    /// In the same graph.
    pub target: NodeIx,
    /// Said where the target does not come before.
    pub problem: Problem,
    /// Said where it does: a name that would hide it.
    pub hides: bool,
}

/// One pass over the nodes of all files.
pub(super) struct Build<'a> {
    pub forest: &'a Forest<'a>,
    /// The file whose texts are read now; what belongs to it follows.
    pub file: usize,
    pub source: &'a Source,
    /// Folder of that file.
    pub folder: &'a Path,
    pub surroundings: &'a dyn Surroundings,
    /// By file: those of the first are known, of nested ones only that they are there.
    pub inputs: &'a [IndexMap<String, InputValue>],
    /// Of the first file: those that nobody gave a value yet.
    pub open_inputs: &'a [String],
    /// By file.
    pub limits: &'a [Limits],
    pub facts: Vec<Facts>,
    /// By file: its own, by name in lower case.
    pub own_agents: Vec<HashMap<String, Arc<AgentDefinition>>>,
    pub agents: HashMap<String, Option<Arc<AgentDefinition>>>,
    pub models: HashMap<String, Result<(), ModelProblem>>,
    /// Stage of names and templates.
    pub problems: Vec<Problem>,
    /// Stage of agents, tools and limits.
    pub late: Vec<Problem>,
    pub warnings: Vec<Problem>,
    pub far: Vec<Far>,
    /// Near names cost a look at every name.
    pub near_left: usize,
}

/// Where a text stands: for problems in it.
#[derive(Clone)]
pub(super) struct Spot<'a> {
    pub source: &'a Source,
    pub span: Range<usize>,
    /// The node; `None` at the top level.
    pub node: Option<&'a NodeFile>,
    /// The key's path in the node.
    pub key: &'a str,
    /// The span is the text itself, without quotes and escapes.
    pub exact: bool,
}

impl<'a> Spot<'a> {
    pub(super) fn path(&self) -> String {
        match self.node {
            Some(node) => format!("node.{}.{}", node.path(), self.key),
            None => self.key.to_owned(),
        }
    }

    pub(super) fn problem(&self, code: Code, message: impl Into<String>) -> Problem {
        self.source.problem(code, self.span.clone(), self.path(), message)
    }

    /// A problem at a word of the text. `offset` is its byte in the text as read, which is never behind its byte in
    /// the file: quotes and escapes only lengthen.
    pub(super) fn problem_at(
        &self,
        code: Code,
        word: &str,
        offset: usize,
        message: impl Into<String>,
    ) -> Problem {
        self.source.problem(code, self.find(word, offset), self.path(), message)
    }

    fn find(&self, word: &str, offset: usize) -> Range<usize> {
        let start = self.span.start + offset;
        if self.exact {
            return start..(start + word.len()).min(self.span.end);
        }
        let text = &*self.source.text;
        let from = text.floor_char_boundary(start.min(self.span.end));
        let raw = text.get(from..self.span.end).unwrap_or_default();
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let whole = |at: usize| {
            let before = raw[..at].chars().next_back().is_none_or(|c| !is_word(c));
            let after = raw[at + word.len()..].chars().next().is_none_or(|c| !is_word(c));
            before && after
        };
        let found = if word.is_empty() {
            None
        } else {
            raw.match_indices(word).map(|(at, _)| at).find(|at| whole(*at) || !word.starts_with(is_word))
        };
        found.map_or(self.span.clone(), |at| from + at..from + at + word.len())
    }

    /// A place of a parse error.
    fn parse_problem(&self, text: &str, error: &ParseError) -> Problem {
        let rest = text.get(error.offset..).unwrap_or_default();
        let length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let word =
            if length == 0 { rest.get(..2.min(rest.len())).unwrap_or_default() } else { &rest[..length] };
        let problem = self.problem_at(error.code, word, error.offset, error.message.clone());
        match &error.help {
            Some(help) => problem.with_help(help.clone()),
            None => problem,
        }
    }
}

/// From where a text looks at the nodes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stand {
    /// A node: it sees what comes before it, and what the groups round it see.
    At(NodeIx),
    /// Behind all nodes of a graph (its place in the forest): it sees these, and what the group sees.
    Behind(usize),
}

/// What a text may name beside inputs and `run`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visible<'a> {
    pub stand: Stand,
    /// Name of the node's own item, with `index`.
    pub item: Option<&'a str>,
    /// The node whose own `loop` is round the text.
    pub own_loop: Option<NodeIx>,
    /// The node itself is visible, as the output of this iteration.
    pub itself: bool,
    /// Other bound names.
    pub bound: &'a [&'a str],
    /// Secret inputs.
    pub secrets: bool,
    /// Nothing has run yet (keys of a list in the file).
    pub no_nodes: bool,
}

impl Visible<'_> {
    pub(super) fn from(stand: Stand) -> Self {
        Self { stand, item: None, own_loop: None, itself: false, bound: &[], secrets: false, no_nodes: false }
    }
}

impl<'a> Build<'a> {
    /// Turns to the texts of a file.
    pub(super) fn enter(&mut self, file: usize) {
        let unit = &self.forest.files[file];
        (self.file, self.source, self.folder) = (file, &unit.source, &unit.folder);
    }

    pub(super) fn spot(&self, node: &'a NodeFile, key: &'a str, value: &Val) -> Spot<'a> {
        Spot { source: self.source, span: value.span.clone(), node: Some(node), key, exact: false }
    }

    /// Parses and checks a template.
    pub(super) fn template(
        &mut self,
        spot: &Spot<'_>,
        text: &str,
        visible: &Visible<'_>,
    ) -> Option<Template> {
        match Template::parse(text) {
            Ok(template) => {
                let references: Vec<(&Reference, usize)> = template.references().collect();
                for (reference, offset) in references {
                    self.check_name(spot, reference, offset, visible);
                }
                Some(template)
            }
            Err(error) => {
                self.problems.push(spot.parse_problem(text, &error));
                None
            }
        }
    }

    /// Parses and checks an expression.
    pub(super) fn expr(&mut self, spot: &Spot<'_>, text: &str, visible: &Visible<'_>) -> Option<Expr> {
        match Expr::parse(text) {
            Ok(expr) => {
                for reference in expr.references() {
                    self.check_name(spot, reference, reference.offset, visible);
                }
                Some(expr)
            }
            Err(error) => {
                self.problems.push(spot.parse_problem(text, &error));
                None
            }
        }
    }
}
