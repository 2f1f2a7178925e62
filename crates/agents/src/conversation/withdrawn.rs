//! Stands in for a tool that was withdrawn between the model's message and the call.

use claw_tools::error::ToolError;
use claw_tools::output::ToolOutput;
use claw_tools::tool::{Effect, Tool, ToolContext};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

/// A tool that is no longer there.
#[derive(Debug)]
pub(super) struct Withdrawn(pub(super) &'static str);

impl Withdrawn {
    fn gone(&self) -> ToolError {
        ToolError::Refused(format!("the tool `{}` was withdrawn meanwhile; go on without it", self.0))
    }
}

impl Tool for Withdrawn {
    fn name(&self) -> &'static str {
        self.0
    }

    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    fn description(&self) -> String {
        String::new()
    }

    fn input_schema(&self) -> Value {
        json!({"type": "object"})
    }

    fn effect(&self, _ctx: &ToolContext, _input: &Value) -> Result<Effect, ToolError> {
        Err(self.gone())
    }

    fn call<'a>(
        &'a self,
        _ctx: &'a ToolContext,
        _judged: &'a Effect,
        _input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(std::future::ready(Err(self.gone())))
    }
}
