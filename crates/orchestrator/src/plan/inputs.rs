//! Inputs: what the file declares, what is given, and whether they fit.

use super::decl::{InputDecl, InputType};
use super::model::InputValue;
use crate::workflow::file::{Section, ValKind, WorkflowFile};
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

/// What a file declares, in its order.
pub(super) fn declared(file: &WorkflowFile) -> IndexMap<String, InputDecl> {
    let inputs = file.top.map("inputs").iter();
    inputs.filter_map(|(id, _, value)| Some((id.to_string(), decl(value.section()?)))).collect()
}

fn decl(keys: &Section) -> InputDecl {
    let ty = match keys.text("type") {
        Some("int") => InputType::Int,
        Some("float") => InputType::Float,
        Some("bool") => InputType::Bool,
        Some("enum") => InputType::Enum(keys.texts("values")),
        Some("path") => InputType::Path,
        Some("json") => InputType::Json,
        Some("text") => InputType::Text,
        Some(_) | None => InputType::String,
    };
    let default = match keys.get("default").map(|value| &value.kind) {
        Some(ValKind::Json(value)) => Some(value.clone()),
        Some(_) | None => None,
    };
    InputDecl { ty, default, secret: keys.flag("secret").unwrap_or(false) }
}

/// Inputs that must be given and are not, in the order of the file.
pub(super) fn missing(file: &WorkflowFile, args: &InputArgs) -> Vec<String> {
    let open = |(id, decl): &(String, InputDecl)| decl.default.is_none() && !args.given.contains_key(id);
    declared(file).into_iter().filter(open).map(|(id, _)| id).collect()
}

/// Checks what is given (E120 to E122, with the names). Those that are `open` stay null.
pub(super) fn check(
    source: &Source,
    file: &WorkflowFile,
    args: &InputArgs,
    open: &[String],
) -> Result<IndexMap<String, InputValue>, Vec<Problem>> {
    let mut out = IndexMap::new();
    let mut problems = Vec::new();
    let declared = declared(file);
    for ((id, span, _), decl) in file.top.map("inputs").iter().zip(declared.values()) {
        if open.iter().any(|open| open == id.as_ref()) {
            out.insert(id.to_string(), decl.holding(Json::Null));
            continue;
        }
        match value_of(source, (id, span), decl, args.given.get(id.as_ref())) {
            Ok(value) => drop(out.insert(id.to_string(), value)),
            Err(problem) => problems.push(*problem),
        }
    }
    for id in args.given.keys().filter(|id| !declared.contains_key(id.as_str())) {
        let near = nearest(id, declared.keys().map(String::as_str));
        let place = file.top.entry("inputs").map_or(0..0, |entry| entry.key_span.clone());
        let message = format!("the file has no input `{id}`");
        problems.push(source.problem(Code::E122, place, format!("inputs.{id}"), message).near(near));
    }
    if problems.is_empty() { Ok(out) } else { Err(problems) }
}

/// E124: what a declaration gets wrong by itself.
pub(super) fn declarations(source: &Source, file: &WorkflowFile) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (id, span, value) in file.top.map("inputs") {
        let Some(keys) = value.section() else { continue };
        let mut say = |span: Range<usize>, key: &str, message: String| {
            problems.push(source.problem(Code::E124, span, format!("inputs.{id}.{key}"), message));
        };
        let decl = decl(keys);
        let wordless = keys.texts("values").is_empty();
        let kind = keys.text("type").unwrap_or_default();
        match (kind, wordless) {
            ("enum", true) => say(span.clone(), "values", "an input of type `enum` needs `values`".into()),
            ("enum", false) | (_, true) => {}
            (_, false) => say(
                keys.get("values").map_or(span.clone(), |v| v.span.clone()),
                "values",
                format!("`values` belongs to type `enum`, this is `{kind}`"),
            ),
        }
        if let (Some(default), Some(value)) = (&decl.default, keys.get("default"))
            && !(kind == "enum" && wordless)
            && !decl.ty.fits(default)
        {
            say(value.span.clone(), "default", format!("the default must be {}", decl.ty.wanted()));
        }
    }
    problems
}

fn value_of(
    source: &Source,
    (id, span): (&str, &Range<usize>),
    decl: &InputDecl,
    given: Option<&Given>,
) -> Result<InputValue, Box<Problem>> {
    let path = format!("inputs.{id}");
    let value = match (given, &decl.default) {
        (Some(Given::Text(text)), _) => decl.ty.read(text),
        (Some(Given::Value(value)), _) | (None, Some(value)) => decl.ty.fits(value).then(|| value.clone()),
        (None, None) => {
            let message = format!("the input `{id}` is missing");
            let help = format!("give it with `--input {id}=…`");
            return Err(Box::new(source.problem(Code::E120, span.clone(), path, message).with_help(help)));
        }
    };
    if let Some(value) = value {
        return Ok(decl.holding(value));
    }
    let found = match given {
        _ if decl.secret => String::new(),
        Some(Given::Text(text)) => format!(", not `{}`", short(text)),
        Some(Given::Value(value)) => format!(", not `{}`", short(&value.to_string())),
        None => String::new(),
    };
    let message = format!("the input `{id}` must be {}{found}", decl.ty.wanted());
    Err(Box::new(source.problem(Code::E121, span.clone(), path, message)))
}

fn short(text: &str) -> &str {
    &text[..text.floor_char_boundary(60)]
}
