//! What of a server's list is offered to models: names cleaned, texts bounded and visible, schemas in a form that services
//! take. Pure.

use super::names::tool_name;
use claw_kernel::digest::Digest;
use claw_kernel::visible::visible;
use claw_tools::names::interned;
use rmcp::model::Tool;
use serde_json::{Map, Value};
use std::collections::HashSet;

/// Bytes of a description.
const MOST_DESCRIPTION: usize = 2_048;
/// Bytes of a schema.
const MOST_SCHEMA: usize = 64 * 1024;
/// Levels of a schema.
const MOST_DEPTH: usize = 32;

/// A tool as it is offered.
#[derive(Clone, Debug, PartialEq)]
pub struct OfferedTool {
    /// The name that models use.
    pub name: &'static str,
    /// The name that the server uses.
    pub raw: String,
    /// Bounded, control characters visible.
    pub description: String,
    /// Its input.
    pub schema: Value,
    /// The server says that it changes nothing.
    pub is_read_only: bool,
    /// Of all that the server says about it.
    pub digest: Digest,
}

/// Something about a tool that people should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning(pub String);

/// Tools of one server in the order of its list.
pub(super) fn offers(server: &str, tools: Vec<Tool>) -> (Vec<OfferedTool>, Vec<Warning>) {
    let mut known = HashSet::new();
    let mut offered = Vec::new();
    let mut warnings = Vec::new();
    for tool in tools {
        let raw = tool.name.to_string();
        let shown = shown(&raw);
        if !known.insert(raw.clone()) {
            warnings.push(Warning(format!("tool `{shown}` is listed twice: it counts once")));
            continue;
        }
        match offer(server, tool) {
            Ok((offer, changed)) => {
                if changed {
                    warnings.push(Warning(format!("tool `{shown}` is called {} here", offer.name)));
                }
                offered.push(offer);
            }
            Err(LeftOut(why)) => warnings.push(Warning(format!("tool `{shown}` is left out: {why}"))),
        }
    }
    (offered, warnings)
}

fn shown(raw: &str) -> String {
    let cut = raw.floor_char_boundary(80);
    visible(&raw[..cut]).into_owned()
}

/// Why a tool is not offered.
struct LeftOut(String);

fn offer(server: &str, tool: Tool) -> Result<(OfferedTool, bool), LeftOut> {
    let raw = tool.name.to_string();
    let schema = serde_json::to_string(&*tool.input_schema).unwrap_or_default();
    if schema.len() > MOST_SCHEMA {
        return Err(LeftOut(format!("its schema has {} bytes, more than {MOST_SCHEMA}", schema.len())));
    }
    let mut input = Value::Object((*tool.input_schema).clone());
    if depth(&input) > MOST_DEPTH {
        return Err(LeftOut(format!("its schema has more than {MOST_DEPTH} levels")));
    }
    make_visible(&mut input);
    let Value::Object(fields) = input else { return Err(LeftOut("its schema is no object".to_owned())) };
    let schema = as_services_take_it(fields);
    let wanted = tool_name(server, &raw);
    let name = interned(&wanted).map_err(|error| LeftOut(error.to_string()))?;
    let description = tool.description.as_deref().unwrap_or_default().to_owned();
    let hints = tool.annotations.as_ref();
    let says = format!("{hints:?}");
    let digest = Digest::of_parts([
        raw.as_str(),
        description.as_str(),
        &serde_json::to_string(&schema).unwrap_or_default(),
        &says,
    ]);
    let is_read_only = hints.and_then(|hints| hints.read_only_hint) == Some(true);
    let changed = wanted != format!("mcp__{server}__{raw}");
    let description = bounded(&visible(&description));
    Ok((OfferedTool { name, raw, description, schema, is_read_only, digest }, changed))
}

fn bounded(text: &str) -> String {
    if text.len() <= MOST_DESCRIPTION {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(MOST_DESCRIPTION - 8);
    format!("{} […]", &text[..end])
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn make_visible(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(make_visible),
        Value::Array(items) => items.iter_mut().for_each(make_visible),
        Value::String(text) => *text = bounded(&visible(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// An object at the top, without alternatives there: some services refuse the whole request for one.
fn as_services_take_it(mut fields: Map<String, Value>) -> Value {
    for key in ["anyOf", "oneOf", "allOf", "$schema", "not", "if", "then", "else"] {
        fields.remove(key);
    }
    fields.insert("type".to_owned(), Value::String("object".to_owned()));
    if !fields.get("properties").is_some_and(Value::is_object) {
        fields.insert("properties".to_owned(), Value::Object(Map::new()));
    }
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(value: Value) -> Tool {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_poisoned_list_is_bounded_shown_and_stays_in_its_place() {
        let hidden = format!("find{}\u{200b}<IMPORTANT>{}", "\u{1b}[8m", "x".repeat(5_000));
        let (offered, warnings) = offers(
            "evil",
            vec![
                tool(
                    json!({"name": "read_file", "description": hidden, "inputSchema": {"type": "object", "properties": {"a": {"description": "\u{202e}x"}}}}),
                ),
                tool(
                    json!({"name": "big", "inputSchema": {"type": "object", "description": "y".repeat(2_000_000)}}),
                ),
                tool(json!({"name": "a/b\u{1b}[2J", "inputSchema": {"anyOf": [{}]}})),
                tool(json!({"name": "read_file", "inputSchema": {}})),
            ],
        );
        assert_eq!(offered.len(), 2, "{warnings:?}");
        assert_eq!(offered[0].name, "mcp__evil__read_file");
        assert!(offered[0].description.len() <= 2_048 && !offered[0].is_read_only);
        assert!(
            offered[0].description.starts_with("find␛[8m<U+200B><IMPORTANT>"),
            "{}",
            offered[0].description
        );
        assert_eq!(offered[0].schema["properties"]["a"]["description"], "<U+202E>x");
        assert_eq!(offered[1].schema, json!({"type": "object", "properties": {}}));
        let texts: Vec<&str> = warnings.iter().map(|warning| warning.0.as_str()).collect();
        assert_eq!(texts.len(), 3, "{texts:?}");
        assert!(
            texts[0].contains("2000") && texts[1].contains("␛[2J") && texts[2].contains("twice"),
            "{texts:?}"
        );
    }

    #[test]
    fn any_change_of_a_tool_changes_its_digest() {
        let of = |more: Value| {
            let mut value = json!({"name": "a", "inputSchema": {}});
            value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            offers("s", vec![tool(value)]).0[0].digest
        };
        let plain = of(json!({}));
        assert_eq!(plain, of(json!({})));
        for more in [
            json!({"description": "x"}),
            json!({"inputSchema": {"properties": {"a": {}}}}),
            json!({"annotations": {"readOnlyHint": true}}),
        ] {
            assert_ne!(plain, of(more));
        }
    }
}
