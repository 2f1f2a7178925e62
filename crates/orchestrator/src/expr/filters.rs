//! Filters beside the engine's own.

use super::scope::ScopeObject;
use crate::workflow::units::parse_size;
use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

fn wrong(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

fn is_null(value: &Value) -> bool {
    value.is_undefined() || value.is_none()
}

/// What a template prints for a value: texts as they are, lists and tables as JSON.
pub(super) fn shown(value: &Value) -> Result<String, Error> {
    match value.kind() {
        ValueKind::String => Ok(value.as_str().unwrap_or_default().to_owned()),
        ValueKind::Number | ValueKind::Bool => Ok(value.to_string()),
        _ => to_json(value, false),
    }
}

fn to_json(value: &Value, pretty: bool) -> Result<String, Error> {
    let text = if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    text.map_err(|source| wrong("not a JSON value").with_source(source))
}

/// `x | default(y)`: replaces null too; with `true` behind it also what is false.
pub(super) fn default(value: Value, other: Option<Value>, also_false: Option<bool>) -> Value {
    let replace = is_null(&value) || (also_false == Some(true) && !value.is_true());
    if replace { other.unwrap_or_else(|| Value::from("")) } else { value }
}

/// `x | raw`: no fence. A template looks for it; the value stays.
pub(super) fn raw(value: Value) -> Value {
    value
}

/// `x | json`, `x | json(indent=true)`.
pub(super) fn json(value: Value, options: Kwargs) -> Result<String, Error> {
    let pretty = options.get::<Option<bool>>("indent")?.unwrap_or(false);
    options.assert_all_used()?;
    to_json(&value, pretty)
}

fn items(value: &Value, filter: &str) -> Result<Vec<Value>, Error> {
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => Ok(value.try_iter()?.collect()),
        kind => Err(wrong(format!("`{filter}` takes a list, this is {kind}"))),
    }
}

/// `x | bullets`: a line with a dash for each element, further lines of an element indented.
pub(super) fn bullets(value: Value) -> Result<String, Error> {
    let mut out = String::new();
    for item in items(&value, "bullets")? {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str("- ");
        out.push_str(&shown(&item)?.trim_end().replace('\n', "\n  "));
    }
    Ok(out)
}

/// `x | lines(n)`: the first lines of a text.
pub(super) fn lines(value: Value, count: usize) -> Result<String, Error> {
    let text = shown(&value)?;
    Ok(text.split_inclusive('\n').take(count).collect::<String>().trim_end_matches('\n').to_owned())
}

fn size(value: &Value) -> Result<usize, Error> {
    if let Some(bytes) = value.as_usize() {
        return Ok(bytes);
    }
    let text = value.as_str().ok_or_else(|| wrong("a size is a number of bytes or a text like '64KiB'"))?;
    let bytes = parse_size(text).map_err(|error| wrong(error.to_string()))?;
    Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
}

/// `x | head('64KiB')`: the first bytes, whole characters.
pub(super) fn head(value: Value, bytes: Value) -> Result<String, Error> {
    let (text, bytes) = (shown(&value)?, size(&bytes)?);
    Ok(text[..text.floor_char_boundary(bytes)].to_owned())
}

/// `x | tail('64KiB')`: the last bytes, whole characters.
pub(super) fn tail(value: Value, bytes: Value) -> Result<String, Error> {
    let (text, bytes) = (shown(&value)?, size(&bytes)?);
    Ok(text[text.ceil_char_boundary(text.len().saturating_sub(bytes))..].to_owned())
}

fn cell(value: &Value) -> Result<String, Error> {
    let text = if is_null(value) { String::new() } else { shown(value)? };
    Ok(text.replace('|', "\\|").replace('\n', " "))
}

/// `x | table`: a list of tables as a table of Markdown; columns in the order in which they first appear.
pub(super) fn table(value: Value) -> Result<String, Error> {
    let rows = items(&value, "table")?;
    let mut columns: Vec<String> = Vec::new();
    for row in &rows {
        if row.kind() != ValueKind::Map {
            return Err(wrong(format!("`table` takes a list of tables, an element is {}", row.kind())));
        }
        for key in row.try_iter()? {
            let key = key.to_string();
            if !columns.contains(&key) {
                columns.push(key);
            }
        }
    }
    let mut out = format!("| {} |\n|{}", columns.join(" | "), " --- |".repeat(columns.len()));
    for row in &rows {
        out.push_str("\n|");
        for column in &columns {
            out.push_str(&format!(" {} |", cell(&row.get_attr(column)?)?));
        }
    }
    Ok(out)
}

/// `x | flatten`: lists inside the list become part of it, one level; null is left out.
pub(super) fn flatten(value: Value) -> Result<Value, Error> {
    let mut out = Vec::new();
    for item in items(&value, "flatten")? {
        match item.kind() {
            ValueKind::Seq | ValueKind::Iterable => out.extend(item.try_iter()?),
            ValueKind::None | ValueKind::Undefined => {}
            _ => out.push(item),
        }
    }
    Ok(Value::from(out))
}

/// What `<name> | path` becomes: the file that holds the whole output of a node.
pub(super) fn path(state: &State, name: &str) -> Result<Value, Error> {
    let scope = state.lookup(super::scope::SELF_NAME);
    let scope = scope.as_ref().and_then(|value| value.downcast_object_ref::<ScopeObject>());
    let file = scope.and_then(|scope| scope.0.file_of(name));
    file.map(|file| Value::from(file.display().to_string()))
        .ok_or_else(|| wrong(format!("there is no file with the output of `{name}`")))
}
