//! The head of a Markdown file: YAML between two lines of `---`, and the body behind it.
//!
//! Many a file in the wild has a head that is not valid YAML (a colon in a description). Such a head is read line by line:
//! `key: the rest of the line`, and `- item` below a key. What was read that way is said.

use indexmap::IndexMap;
use serde_json::Value;
use std::fmt;

/// Bytes of a file that is read.
pub const MOST_BYTES: usize = 1024 * 1024;

/// How much is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth a word.
    Warning,
    /// The file is left out.
    Error,
}

/// Something wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// How much.
    pub severity: Severity,
    /// In the file, from 1.
    pub line: u32,
    /// What, and what to do.
    pub message: String,
}

impl Flaw {
    /// Worth a word.
    pub fn warning(line: u32, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, line, message: message.into() }
    }

    /// The file is left out.
    pub fn error(line: u32, message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, line, message: message.into() }
    }
}

/// `LINE: warning: what`.
impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        write!(f, "{}: {word}: {}", self.line, self.message)
    }
}

/// A value of the head.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadValue {
    /// As read.
    pub value: Value,
    /// The line of its key in the file, from 1.
    pub line: u32,
}

impl HeadValue {
    /// A text; numbers and flags as they are written.
    pub fn text(&self) -> Option<String> {
        match &self.value {
            Value::String(text) => Some(text.trim().to_owned()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(flag) => Some(flag.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// A flag; `yes`, `no`, `on`, `off` as texts count.
    pub fn flag(&self) -> Option<bool> {
        match self.text()?.to_lowercase().as_str() {
            "true" | "yes" | "on" => Some(true),
            "false" | "no" | "off" => Some(false),
            _ => None,
        }
    }

    /// A list, or a text of items with commas between them: not those inside brackets.
    pub fn items(&self) -> Vec<String> {
        let texts: Vec<String> = match &self.value {
            Value::Array(items) => items
                .iter()
                .filter_map(|item| HeadValue { value: item.clone(), line: self.line }.text())
                .collect(),
            Value::String(text) => super::words::split_commas(text.trim_matches(['[', ']'])),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
        };
        let unquoted = texts.into_iter().map(|text| text.trim().trim_matches(['"', '\'']).to_owned());
        unquoted.filter(|text| !text.is_empty()).collect()
    }
}

/// The head: keys in the order of the file, in lower case with `-` for `_`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frontmatter(IndexMap<String, HeadValue>);

impl Frontmatter {
    /// The value of a key, whatever its spelling: `allowed-tools`, `allowed_tools` and `allowedTools` are one.
    pub fn get(&self, key: &str) -> Option<&HeadValue> {
        self.0.get(&folded(key))
    }

    /// A text, where there is one.
    pub fn text(&self, key: &str) -> Option<String> {
        self.get(key)?.text().filter(|text| !text.is_empty())
    }

    /// A list, where there is one.
    pub fn items(&self, key: &str) -> Option<Vec<String>> {
        self.get(key).map(HeadValue::items)
    }

    /// Keys as they are compared, with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &HeadValue)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }
}

fn folded(key: &str) -> String {
    key.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

/// A file taken apart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// The head; empty where there is none.
    pub head: Frontmatter,
    /// What stands behind it, with line ends as `\n`.
    pub body: String,
    /// The line on which the body begins, from 1.
    pub body_line: u32,
    /// What is wrong with the head.
    pub flaws: Vec<Flaw>,
}

impl Document {
    /// Takes a text apart. Never fails: a head that cannot be read is said.
    pub fn parse(text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
        let Some(rest) = text.strip_prefix("---\n") else {
            return Self { body: text, body_line: 1, ..Self::default() };
        };
        let Some((head, body)) = split_head(rest) else {
            let flaw = Flaw::warning(
                1,
                "the head that begins with `---` has no end; all of it is taken as the body",
            );
            return Self { body: text.clone(), body_line: 1, flaws: vec![flaw], ..Self::default() };
        };
        let mut flaws = Vec::new();
        let values = match yaml(head) {
            Ok(values) => values,
            Err(why) => {
                flaws.push(Flaw::warning(
                    2,
                    format!("the head is not valid YAML ({why}); it was read line by line"),
                ));
                by_line(head)
            }
        };
        let body_line = 3 + u32::try_from(head.lines().count()).unwrap_or(u32::MAX - 3);
        let head = values.into_iter().map(|(key, value)| {
            let line = line_of(head, &key);
            (folded(&key), HeadValue { value, line })
        });
        Self { head: Frontmatter(head.collect()), body: body.to_owned(), body_line, flaws }
    }
}

/// Head and body, where the head has an end.
fn split_head(rest: &str) -> Option<(&str, &str)> {
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if matches!(line.trim_end(), "---" | "...") {
            return Some((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

/// A head that is no YAML.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
struct NotYaml {
    /// In one line.
    reason: String,
}

fn yaml(head: &str) -> Result<IndexMap<String, Value>, NotYaml> {
    if head.trim().is_empty() {
        return Ok(IndexMap::new());
    }
    let options = serde_saphyr::options! { duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins };
    let one_line = |error: serde_saphyr::Error| {
        let text = error.without_snippet().to_string();
        let reason = text.lines().next().unwrap_or("no reason is given").chars().take(160).collect();
        NotYaml { reason }
    };
    serde_saphyr::from_str_with_options(head, options).map_err(one_line)
}

/// `key: rest` on a line that is not indented; `- item` and indented lines belong to the key above.
fn by_line(head: &str) -> IndexMap<String, Value> {
    let mut values: IndexMap<String, Value> = IndexMap::new();
    let mut last: Option<String> = None;
    for line in head.lines() {
        let is_key = |key: &str| {
            !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        };
        match line.split_once(':') {
            Some((key, rest)) if is_key(key) => {
                let rest = rest.trim();
                let text = if matches!(rest, "|" | ">" | "|-" | ">-") { "" } else { rest };
                values.insert(key.to_owned(), Value::String(text.trim_matches('"').to_owned()));
                last = Some(key.to_owned());
            }
            Some(_) | None => {
                let Some(value) = last.as_ref().and_then(|key| values.get_mut(key)) else { continue };
                add_line(value, line.trim());
            }
        }
    }
    values
}

fn add_line(value: &mut Value, line: &str) {
    if line.is_empty() {
        return;
    }
    match (line.strip_prefix("- "), &mut *value) {
        (Some(item), Value::Array(items)) => items.push(Value::String(item.trim().to_owned())),
        (Some(item), Value::String(text)) if text.is_empty() => {
            *value = Value::Array(vec![Value::String(item.trim().to_owned())]);
        }
        (_, Value::String(text)) => {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(line);
        }
        (_, Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {}
    }
}

/// The line of a key in the file: the head begins on its second line.
fn line_of(head: &str, key: &str) -> u32 {
    let is_its = |line: &str| {
        line.trim_start_matches(['"', '\''])
            .strip_prefix(key)
            .is_some_and(|rest| rest.trim_start_matches(['"', '\'']).trim_start().starts_with(':'))
    };
    let at = head.lines().position(is_its).unwrap_or(0);
    u32::try_from(at + 2).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_valid_head_is_read_as_yaml_with_the_lines_of_its_keys() {
        let text = "\u{feff}---\r\nname: a\r\ndescription: >\r\n  two\r\n  lines\r\nallowed-tools: [Read, \"Bash(git log:*)\"]\r\n---\r\n# Body\r\n";
        let document = Document::parse(text);
        assert_eq!(document.flaws, []);
        assert_eq!(document.head.text("name").unwrap(), "a");
        assert_eq!(document.head.text("description").unwrap(), "two lines");
        assert_eq!(document.head.items("allowedTools").unwrap(), ["Read", "Bash(git log:*)"]);
        assert_eq!(document.head.get("allowed_tools").unwrap().line, 6);
        assert_eq!((document.body.as_str(), document.body_line), ("# Body\n", 8));
    }

    #[test]
    fn a_head_that_is_no_yaml_is_read_by_line_and_that_is_said() {
        let text = "---\nname: reviewer\ndescription: Use this when: code changed. Examples: <example>a: b</example>\ntools:\n- Read\n- Grep\nmodel: sonnet\n---\nbody";
        let document = Document::parse(text);
        assert!(document.flaws[0].message.contains("not valid YAML"), "{:?}", document.flaws);
        assert!(document.head.text("description").unwrap().starts_with("Use this when: code"));
        assert_eq!(document.head.items("tools").unwrap(), ["Read", "Grep"]);
        assert_eq!(document.head.text("model").unwrap(), "sonnet");
    }

    #[test]
    fn commas_inside_brackets_part_nothing() {
        let text = "---\ntools: Read, Bash(git log:*, git diff:*), Agent(a, b)\n---\n";
        assert_eq!(
            Document::parse(text).head.items("tools").unwrap(),
            ["Read", "Bash(git log:*, git diff:*)", "Agent(a, b)"]
        );
    }

    #[test]
    fn a_file_without_a_head_is_all_body() {
        assert_eq!(Document::parse("# Hi\n---\nx").body, "# Hi\n---\nx");
        let open = Document::parse("---\nname: x\n");
        assert_eq!((open.body.as_str(), open.flaws.len()), ("---\nname: x\n", 1));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(---\n)?[a-z:\\-\\[\\]{}&*!|> \n\"']{0,200}(\n---\n)?.{0,40}") {
            Document::parse(&text);
        }
    }
}
