//! `task_get`: shows one task whole.

use super::task_words::{id, line, list, refused};
use crate::error::ToolError;
use crate::input;
use crate::output::ToolOutput;
use crate::tool::{Effect, Tool, ToolContext};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

const NAME: &str = "task_get";

/// Shows one task whole.
#[derive(Debug)]
pub struct TaskGet;

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// Which task.
    #[serde(alias = "taskId", alias = "task_id", deserialize_with = "id")]
    id: u32,
}

impl Tool for TaskGet {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    fn description(&self) -> String {
        "Shows one task of the session with its description.".to_owned()
    }

    fn input_schema(&self) -> Value {
        input::schema::<Input>()
    }

    fn effect(&self, _ctx: &ToolContext, input: &Value) -> Result<Effect, ToolError> {
        input::parse::<Input>(NAME, input).map(|_| Effect::default())
    }

    fn call<'a>(
        &'a self,
        ctx: &'a ToolContext,
        _judged: &'a Effect,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let Input { id } = input::parse(NAME, &input)?;
            let list = list(ctx)?;
            let task = list.get(id).map_err(|error| refused(&error))?;
            let text = format!("{}\n{}", line(&list, &task), task.description);
            Ok(ToolOutput { data: json!({"task": task}), ..ToolOutput::text(text.trim_end()) })
        })
    }
}
