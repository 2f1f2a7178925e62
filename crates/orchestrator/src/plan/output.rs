//! `output`: schemas, read and held against what a schema must be (E150).

use super::build::{Build, Spot};
use super::model::OutputSpec;
use crate::workflow::file::{NodeFile, Section, ValKind};
use crate::workflow::keys::NodeKind;
use crate::workflow::problem::Code;
use serde_json::Value as Json;
use std::sync::Arc;

impl<'a> Build<'a> {
    /// What a node gives. Problems go to the stage of names.
    pub(super) fn output(&mut self, node: &'a NodeFile) -> OutputSpec {
        let keys = &node.keys;
        let Some(value) = keys.get("output") else { return default_output(node.kind, keys) };
        match &value.kind {
            ValKind::Text(word) if word.as_ref() == "json" => OutputSpec::Json,
            ValKind::Text(word) if word.as_ref() == "text" => OutputSpec::Text,
            // The lists that a command's lines become.
            ValKind::Text(_) => OutputSpec::Json,
            ValKind::Json(json) => {
                let spot = self.spot(node, "output", value);
                match self.schema(&spot, json) {
                    Some(schema) => OutputSpec::Schema(Arc::new(schema)),
                    None => OutputSpec::Json,
                }
            }
            _ => OutputSpec::Text,
        }
    }

    fn schema(&mut self, spot: &Spot<'_>, written: &Json) -> Option<Json> {
        let file = written
            .as_object()
            .filter(|table| table.len() == 1)
            .and_then(|table| table.get("file")?.as_str());
        let schema = match file {
            Some(file) => self.schema_file(spot, file)?,
            None => written.clone(),
        };
        match fault(&schema) {
            None => Some(schema),
            Some(message) => {
                self.problems.push(spot.problem(Code::E150, message));
                None
            }
        }
    }

    fn schema_file(&mut self, spot: &Spot<'_>, file: &str) -> Option<Json> {
        let path = self.folder.join(file);
        match self.surroundings.read_text(&path) {
            Err(error) => {
                self.problems
                    .push(spot.problem(Code::E109, format!("`{}` cannot be read: {error}", path.display())));
                None
            }
            Ok(text) => match serde_json::from_str(&text) {
                Ok(schema) => Some(schema),
                Err(error) => {
                    let message = format!("`{}` is not JSON: {error}", path.display());
                    self.problems.push(spot.problem(Code::E150, message));
                    None
                }
            },
        }
    }
}

fn default_output(kind: NodeKind, keys: &Section) -> OutputSpec {
    match kind {
        NodeKind::Agent | NodeKind::Command => OutputSpec::Text,
        NodeKind::Merge if matches!(keys.text("strategy"), Some("concat" | "agent")) => OutputSpec::Text,
        NodeKind::Merge | NodeKind::Set | NodeKind::Group | NodeKind::Gate | NodeKind::Workflow => {
            OutputSpec::Json
        }
    }
}

/// What is wrong with a schema.
fn fault(schema: &Json) -> Option<String> {
    let root = schema.get("type").and_then(Json::as_str);
    if !(root == Some("object") || (root.is_none() && schema.get("properties").is_some())) {
        return Some("the schema's root must be an object (`type = \"object\"`)".to_owned());
    }
    if let Some(message) = contradiction(schema) {
        return Some(message);
    }
    jsonschema::validator_for(schema).err().map(|error| {
        let place = error.instance_path().to_string();
        let at = if place.is_empty() { String::new() } else { format!(" at {place}") };
        format!("not a JSON Schema{at}: {error}")
    })
}

/// A schema that nothing, or nothing sensible, can satisfy.
fn contradiction(schema: &Json) -> Option<String> {
    let mut left = vec![(String::from("the root"), schema)];
    while let Some((name, at)) = left.pop() {
        let Some(table) = at.as_object() else { continue };
        if table.get("enum").and_then(Json::as_array).is_some_and(Vec::is_empty) {
            return Some(format!("`enum` of {name} is empty"));
        }
        for (least, most) in [
            ("minimum", "maximum"),
            ("minLength", "maxLength"),
            ("minItems", "maxItems"),
            ("minProperties", "maxProperties"),
        ] {
            if let (Some(least_value), Some(most_value)) = (number(table.get(least)), number(table.get(most)))
                && least_value > most_value
            {
                return Some(format!("`{least}` of {name} is above its `{most}`"));
            }
        }
        let properties = table.get("properties").and_then(Json::as_object);
        if table.get("additionalProperties") == Some(&Json::Bool(false))
            && table.get("patternProperties").is_none()
        {
            let required =
                table.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
            for wanted in required {
                if !properties.is_some_and(|known| known.contains_key(wanted)) {
                    return Some(format!("{name} requires `{wanted}`, which its closed `properties` lack"));
                }
            }
        }
        left.extend(properties.into_iter().flatten().map(|(key, value)| (format!("`{key}`"), value)));
        for key in ["items", "additionalProperties", "not", "contains"] {
            left.extend(table.get(key).map(|value| (format!("`{key}` of {name}"), value)));
        }
        for key in ["anyOf", "oneOf", "allOf", "prefixItems"] {
            let list = table.get(key).and_then(Json::as_array).into_iter().flatten();
            left.extend(list.map(|value| (format!("`{key}` of {name}"), value)));
        }
    }
    None
}

fn number(value: Option<&Json>) -> Option<f64> {
    value.and_then(Json::as_f64)
}
