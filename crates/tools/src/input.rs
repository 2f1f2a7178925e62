//! Inputs of tools: parsed once at the door, and the schema that the model sees, small and without references.

use crate::error::ToolError;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Parses an input; an error names the path of the wrong field.
pub(crate) fn parse<T: DeserializeOwned>(tool: &'static str, input: &Value) -> Result<T, ToolError> {
    serde_path_to_error::deserialize(input).map_err(|error| ToolError::Input {
        tool,
        path: error.path().to_string(),
        message: error.into_inner().to_string(),
    })
}

/// The schema of an input type.
pub(crate) fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    slim(&mut schema, false);
    schema
}

/// Takes out what costs tokens and says nothing. Below `properties`, keys are names of fields and stay.
fn slim(value: &mut Value, names: bool) {
    match value {
        Value::Object(map) => {
            if !names {
                for key in ["title", "format", "default"] {
                    map.shift_remove(key);
                }
                if map.get("minimum").is_some_and(|least| least == 0) {
                    map.shift_remove("minimum");
                }
                without_null(map);
            }
            for (key, inner) in map {
                slim(inner, !names && key == "properties");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| slim(item, false)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A field that may be left out need not be null as well.
fn without_null(map: &mut serde_json::Map<String, Value>) {
    if let Some(Value::Array(types)) = map.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            map.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = map.get_mut("enum") {
        choices.retain(|choice| !choice.is_null());
    }
    if let Some(Value::Array(options)) = map.get_mut("anyOf") {
        options.retain(|option| option.get("type").is_none_or(|kind| kind != "null"));
        if let [Value::Object(only)] = options.as_slice() {
            let only = only.clone();
            map.shift_remove("anyOf");
            for (key, value) in only {
                map.entry(key).or_insert(value);
            }
        }
    }
}
