//! What the table of keys cannot say: keys that need or exclude each other. Part of the stage of keys.

use crate::workflow::file::{NodeFile, Section, Val, ValKind};
use crate::workflow::keys::{self, NodeKind};
use crate::workflow::problem::{Code, Problem};
use crate::workflow::spans::Source;
use claw_kernel::near::nearest;

/// Checks one node with its defaults filled in.
pub(super) fn check(source: &Source, node: &NodeFile) -> Vec<Problem> {
    let mut shape = Shape { source, node, keys: &node.keys, problems: Vec::new() };
    match node.kind {
        NodeKind::Agent => shape.prompt(),
        NodeKind::Command => shape.command(),
        NodeKind::Merge => shape.merge(),
        NodeKind::Gate => shape.gate(),
        NodeKind::Group => shape.no_retry("give it to the nodes of the body"),
        NodeKind::Workflow => shape.no_retry("give it to the nodes of the nested file"),
        NodeKind::Set => {}
    }
    shape.each();
    shape.repeat();
    shape.isolation();
    shape.output();
    if let Some(section) = node.keys.section("budget") {
        shape.problems.extend(budget(source, section, &format!("node.{}.budget", node.path())));
    }
    shape.problems
}

/// Whether a step of this kind works in a folder.
pub(super) fn has_folder(kind: NodeKind, by_agent: bool) -> bool {
    match kind {
        NodeKind::Agent | NodeKind::Command | NodeKind::Group | NodeKind::Workflow => true,
        NodeKind::Merge => by_agent,
        NodeKind::Gate | NodeKind::Set => false,
    }
}

/// E130: ceilings that make no sense. `path` is the table's own.
pub(super) fn budget(source: &Source, keys: &Section, path: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut say = |key: &str, message: String| {
        let span = keys.get(key).map_or(keys.span.clone(), |value| value.span.clone());
        let path = if key.is_empty() { path.to_owned() } else { format!("{path}.{key}") };
        problems.push(source.problem(Code::E130, span, path, message));
    };
    let number = |key: &str| keys.get(key).and_then(Val::float);
    if !["usd", "tokens", "output_tokens", "wall", "turns"].iter().any(|key| keys.get(key).is_some()) {
        say("", "the budget has no ceiling: give `usd`, `tokens`, `output_tokens`, `wall` or `turns`".into());
    }
    if number("warn").is_some_and(|part| part > 1.0) {
        say("warn", "`warn` is a part of a ceiling, from 0 to 1".into());
    }
    if number("reserve").is_some_and(|part| part >= 1.0) {
        say("reserve", "`reserve` is a part of a ceiling, from 0 to below 1".into());
    }
    if keys.duration("wall").is_some_and(|wall| wall.is_zero()) {
        say("wall", "a `wall` of nothing leaves no time for a step".into());
    }
    if let (Some(tokens), Some(output)) = (keys.int("tokens"), keys.int("output_tokens"))
        && output > tokens
    {
        say("output_tokens", format!("`output_tokens` is above `tokens` ({tokens}), which counts them too"));
    }
    if keys.get("unknown_price").is_some() && keys.get("tokens").is_none() {
        let message = "`unknown_price = \"tokens_only\"` wants a ceiling of `tokens` beside it";
        say("unknown_price", message.into());
    }
    problems
}

struct Shape<'a> {
    source: &'a Source,
    node: &'a NodeFile,
    keys: &'a Section,
    problems: Vec<Problem>,
}

