//! `enter_plan_mode`: from here on nothing but reading, until the user has accepted a plan.

use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::tool::{Effect, Tool, ToolContext};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

/// Starts the plan mode.
#[derive(Debug)]
pub struct EnterPlanMode;

impl Tool for EnterPlanMode {
    fn name(&self) -> &'static str {
        "enter_plan_mode"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    fn description(&self) -> String {
        "For work whose way should be agreed on first: from now on you only read and search. Ends with exit_plan_mode, \
         once the user has accepted your plan."
            .to_owned()
    }

    fn input_schema(&self) -> Value {
        json!({"type": "object", "properties": {}})
    }

    fn effect(&self, _ctx: &ToolContext, _input: &Value) -> Result<Effect, ToolError> {
        Ok(Effect::default())
    }

    fn call<'a>(
        &'a self,
        ctx: &'a ToolContext,
        _judged: &'a Effect,
        _input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            if ctx.ports.person.is_none() {
                return Err(ToolError::Refused("nobody is there to accept a plan; go on without".to_owned()));
            }
            ctx.state.set_planning(true);
            ctx.state.load(["exit_plan_mode"]);
            let text = "plan mode: read and search only, then show the plan with exit_plan_mode";
            Ok(ToolOutput { data: json!({"planMode": true}), ..ToolOutput::text(text) })
        })
    }
}
