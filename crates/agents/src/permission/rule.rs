//! One rule: `Tool`, `Tool(*)`, `Tool(exact)`, `Tool(prefix:*)`, globs for paths, `WebFetch(domain:…)`, `mcp__…`.
//!
//! Owns the grammar and what a rule's text is compared with. Must not know the order of decisions.

use super::pattern::{CommandPattern, PathPattern, glob};
use crate::settings::{Origin, Sourced};
use claw_tools::registry::key;
use serde_json::Value;
use std::fmt;

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The call runs without a question.
    Allow,
    /// It does not run.
    Deny,
    /// A person is asked.
    Ask,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Ask => "ask",
        })
    }
}

/// A text that is no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: `{text}` is no permission rule: {fault}")]
pub struct RuleError {
    /// Where it stands.
    pub origin: Origin,
    /// As written.
    pub text: String,
    /// What is wrong with it.
    pub fault: RuleFault,
}

/// What is wrong with a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleFault {
    /// Nothing but blanks.
    #[error("it is empty")]
    Empty,
    /// `Bash(ls`.
    #[error("its bracket does not close; a bracket inside the rule is written `\\(` or `\\)`")]
    Open,
    /// `Bash(a)b`, `Bash)`.
    #[error("a bracket stands where none may; inside the rule it is written `\\(` or `\\)`")]
    Bracket,
    /// `(ls)`.
    #[error("the name of a tool is missing in front of the bracket")]
    NoTool,
    /// `WebFetch(domain:)`.
    #[error("the name of a host is missing behind `domain:`")]
    NoHost,
}

/// What a rule says of a call's input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Text {
    /// Any input.
    Any,
    /// `domain:…`.
    Domain(String),
    /// Words, `prefix:*`, globs: what it means depends on what the tool takes.
    Pattern(Pattern),
}

/// A rule's text, read for each thing that it may be compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    /// Without the escapes of brackets and without `:*`.
    pub(super) text: String,
    pub(super) is_prefix: bool,
    pub(super) command: CommandPattern,
    pub(super) path: PathPattern,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What it does.
    pub kind: Kind,
    /// As written, outer blanks dropped.
    pub text: String,
    /// Where it stands.
    pub origin: Origin,
    tool: String,
    pub(super) of: Text,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rule `{}` ({})", self.kind, self.text, self.origin)
    }
}

/// The fields of an input, in the order in which they are looked for.
const FIELDS: [&str; 10] = [
    "command",
    "path",
    "file_path",
    "filePath",
    "notebook_path",
    "notebookPath",
    "url",
    "pattern",
    "code",
    "message",
];

/// Fields that hold paths.
const PATHS: [&str; 5] = ["path", "file_path", "filePath", "notebook_path", "notebookPath"];

/// What a rule's text is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A shell command.
    Command(String),
    /// A path as typed.
    Path(String),
    /// An address.
    Url(String),
    /// Anything else.
    Text(String),
}

impl Subject {
    /// Of an input: the first of the known fields that it has, else all of it as JSON.
    pub fn of(input: &Value) -> Self {
        let found = FIELDS.iter().find_map(|field| Some((*field, input.get(*field)?.as_str()?.to_owned())));
        match found {
            Some(("command", text)) => Self::Command(text),
            Some(("url", text)) => Self::Url(text),
            Some((field, text)) if PATHS.contains(&field) => Self::Path(text),
            Some((_, text)) => Self::Text(text),
            None => Self::Text(input.to_string()),
        }
    }
}

impl Rule {
    /// Reads a rule.
    ///
    /// # Errors
    /// It is none; the error says where it stands.
    pub fn parse(kind: Kind, rule: Sourced<String>) -> Result<Self, RuleError> {
        let Sourced { value, origin } = rule;
        match split(value.trim()) {
            Ok((tool, of)) => {
                Ok(Self { kind, tool: tool.to_lowercase(), of, text: value.trim().to_owned(), origin })
            }
            Err(fault) => Err(RuleError { origin, text: value, fault }),
        }
    }

