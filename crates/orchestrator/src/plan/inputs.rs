//! Inputs: what the file declares, what is given, and whether they fit.

use super::model::InputValue;
use crate::workflow::file::{Section, Val, ValKind, WorkflowFile};
use crate::workflow::problem::{Code, Problem};
use crate::workflow::spans::Source;
use claw_kernel::near::nearest;
use indexmap::IndexMap;
use serde_json::Value as Json;
use std::ops::Range;

/// A value as the user gave it.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// From `--input id=text`.
    Text(String),
    /// From a file of inputs.
    Value(Json),
}

/// A file of inputs that is none.
#[derive(Debug, thiserror::Error)]
pub enum InputsFileError {
    /// Neither JSON nor TOML.
    #[error("the inputs are neither JSON nor TOML")]
    Syntax {
        /// What the JSON reader says.
        #[source]
        source: serde_json::Error,
    },
    /// Not a table of values by id.
    #[error("the inputs must be a table: a value for each id")]
    NotATable,
}

/// What is given for the inputs. The later wins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InputArgs {
    given: IndexMap<String, Given>,
}

impl InputArgs {
    /// One `--input id=text`.
    pub fn text(&mut self, id: impl Into<String>, text: impl Into<String>) -> &mut Self {
        self.given.insert(id.into(), Given::Text(text.into()));
        self
    }

    /// One value.
    pub fn value(&mut self, id: impl Into<String>, value: Json) -> &mut Self {
        self.given.insert(id.into(), Given::Value(value));
        self
    }

    /// A whole file, JSON or TOML.
    ///
    /// # Errors
    /// Where it is neither, or no table.
    pub fn file(&mut self, text: &str) -> Result<&mut Self, InputsFileError> {
        let value: Json = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(source) => toml::from_str(text).map_err(|_| InputsFileError::Syntax { source })?,
        };
        let Json::Object(values) = value else { return Err(InputsFileError::NotATable) };
        for (id, value) in values {
            self.given.insert(id, Given::Value(value));
        }
        Ok(self)
    }
}

/// A declaration.
struct Declared<'a> {
    id: &'a str,
    span: Range<usize>,
    keys: &'a Section,
}

/// Checks declarations (E124, with the keys) and values (E120 to E122, with the names).
pub(super) fn check(
    source: &Source<'_>,
    file: &WorkflowFile,
    args: &InputArgs,
) -> Result<IndexMap<String, InputValue>, Vec<Problem>> {
    let mut out = IndexMap::new();
    let mut problems = Vec::new();
    let declared: Vec<Declared<'_>> = file
        .top
        .map("inputs")
        .iter()
        .filter_map(|(id, span, value)| Some(Declared { id, span: span.clone(), keys: value.section()? }))
        .collect();
    for input in &declared {
        match value_of(source, input, args.given.get(input.id)) {
            Ok(value) => drop(out.insert(input.id.to_owned(), value)),
            Err(problem) => problems.push(*problem),
        }
    }
    for id in args.given.keys().filter(|id| declared.iter().all(|input| input.id != id.as_str())) {
        let near = nearest(id, declared.iter().map(|input| input.id));
        let place = file.top.entry("inputs").map_or(0..0, |entry| entry.key_span.clone());
        let message = format!("the file has no input `{id}`");
        problems.push(source.problem(Code::E122, place, format!("inputs.{id}"), message).near(near));
    }
    if problems.is_empty() { Ok(out) } else { Err(problems) }
}

