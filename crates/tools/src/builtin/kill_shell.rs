//! `kill_shell`: ends a background command.

use crate::error::ToolError;
use crate::input;
use crate::output::ToolOutput;
use crate::tool::{Effect, Tool, ToolContext};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

const NAME: &str = "kill_shell";

/// Ends a background command.
#[derive(Debug)]
pub struct KillShell;

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// The id that bash gave.
    #[serde(alias = "shell_id", alias = "shellId", alias = "bash_id", alias = "task_id")]
    id: String,
}

impl Tool for KillShell {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["kill_bash"]
    }

    fn description(&self) -> String {
        "Ends a background command and all that it started.".to_owned()
    }

    fn input_schema(&self) -> Value {
        input::schema::<Input>()
    }

    /// It ends what this conversation started: nothing of the world outside changes.
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
            let ran = ctx.state.shells().kill(&id).await?;
            let text = if ran { format!("{id} was ended") } else { format!("{id} had ended already") };
            Ok(ToolOutput { data: json!({"id": id, "wasRunning": ran}), ..ToolOutput::text(text) })
        })
    }
}
