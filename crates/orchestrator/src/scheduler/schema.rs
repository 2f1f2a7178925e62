//! An output that a file promises a shape for, and that no model was held to: of commands and sets.

use crate::plan::model::OutputSpec;
use serde_json::Value;

/// Violations that are named.
const NAMED: usize = 5;

/// The value is not what `output` says.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotAsPromised {
    /// Against the schema.
    #[error("the output does not satisfy its schema: {0}")]
    Violations(String),
    /// The schema itself: the plan has checked it, so this is a fault of claw.
    #[error("the output schema cannot be used: {0}")]
    Schema(#[from] Box<jsonschema::ValidationError<'static>>),
}

/// Checks a value against `output`.
pub(crate) fn check(output: &OutputSpec, value: &Value) -> Result<(), NotAsPromised> {
    let OutputSpec::Schema(schema) = output else { return Ok(()) };
    let validator = jsonschema::validator_for(schema).map_err(Box::new)?;
    let faults: Vec<String> = validator
        .iter_errors(value)
        .take(NAMED)
        .map(|error| match error.instance_path().to_string() {
            path if path.is_empty() => error.to_string(),
            path => format!("{path}: {error}"),
        })
        .collect();
    if faults.is_empty() { Ok(()) } else { Err(NotAsPromised::Violations(faults.join("; "))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    #[test]
    fn a_value_is_held_to_the_schema_and_told_where_it_fails() {
        let schema = json!({"type": "object", "required": ["x"], "properties": {"y": {"type": "integer"}}});
        let output = OutputSpec::Schema(Arc::new(schema));
        assert!(check(&output, &json!({"x": 1})).is_ok());
        let error = check(&output, &json!({"y": "a"})).unwrap_err().to_string();
        assert!(error.contains("/y: ") && error.contains("\"x\""), "{error}");
        assert!(check(&OutputSpec::Text, &json!(1)).is_ok());
    }
}