/// E124: what a declaration gets wrong by itself.
pub(super) fn declarations(source: &Source<'_>, file: &WorkflowFile) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (id, span, value) in file.top.map("inputs") {
        let Some(keys) = value.section() else { continue };
        let mut say = |span: Range<usize>, key: &str, message: String| {
            problems.push(source.problem(Code::E124, span, format!("inputs.{id}.{key}"), message));
        };
        let words = keys.texts("values");
        let kind = keys.text("type").unwrap_or_default();
        match (kind, words.is_empty()) {
            ("enum", true) => say(span.clone(), "values", "an input of type `enum` needs `values`".into()),
            ("enum", false) | (_, true) => {}
            (_, false) => say(
                keys.get("values").map_or(span.clone(), |v| v.span.clone()),
                "values",
                format!("`values` belongs to type `enum`, this is `{kind}`"),
            ),
        }
        if let Some(Val { kind: ValKind::Json(default), span }) = keys.get("default")
            && !(kind == "enum" && words.is_empty())
            && let Err(wanted) = convert(kind, &words, &Given::Value(default.clone()))
        {
            say(span.clone(), "default", format!("the default must be {wanted}"));
        }
    }
    problems
}

fn value_of(
    source: &Source<'_>,
    input: &Declared<'_>,
    given: Option<&Given>,
) -> Result<InputValue, Box<Problem>> {
    let kind = input.keys.text("type").unwrap_or_default();
    let secret = input.keys.flag("secret").unwrap_or(false);
    let fenced = matches!(kind, "text" | "json");
    let path = format!("inputs.{}", input.id);
    let default = match input.keys.get("default").map(|value| &value.kind) {
        Some(ValKind::Json(value)) => Some(Given::Value(value.clone())),
        Some(_) | None => None,
    };
    let Some(given) = given.or(default.as_ref()) else {
        let message = format!("the input `{}` is missing", input.id);
        let help = format!("give it with `--input {}=…`", input.id);
        return Err(Box::new(source.problem(Code::E120, input.span.clone(), path, message).with_help(help)));
    };
    match convert(kind, &input.keys.texts("values"), given) {
        Ok(value) => Ok(InputValue { value, secret, fenced }),
        Err(wanted) => {
            let found = match given {
                _ if secret => String::new(),
                Given::Text(text) => format!(", not `{}`", short(text)),
                Given::Value(value) => format!(", not `{}`", short(&value.to_string())),
            };
            let message = format!("the input `{}` must be {wanted}{found}", input.id);
            Err(Box::new(source.problem(Code::E121, input.span.clone(), path, message)))
        }
    }
}

fn short(text: &str) -> &str {
    &text[..text.floor_char_boundary(60)]
}

/// A value of the wrong type: what is wanted, in words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Wanted(String);

/// What an input wants, in words.
fn wanted(kind: &str, values: &[String]) -> String {
    match kind {
        "int" => "a whole number".into(),
        "float" => "a number".into(),
        "bool" => "`true` or `false`".into(),
        "json" => "JSON".into(),
        "enum" => {
            format!("one of {}", values.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "))
        }
        _ => "a text".into(),
    }
}

/// The value in its type, or what is wanted.
fn convert(kind: &str, values: &[String], given: &Given) -> Result<Json, Wanted> {
    let parsed = match (kind, given) {
        ("int", Given::Text(text)) => text.trim().parse::<i64>().ok().map(Json::from),
        ("float", Given::Text(text)) => {
            text.trim().parse::<f64>().ok().filter(|n| n.is_finite()).map(Json::from)
        }
        ("bool", Given::Text(text)) => text.trim().parse::<bool>().ok().map(Json::from),
        ("json", Given::Text(text)) => serde_json::from_str(text).ok(),
        ("enum", Given::Text(text)) => values.contains(text).then(|| Json::from(text.as_str())),
        (_, Given::Text(text)) => Some(Json::from(text.as_str())),
        ("int", Given::Value(value)) => value.is_i64().then(|| value.clone()),
        ("float", Given::Value(value)) => value.is_number().then(|| value.clone()),
        ("bool", Given::Value(value)) => value.is_boolean().then(|| value.clone()),
        ("json", Given::Value(value)) => Some(value.clone()),
        ("enum", Given::Value(value)) => {
            value.as_str().filter(|word| values.iter().any(|known| known == word)).map(Json::from)
        }
        (_, Given::Value(value)) => value.is_string().then(|| value.clone()),
    };
    parsed.ok_or_else(|| Wanted(wanted(kind, values)))
}
