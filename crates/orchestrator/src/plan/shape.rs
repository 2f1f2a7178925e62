//! What the table of keys cannot say: keys that need or exclude each other. Part of the stage of keys.

use crate::workflow::file::{NodeFile, Section, ValKind};
use crate::workflow::keys::{self, NodeKind};
use crate::workflow::problem::{Code, Problem};
use crate::workflow::spans::Source;

/// Checks one node with its defaults filled in.
pub(super) fn check(source: &Source<'_>, node: &NodeFile, keys: &Section) -> Vec<Problem> {
    let mut shape = Shape { source, node, keys, problems: Vec::new() };
    match node.kind {
        NodeKind::Agent => shape.prompt(),
        NodeKind::Command => shape.command(),
        NodeKind::Merge => shape.merge(),
        NodeKind::Set | NodeKind::Group | NodeKind::Gate | NodeKind::Workflow => {}
    }
    shape.each();
    shape.output();
    shape.problems
}

struct Shape<'a> {
    source: &'a Source<'a>,
    node: &'a NodeFile,
    keys: &'a Section,
    problems: Vec<Problem>,
}

impl Shape<'_> {
    fn say(&mut self, code: Code, key: &str, message: impl Into<String>) -> &mut Problem {
        let first = key.split('.').next().unwrap_or(key);
        let span = self.keys.entry(first).map_or(self.node.span.clone(), |entry| entry.key_span.clone());
        let path = format!("node.{}.{key}", self.node.id);
        self.problems.push(self.source.problem(code, span, path, message));
        let last = self.problems.len() - 1;
        &mut self.problems[last]
    }

    fn has(&self, key: &str) -> bool {
        self.keys.get(key).is_some()
    }

    fn prompt(&mut self) {
        match (self.has("prompt"), self.has("prompt_file")) {
            (false, false) => {
                self.say(Code::E108, "prompt", "an agent needs `prompt` or `prompt_file`");
            }
            (true, true) => {
                self.say(Code::E103, "prompt_file", "only one of `prompt` and `prompt_file` may be given");
            }
            _ => {}
        }
    }

    fn command(&mut self) {
        match self.keys.get("run").map(|value| &value.kind) {
            Some(ValKind::List(list)) if list.is_empty() => {
                self.say(Code::E103, "run", "there is no program to run");
            }
            Some(ValKind::List(_)) if self.has("literal") => {
                self.say(Code::E103, "literal", "`literal` belongs to a text for the shell, not to a list");
            }
            _ => {}
        }
    }

    fn merge(&mut self) {
        let strategy = self.keys.text("strategy").unwrap_or_default().to_owned();
        let belongs: [(&str, &str); 3] = [("key", "dedupe"), ("prefer", "dedupe"), ("window", "agent")];
        let lent = keys::own(NodeKind::Agent).iter().map(|key| (key.name, "agent"));
        for (key, owner) in belongs.into_iter().chain(lent) {
            if strategy != owner && self.node.keys.get(key).is_some() {
                self.say(
                    Code::E104,
                    key,
                    format!("`{key}` belongs to strategy `{owner}`, this one is `{strategy}`"),
                );
            }
        }
        match strategy.as_str() {
            "dedupe" if !self.has("key") => {
                self.say(Code::E108, "key", "strategy `dedupe` needs `key`");
            }
            "agent" => self.prompt(),
            _ => {}
        }
    }

    fn each(&mut self) {
        let Some(each) = self.keys.section("each") else { return };
        let sources = ["items", "glob", "lines", "jsonl", "range"];
        let found: Vec<&str> = sources.into_iter().filter(|name| each.get(name).is_some()).collect();
        let exclude = each.get("exclude").is_some();
        let fits = matches!(each.list("range").len(), 0..=3);
        if found.len() != 1 {
            let message = match found.is_empty() {
                true => "`each` has no source".to_owned(),
                false => format!("`each` has {} sources: {}", found.len(), found.join(", ")),
            };
            self.say(Code::E170, "each", message).help = Some(format!("give one of {}", sources.join(", ")));
        } else if exclude && found != ["glob"] {
            self.say(Code::E103, "each.exclude", "`exclude` belongs to `glob`");
        } else if !fits {
            self.say(Code::E103, "each.range", "`range` takes one to three numbers");
        }
    }

    fn output(&mut self) {
        let Some(word) = self.keys.text("output").map(str::to_owned) else { return };
        let good = match self.node.kind {
            NodeKind::Command => true,
            NodeKind::Agent | NodeKind::Merge => matches!(word.as_str(), "text" | "json"),
            NodeKind::Set | NodeKind::Group | NodeKind::Gate | NodeKind::Workflow => true,
        };
        if !good {
            self.say(Code::E103, "output", format!("`{word}` belongs to commands")).help =
                Some("`text`, `json` or a schema".into());
        }
    }
}