impl Shape<'_> {
    fn say(&mut self, code: Code, key: &str, message: impl Into<String>) -> &mut Problem {
        let first = key.split('.').next().unwrap_or(key);
        let span = self.keys.entry(first).map_or(self.node.span.clone(), |entry| entry.key_span.clone());
        let path = format!("node.{}.{key}", self.node.path());
        self.problems.push(self.source.problem(code, span, path, message));
        let last = self.problems.len() - 1;
        &mut self.problems[last]
    }

    fn has(&self, key: &str) -> bool {
        self.keys.get(key).is_some()
    }

    fn no_retry(&mut self, help: &str) {
        if self.node.own_entry("retry").is_some() {
            let kind = self.node.kind.as_str();
            let message = format!("`retry` does not belong to nodes of kind `{kind}`");
            self.say(Code::E104, "retry", message).help = Some(help.to_owned());
        }
    }

    fn gate(&mut self) {
        self.no_retry("a gate is asked once and waits; `timeout` and `on_timeout` bound that");
        let choices = self.keys.texts("choices");
        let choices =
            if self.has("choices") { choices } else { vec!["approve".to_owned(), "reject".to_owned()] };
        let twice = choices.iter().enumerate().find(|(at, choice)| choices[..*at].contains(choice));
        if choices.is_empty() {
            self.say(Code::E103, "choices", "a gate needs at least one choice");
        } else if choices.iter().any(|choice| choice.trim().is_empty()) {
            self.say(Code::E103, "choices", "a choice needs a text");
        } else if let Some((_, twice)) = twice {
            self.say(Code::E103, "choices", format!("the choice `{twice}` stands here twice"));
        } else if choices.iter().any(|choice| choice == "pause") {
            self.say(Code::E103, "choices", "`pause` is what `on_timeout` may do, not a choice");
        }
        for (key, more) in [("default", None), ("on_timeout", Some("pause"))] {
            let Some(word) = self.keys.text(key) else { continue };
            if choices.iter().any(|choice| choice == word) || more == Some(word) {
                continue;
            }
            let names = || choices.iter().map(String::as_str).chain(more);
            let help = match nearest(word, names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    format!("one of {}", names().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", "))
                }
            };
            let message = format!("`{word}` is none of the choices");
            self.say(Code::E103, key, message).help = Some(help);
        }
    }

    fn repeat(&mut self) {
        let Some(repeat) = self.keys.section("loop") else { return };
        if repeat.get("stall").is_some() && repeat.map("carry").is_empty() {
            self.say(Code::E103, "loop.stall", "`stall` compares carried values, and there is no `carry`");
        }
    }

    fn isolation(&mut self) {
        let by_agent = self.keys.text("strategy") == Some("agent");
        let worktree = self.keys.text("isolation") == Some("worktree");
        if worktree && !has_folder(self.node.kind, by_agent) {
            let message = match self.node.kind {
                NodeKind::Merge => "this merge works in no folder of its own".to_owned(),
                kind => format!("a `{}` works in no folder", kind.as_str()),
            };
            self.say(Code::E141, "isolation", message).help = Some("take `isolation` out".into());
        } else if self.node.own_entry("base").is_some() && !worktree {
            self.say(Code::E141, "base", "`base` belongs to a worktree, and this step has none").help =
                Some("add `isolation = \"worktree\"`, or take `base` out".into());
        }
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
        let belongs: [(&str, &str); 6] = [
            ("key", "dedupe"),
            ("prefer", "dedupe"),
            ("window", "agent"),
            ("apply", "git"),
            ("verify", "git"),
            ("on_conflict", "git"),
        ];
        let lent = keys::own(NodeKind::Agent).iter().map(|key| (key.name, "agent"));
        for (key, owner) in belongs.into_iter().chain(lent) {
            if strategy != owner && self.node.own_entry(key).is_some() {
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
            "git" => self.git(),
            _ => {}
        }
    }

    fn git(&mut self) {
        if self.keys.list("from").is_empty() {
            self.say(Code::E103, "from", "there is nothing to merge").help =
                Some("name nodes with `isolation = \"worktree\"`".into());
        }
        if self.has("verify") && self.keys.list("verify").is_empty() {
            self.say(Code::E103, "verify", "there is no program to run");
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
            NodeKind::Agent
            | NodeKind::Merge
            | NodeKind::Set
            | NodeKind::Group
            | NodeKind::Gate
            | NodeKind::Workflow => matches!(word.as_str(), "text" | "json"),
        };
        if !good {
            self.say(Code::E103, "output", format!("`{word}` belongs to commands")).help =
                Some("`text`, `json` or a schema".into());
        }
    }
}
