//! Reads a text into a [`WorkflowFile`] by the table of keys. All problems of a stage are said at once.

use super::file::{Entry, NodeFile, Section, Val, ValKind, WorkflowFile};
use super::keys::{self, Key, NodeKind, State, Ty};
use super::problem::{Code, Problem};
use super::spans::Source;
use crate::addr::NodeId;
use claw_kernel::near::nearest;
use serde_json::Value as Json;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The schema that this version reads.
pub const SCHEMA: i64 = 1;

/// Words of the expression language that cannot be names.
pub const RESERVED: [&str; 44] = [
    "inputs",
    "nodes",
    "run",
    "loop",
    "item",
    "index",
    "and",
    "or",
    "not",
    "in",
    "is",
    "if",
    "else",
    "elif",
    "true",
    "false",
    "none",
    "for",
    "endfor",
    "endif",
    "set",
    "block",
    "extends",
    "include",
    "import",
    "from",
    "macro",
    "call",
    "filter",
    "with",
    "without",
    "autoescape",
    "raw",
    "do",
    "range",
    "dict",
    "debug",
    "namespace",
    "lipsum",
    "cycler",
    "joiner",
    "self",
    "super",
    "caller",
];

/// Reads a whole file.
///
/// # Errors
/// E100 alone; else all of E101 to E107 that the keys show.
pub fn read(source: &Source) -> Result<WorkflowFile, Vec<Problem>> {
    let (file, problems) = read_what_is_good(source)?;
    if problems.is_empty() { Ok(file) } else { Err(problems) }
}

/// As [`read`], with what could be read beside the problems: so that the rest of this stage can be said too.
///
/// # Errors
/// E100.
pub fn read_what_is_good(source: &Source) -> Result<(WorkflowFile, Vec<Problem>), Vec<Problem>> {
    let document = DeTable::parse(&source.text).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        vec![source.problem(Code::E100, span, "", format!("not TOML: {}", error.message().trim()))]
    })?;
    let mut reader = Reader { source, problems: Vec::new(), near_left: 50 };
    let file = reader.document(document.get_ref());
    Ok((file, reader.problems))
}

/// The path of a key, made into text only for a problem.
#[derive(Clone, Copy)]
struct At<'a> {
    parent: Option<&'a At<'a>>,
    name: &'a str,
}

impl<'a> At<'a> {
    const ROOT: At<'static> = At { parent: None, name: "" };

    fn child(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), name }
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent.filter(|parent| !parent.name.is_empty()) {
            write!(f, "{parent}.")?;
        }
        f.write_str(self.name)
    }
}

struct Reader<'a> {
    source: &'a Source,
    problems: Vec<Problem>,
    /// Looking for near names costs: only the first so many get one.
    near_left: usize,
}

type Value<'i> = Spanned<DeValue<'i>>;

