//! `task_list`: shows all tasks of the session.

use super::task_words::{line, list};
use crate::error::ToolError;
use crate::input;
use crate::output::ToolOutput;
use crate::tool::{Effect, Tool, ToolContext};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

const NAME: &str = "task_list";

/// Shows all tasks of the session.
#[derive(Debug)]
pub struct TaskListTool;

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {}

impl Tool for TaskListTool {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    fn description(&self) -> String {
        "Shows all tasks of this session, one a line.".to_owned()
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
            let Input {} = input::parse(NAME, &input)?;
            let list = list(ctx)?;
            let all = list.all();
            let lines: Vec<String> = all.iter().map(|task| line(&list, task)).collect();
            let text = if lines.is_empty() { "no tasks".to_owned() } else { lines.join("\n") };
            Ok(ToolOutput { data: json!({"tasks": all}), ..ToolOutput::text(text) })
        })
    }
}
