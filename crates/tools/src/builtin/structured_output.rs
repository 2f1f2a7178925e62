//! `structured_output`: the answer as data, held to the schema of whoever asked.

use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::tool::{Effect, Tool, ToolContext};
use futures_util::future::BoxFuture;
use jsonschema::Validator;
use serde_json::{Value, json};

const NAME: &str = "structured_output";
/// Violations that are told at once.
const MOST: usize = 20;
/// Characters of one.
const MOST_TEXT: usize = 300;
/// The field round a value that is no object: inputs of tools are objects.
const WRAPPED: &str = "value";

/// A schema that is none.
#[derive(Debug, thiserror::Error)]
#[error("not a JSON Schema: {at}: {message}")]
pub struct BadSchema {
    /// Where in the schema; `.` for the root.
    pub at: String,
    /// What is wrong.
    pub message: String,
}

/// Takes the answer of an agent as data.
#[derive(Debug)]
pub struct StructuredOutput {
    schema: Value,
    validator: Validator,
    wrapped: bool,
}

impl StructuredOutput {
    /// For one schema.
    pub fn new(schema: Value) -> Result<Self, BadSchema> {
        let validator = jsonschema::validator_for(&schema).map_err(|error| BadSchema {
            at: place(&error.instance_path().to_string()),
            message: error.to_string(),
        })?;
        let wrapped = schema.get("type").is_none_or(|kind| kind != "object");
        Ok(Self { schema, validator, wrapped })
    }

    /// Holds a value to the schema; the error names each violation with its path.
    pub fn check(&self, value: &Value) -> Result<(), ToolError> {
        let wrong: Vec<String> = self
            .validator
            .iter_errors(value)
            .take(MOST)
            .map(|error| {
                let message = error.to_string();
                format!(
                    "{}: {}",
                    place(&error.instance_path().to_string()),
                    crate::cut::head(&message, MOST_TEXT)
                )
            })
            .collect();
        if wrong.is_empty() {
            return Ok(());
        }
        let text = format!(
            "the value does not fit the schema; call it again with all of it right\n{}",
            wrong.join("\n")
        );
        Err(ToolError::Refused(text))
    }

    /// The value within an input: what is wrapped is unwrapped, and a model that forgot to wrap is understood.
    fn value_of(&self, input: Value) -> Value {
        match input {
            Value::Object(mut map) if self.wrapped && map.len() == 1 && map.contains_key(WRAPPED) => {
                map.shift_remove(WRAPPED).unwrap_or_default()
            }
            other => other,
        }
    }
}

/// `/a/0` as `.a.0`.
fn place(pointer: &str) -> String {
    if pointer.is_empty() { ".".to_owned() } else { pointer.replace('/', ".") }
}

impl Tool for StructuredOutput {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    fn description(&self) -> String {
        "Gives the final answer as data of this schema. Call it once, at the end, with the whole answer."
            .to_owned()
    }

    fn input_schema(&self) -> Value {
        if self.wrapped {
            json!({"type": "object", "properties": {WRAPPED: self.schema}, "required": [WRAPPED]})
        } else {
            self.schema.clone()
        }
    }

    fn effect(&self, _ctx: &ToolContext, _input: &Value) -> Result<Effect, ToolError> {
        Ok(Effect::default())
    }

    fn call<'a>(
        &'a self,
        _ctx: &'a ToolContext,
        _judged: &'a Effect,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let data = self.value_of(input);
            self.check(&data)?;
            Ok(ToolOutput { text: "accepted".to_owned(), data, ..ToolOutput::default() })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_violation_is_told_with_its_path() {
        let schema = json!({"type": "object", "required": ["a", "b"], "properties": {
            "a": {"type": "array", "items": {"type": "integer"}}, "b": {"enum": ["x"]}}});
        let tool = StructuredOutput::new(schema).unwrap();
        tool.check(&json!({"a": [1], "b": "x"})).unwrap();
        let text = tool.check(&json!({"a": [1, "2"], "b": "y"})).unwrap_err().to_string();
        assert!(text.contains(".a.1: ") && text.contains(".b: "), "{text}");
        assert!(tool.check(&json!({})).unwrap_err().to_string().contains("\"a\" is a required property"));
    }

    #[test]
    fn a_value_that_is_no_object_is_wrapped() {
        let tool = StructuredOutput::new(json!({"type": "array", "items": {"type": "string"}})).unwrap();
        assert_eq!(tool.input_schema()["required"][0], "value");
        assert_eq!(tool.value_of(json!({"value": ["a"]})), json!(["a"]));
    }

    #[test]
    fn a_schema_that_is_none_is_refused_at_the_door() {
        assert!(StructuredOutput::new(json!({"type": "strin"})).is_err());
    }
}