impl Reader<'_> {
    fn say(
        &mut self,
        code: Code,
        span: Range<usize>,
        at: &At<'_>,
        message: impl Into<String>,
    ) -> &mut Problem {
        self.problems.push(self.source.problem(code, span, at.to_string(), message));
        let last = self.problems.len() - 1;
        &mut self.problems[last]
    }

    fn near<'n>(&mut self, word: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
        self.near_left = self.near_left.checked_sub(1)?;
        nearest(word, names)
    }

    fn document(&mut self, table: &DeTable<'_>) -> WorkflowFile {
        let mut file = WorkflowFile::default();
        if let Some(version) = table.get("schema").and_then(|value| integer(value.get_ref()))
            && version != SCHEMA
        {
            let span = table.get("schema").map_or(0..0, Spanned::span);
            let message =
                format!("schema {version} needs another version of claw; this one reads schema {SCHEMA}");
            self.say(Code::E101, span, &At::ROOT.child("schema"), message).help = Some(if version > SCHEMA {
                "update claw".into()
            } else {
                format!("write `schema = {SCHEMA}`")
            });
            return file;
        }
        file.top = self.section(table, 0..0, keys::TOP, &At::ROOT);
        if let Some(nodes) = file.top.entries.iter().position(|entry| entry.key.name == "node") {
            file.top.entries.remove(nodes);
        }
        if let Some((_, value)) = table.get_key_value("node")
            && let DeValue::Table(nodes) = value.get_ref()
        {
            file.nodes = self.nodes(nodes, &At::ROOT.child("node"), &Arc::from(""));
            if file.nodes.is_empty() && self.problems.is_empty() {
                self.say(Code::E108, value.span(), &At::ROOT.child("node"), "there is no node");
            }
        }
        file
    }

    fn section(
        &mut self,
        table: &DeTable<'_>,
        span: Range<usize>,
        keys: &'static [Key],
        at: &At<'_>,
    ) -> Section {
        let mut out = Section { span: span.clone(), entries: Vec::with_capacity(table.len()) };
        for (name, value) in table.iter() {
            let here = at.child(name.get_ref());
            match keys.iter().find(|key| key.name == name.get_ref().as_ref()) {
                Some(key) => self.entry(&mut out, key, name.span(), value, &here),
                None => self.unknown(name, at, keys.iter().map(|key| key.name)),
            }
        }
        self.required(keys.iter(), &out, span, at);
        out
    }

    fn unknown<'n>(
        &mut self,
        name: &Spanned<std::borrow::Cow<'_, str>>,
        at: &At<'_>,
        names: impl IntoIterator<Item = &'n str>,
    ) {
        let near = self.near(name.get_ref(), names).map(|near| format!("did you mean `{near}`?"));
        let place = at.child(name.get_ref());
        self.say(Code::E102, name.span(), &place, format!("unknown key `{}`", name.get_ref())).help = near;
    }

    fn required<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k Key>,
        section: &Section,
        span: Range<usize>,
        at: &At<'_>,
    ) {
        for key in keys.filter(|key| key.required() && section.entry(key.name).is_none()) {
            // A wrong value was said already; only what is not there at all is missing.
            let place = at.child(key.name).to_string();
            if !self.problems.iter().rev().take(20).any(|problem| problem.path.starts_with(&place)) {
                self.say(
                    Code::E108,
                    span.clone(),
                    &at.child(key.name),
                    format!("`{}` is missing", key.name),
                )
                .help = Some(key.help.to_owned());
            }
        }
    }

    fn entry(
        &mut self,
        out: &mut Section,
        key: &'static Key,
        key_span: Range<usize>,
        value: &Value<'_>,
        at: &At<'_>,
    ) {
        if key.state == State::Later {
            self.later(key_span, at, &format!("`{}`", key.name));
            return;
        }
        // Nodes are read by whoever keeps them: `document` and `nodes`.
        if matches!(key.ty, Ty::Nodes) && matches!(value.get_ref(), DeValue::Table(_)) {
            let kind = ValKind::Map(Vec::new());
            out.entries.push(Entry { key, key_span, value: Val { span: value.span(), kind } });
            return;
        }
        if let Some(kind) = self.value(&key.ty, value, at) {
            out.entries.push(Entry { key, key_span, value: Val { span: value.span(), kind } });
        }
    }

    fn later(&mut self, span: Range<usize>, at: &At<'_>, what: &str) {
        self.say(Code::E107, span, at, format!("{what} is not in this version yet")).help =
            Some("leave it out, or wait for a later version of claw".into());
    }

    /// The nodes of the file or of a body. `within`: path of the nodes round them, empty or ended by `body.`.
    fn nodes(&mut self, table: &DeTable<'_>, at: &At<'_>, within: &Arc<str>) -> Vec<NodeFile> {
        let mut out = Vec::with_capacity(table.len());
        for (name, value) in table.iter() {
            let here = at.child(name.get_ref());
            let id = self
                .ident(name.get_ref(), name.span(), &here)
                .and_then(|()| name.get_ref().parse::<NodeId>().ok());
            let DeValue::Table(keys) = value.get_ref() else {
                self.wrong(value, "a table", &here);
                continue;
            };
            let (kind, section) = self.node(keys, name.span(), &here);
            let body = self.body(kind, keys, within, name, &here);
            if let Some(id) = id {
                let own = section.entries.len();
                let within = Arc::clone(within);
                out.push(NodeFile { id, span: name.span(), kind, own, keys: section, within, body });
            }
        }
        out
    }

    fn body(
        &mut self,
        kind: NodeKind,
        keys: &DeTable<'_>,
        within: &str,
        name: &Spanned<std::borrow::Cow<'_, str>>,
        at: &At<'_>,
    ) -> Vec<NodeFile> {
        let Some((key, value)) = keys.get_key_value("body").filter(|_| kind == NodeKind::Group) else {
            return Vec::new();
        };
        let DeValue::Table(nodes) = value.get_ref() else { return Vec::new() };
        let at = at.child("body");
        if nodes.is_empty() {
            self.say(Code::E108, key.span(), &at, "the body has no node");
        }
        let within: Arc<str> = format!("{within}{}.body.", name.get_ref()).into();
        self.nodes(nodes, &at, &within)
    }

    fn node(&mut self, table: &DeTable<'_>, span: Range<usize>, at: &At<'_>) -> (NodeKind, Section) {
        let named = table.get("kind").and_then(|value| value.get_ref().as_str());
        let kind = named.map_or(Some(NodeKind::Agent), NodeKind::from_name);
        let Some(kind) = kind else {
            // Without its kind nothing can be said about its keys.
            if let Some(value) = table.get("kind") {
                let at = at.child("kind");
                let near = named.and_then(|word| self.near(word, NodeKind::ALL.map(NodeKind::as_str)));
                let names = NodeKind::ALL.map(|kind| format!("`{}`", kind.as_str())).join(", ");
                let message = format!("`{}` is no kind of node", named.unwrap_or_default());
                self.say(Code::E103, value.span(), &at, message).help =
                    Some(near.map_or(format!("one of {names}"), |near| format!("did you mean `{near}`?")));
            }
            return (NodeKind::Set, Section::default());
        };
        let mut out = Section { span: span.clone(), entries: Vec::with_capacity(table.len()) };
        for (name, value) in table.iter() {
            let here = at.child(name.get_ref());
            match keys::of(kind).find(|key| key.name == name.get_ref().as_ref()) {
                Some(key) => self.entry(&mut out, key, name.span(), value, &here),
                None => self.foreign(kind, name, at),
            }
        }
        self.required(keys::of(kind), &out, span, at);
        (kind, out)
    }

    /// A key that this kind does not have: another's, or nobody's.
    fn foreign(&mut self, kind: NodeKind, name: &Spanned<std::borrow::Cow<'_, str>>, at: &At<'_>) {
        let owners: Vec<String> =
            keys::kinds_with(name.get_ref()).map(|kind| format!("`{}`", kind.as_str())).collect();
        if owners.is_empty() {
            return self.unknown(name, at, keys::of(kind).map(|key| key.name));
        }
        let message = format!(
            "`{}` belongs to nodes of kind {}, this one is `{}`",
            name.get_ref(),
            owners.join(" and "),
            kind.as_str()
        );
        self.say(Code::E104, name.span(), &at.child(name.get_ref()), message);
    }

    fn wrong(&mut self, value: &Value<'_>, wanted: &str, at: &At<'_>) {
        let found = match value.get_ref() {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.say(Code::E103, value.span(), at, format!("this must be {wanted}, it is {found}"));
    }

    fn ident(&mut self, name: &str, span: Range<usize>, at: &At<'_>) -> Option<()> {
        if RESERVED.contains(&name) {
            self.say(Code::E105, span, at, format!("`{name}` is a word of the expression language")).help =
                Some("choose another name".into());
            return None;
        }
        self.shape(name, span, at, "_", "a letter a-z, then at most 47 of a-z, 0-9, _")
    }

    fn shape(&mut self, name: &str, span: Range<usize>, at: &At<'_>, more: &str, words: &str) -> Option<()> {
        let good = name.len() <= 48
            && name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || more.contains(c));
        if !good {
            self.say(Code::E103, span, at, format!("`{}` is not a name", short(name))).help =
                Some(words.to_owned());
        }
        good.then_some(())
    }
}