    /// The tool's name as written, in lower case.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// It holds for every input of its tool.
    pub fn is_whole(&self) -> bool {
        self.of == Text::Any
    }

    /// Whether it is about this tool, known by any of these names.
    pub(super) fn names(&self, name: &str, aliases: &[&str]) -> bool {
        // Blanks and signs are a part of the names of servers and their tools: those are compared as they are.
        if let Some(server) = self.tool.strip_prefix("mcp__") {
            let name = name.to_lowercase();
            let Some(called) = name.strip_prefix("mcp__") else { return false };
            return match server.strip_suffix("__*").or_else(|| (!server.contains("__")).then_some(server)) {
                Some(server) => called.split_once("__").is_some_and(|(of, _)| of == server),
                None => glob(server, called),
            };
        }
        let own = key(&self.tool);
        own == "*" || own == key(name) || aliases.iter().any(|alias| own == key(alias))
    }

    /// Whether it is about one of these tools.
    pub(super) fn is_of_family(&self, family: &[&str]) -> bool {
        family.contains(&key(&self.tool).as_str())
    }
}

fn split(text: &str) -> Result<(&str, Text), RuleFault> {
    if text.is_empty() {
        return Err(RuleFault::Empty);
    }
    let Some(open) = text.find('(') else {
        return if text.contains(')') { Err(RuleFault::Bracket) } else { Ok((text, Text::Any)) };
    };
    let tool = text[..open].trim();
    if tool.contains(')') {
        return Err(RuleFault::Bracket);
    }
    if tool.is_empty() {
        return Err(RuleFault::NoTool);
    }
    let inner = unescaped(&text[open + 1..])?;
    Ok((tool, meaning(inner.trim())?))
}

/// What stands between the brackets, without escapes.
fn unescaped(rest: &str) -> Result<String, RuleFault> {
    let mut text = String::new();
    let mut chars = rest.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.clone().next() {
                Some(escaped @ ('(' | ')' | '\\')) => {
                    text.push(escaped);
                    chars.next();
                }
                Some(_) | None => text.push('\\'),
            },
            '(' => return Err(RuleFault::Bracket),
            ')' if chars.as_str().trim().is_empty() => return Ok(text),
            ')' => return Err(RuleFault::Bracket),
            c => text.push(c),
        }
    }
    Err(RuleFault::Open)
}

fn meaning(text: &str) -> Result<Text, RuleFault> {
    if text.is_empty() || text == "*" || text == ":*" {
        return Ok(Text::Any);
    }
    if let Some(host) = text.strip_prefix("domain:") {
        let host = host.trim().trim_end_matches('.').to_lowercase();
        return if host.is_empty() { Err(RuleFault::NoHost) } else { Ok(Text::Domain(host)) };
    }
    let (text, is_prefix) = match text.strip_suffix(":*") {
        Some(prefix) => (prefix.trim_end(), true),
        None => (text, false),
    };
    Ok(Text::Pattern(Pattern {
        command: CommandPattern::new(text, is_prefix),
        path: PathPattern::new(text, is_prefix),
        text: text.to_owned(),
        is_prefix,
    }))
}

