//! A structured answer: the tool that takes it, what a wrong one is told. Pure.

use claw_providers::request::ToolSpec;
use claw_tools::builtin::{BadSchema, StructuredOutput};
use claw_tools::registry::key;
use claw_tools::tool::Tool;
use serde_json::Value;
use std::sync::Arc;

/// The tool's name.
pub(crate) const TOOL: &str = "structured_output";
/// Wrong answers after which the attempt fails.
pub(crate) const MOST_WRONG: u32 = 3;
/// The field in which the tool takes a value that is no object.
const WRAPPED: &str = "value";

/// A schema that compiled.
#[derive(Debug)]
pub(crate) struct AnswerSchema {
    schema: Arc<Value>,
    tool: StructuredOutput,
}

impl AnswerSchema {
    pub(crate) fn new(schema: Arc<Value>) -> Result<Self, BadSchema> {
        let tool = StructuredOutput::new((*schema).clone())?;
        Ok(Self { schema, tool })
    }

    pub(crate) fn schema(&self) -> &Arc<Value> {
        &self.schema
    }

    /// The tool as the model sees it.
    pub(crate) fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: TOOL.to_owned(),
            description: self.tool.description(),
            input_schema: self.tool.input_schema(),
        }
    }

    /// The answer within a call's input. Errors: what is wrong with it, for the model.
    pub(crate) fn answer(&self, input: &Value) -> Result<Value, Box<claw_tools::error::ToolError>> {
        let is_object = self.schema.get("type").is_some_and(|kind| kind == "object");
        let value = match input.as_object() {
            Some(map) if !is_object && map.len() == 1 => map.get(WRAPPED).unwrap_or(input),
            Some(_) | None => input,
        };
        self.tool.check(value).map(|()| value.clone()).map_err(Box::new)
    }

    /// A text that is the answer as JSON, bare or in one fence.
    pub(crate) fn parse(text: &str) -> Result<Value, serde_json::Error> {
        let mut body = text.trim();
        if let Some(fenced) = body.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) {
            body = fenced.split_once('\n').map_or("", |(_, inner)| inner);
        }
        serde_json::from_str(body)
    }
}

/// Whether a name as the model wrote it means the tool.
pub(crate) fn is_answer_tool(name: &str) -> bool {
    key(name) == key(TOOL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_wrong_answer_is_told_where_it_is_wrong() {
        let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
        let schema = AnswerSchema::new(Arc::new(schema)).unwrap();
        assert_eq!(schema.answer(&json!({"n": 1})).unwrap(), json!({"n": 1}));
        let fault = schema.answer(&json!({"n": "x"})).unwrap_err().to_string();
        assert!(fault.contains(".n"), "{fault}");
        assert!(AnswerSchema::new(Arc::new(json!({"type": 7}))).is_err());
    }

    #[test]
    fn an_answer_that_is_no_object_comes_wrapped() {
        let schema = AnswerSchema::new(Arc::new(json!({}))).unwrap();
        assert_eq!(schema.answer(&json!({"value": [1]})).unwrap(), json!([1]));
        assert_eq!(schema.answer(&json!({"a": 1})).unwrap(), json!({"a": 1}));
    }

    #[test]
    fn a_fenced_document_is_parsed() {
        assert_eq!(AnswerSchema::parse("```json\n{\"a\":1}\n```\n").unwrap(), json!({"a": 1}));
        assert_eq!(AnswerSchema::parse(" {\"a\":1} ").unwrap(), json!({"a": 1}));
        assert!(AnswerSchema::parse("The answer is {}").is_err());
    }
}