fn short(text: &str) -> &str {
    &text[..text.floor_char_boundary(60)]
}

fn integer(value: &DeValue<'_>) -> Option<i64> {
    let number = value.as_integer()?;
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

fn float(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(number) => number.as_str().parse().ok(),
        DeValue::Integer(_) => integer(value).map(|number| number as f64),
        _ => None,
    }
}

/// Any TOML value as JSON: dates as texts; `None` for what JSON cannot say (inf, nan).
fn json(value: &DeValue<'_>) -> Option<Json> {
    Some(match value {
        DeValue::String(text) => Json::from(text.as_ref()),
        DeValue::Integer(_) => Json::from(integer(value)?),
        DeValue::Float(number) => serde_json::Number::from_f64(number.as_str().parse().ok()?)?.into(),
        DeValue::Boolean(flag) => Json::from(*flag),
        DeValue::Datetime(date) => Json::from(date.to_string()),
        DeValue::Array(list) => {
            Json::Array(list.iter().map(|item| json(item.get_ref())).collect::<Option<_>>()?)
        }
        DeValue::Table(table) => {
            let entries =
                table.iter().map(|(name, item)| Some((name.get_ref().to_string(), json(item.get_ref())?)));
            Json::Object(entries.collect::<Option<_>>()?)
        }
    })
}

mod values;