/// A rule's text that means exactly this.
pub fn exact(tool: &str, text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('(', "\\(").replace(')', "\\)");
    format!("{tool}({escaped})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn rule(text: &str) -> Result<Rule, RuleFault> {
        Rule::parse(Kind::Allow, Sourced { value: text.into(), origin: Origin::flag("--x") })
            .map_err(|error| error.fault)
    }

    #[test]
    fn the_whole_tool_is_meant_by_four_spellings() {
        for text in ["Bash", " Bash ", "Bash()", "Bash(*)", "bash( )"] {
            let rule = rule(text).unwrap();
            assert!(rule.is_whole() && rule.names("bash", &["shell"]), "{text}");
        }
        assert!(rule("read_file").unwrap().names("read_file", &[]));
        assert!(rule("ReadFile").unwrap().names("read_file", &[]));
        assert!(rule("Read").unwrap().names("read_file", &["read", "view"]));
        assert!(!rule("Read").unwrap().names("bash", &["shell"]));
    }

    #[test]
    fn brackets_are_escaped_or_an_error_with_its_place() {
        let Text::Pattern(pattern) = rule(r"Bash(echo \(a\) \\ \n)").unwrap().of else { panic!("a pattern") };
        assert_eq!(pattern.text, r"echo (a) \ \n");
        for (text, fault) in [
            ("", RuleFault::Empty),
            ("Bash(ls", RuleFault::Open),
            (r"Bash(ls\)", RuleFault::Open),
            ("Bash(a)b", RuleFault::Bracket),
            ("Bash(a(b))", RuleFault::Bracket),
            ("Bash)", RuleFault::Bracket),
            ("(ls)", RuleFault::NoTool),
            ("WebFetch(domain: )", RuleFault::NoHost),
        ] {
            assert_eq!(rule(text).unwrap_err(), fault, "{text}");
        }
        let origin = Origin {
            scope: crate::settings::Scope::User,
            file: Some("/home/u/.claw/settings.json".into()),
            line: 3,
            column: 14,
            key: "permissions.deny[0]".into(),
        };
        let error = Rule::parse(Kind::Deny, Sourced { value: "Bash(ls".into(), origin }).unwrap_err();
        let told = error.to_string();
        assert!(
            told.starts_with("/home/u/.claw/settings.json:3:14: `Bash(ls` is no permission rule"),
            "{told}"
        );
    }

    #[test]
    fn servers_are_named_whole_or_tool_by_tool() {
        for (text, name, is_meant) in [
            ("mcp__github", "mcp__github__get_issue", true),
            ("mcp__github__*", "mcp__github__get_issue", true),
            ("mcp__github__get_issue", "mcp__github__get_issue", true),
            ("mcp__GitHub__Get_Issue", "mcp__github__get_issue", true),
            ("mcp__github__get_*", "mcp__github__get_issue", true),
            ("mcp__github", "mcp__github_evil__get_issue", false),
            ("mcp__git_hub__x", "mcp__git__hub__x", false),
            ("mcp__github__get", "mcp__github__get_issue", false),
            ("mcp__github", "bash", false),
        ] {
            assert_eq!(rule(text).unwrap().names(name, &[]), is_meant, "{text} {name}");
        }
    }

    #[test]
    fn the_field_that_is_compared_is_the_first_of_the_list() {
        assert_eq!(Subject::of(&json!({"path": "a", "command": "b"})), Subject::Command("b".into()));
        assert_eq!(Subject::of(&json!({"pattern": "p", "filePath": "f"})), Subject::Path("f".into()));
        assert_eq!(Subject::of(&json!({"url": "u", "message": "m"})), Subject::Url("u".into()));
        assert_eq!(Subject::of(&json!({"code": "c"})), Subject::Text("c".into()));
        assert_eq!(Subject::of(&json!({"x": 1})), Subject::Text(r#"{"x":1}"#.into()));
    }

    proptest! {
        #[test]
        fn an_exact_rule_says_what_it_was_made_of(text in "[a-z()\\\\ ]{1,30}") {
            let text = text.trim();
            prop_assume!(!text.is_empty());
            let Ok(Rule { of: Text::Pattern(pattern), .. }) = rule(&exact("Bash", text)) else {
                return Err(TestCaseError::fail("no pattern"));
            };
            prop_assert_eq!(pattern.text, text);
        }

        #[test]
        fn whatever_is_written_is_a_rule_or_an_error(text in "\\PC{0,40}") {
            let _ = rule(&text);
        }
    }
}
