//! `exit_plan_mode`: shows the plan to the user; accepted, the work begins.

use crate::cut;
use crate::error::ToolError;
use crate::input;
use crate::output::ToolOutput;
use crate::ports::PlanReply;
use crate::tool::{Effect, Tool, ToolContext};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

const NAME: &str = "exit_plan_mode";
/// Characters of a plan.
const MOST: usize = 40_000;

/// The result that ends the plan mode; for conversations that go on.
pub const PLAN_ACCEPTED: &str = "the user accepted the plan: carry it out";

/// Ends the plan mode, if the user wants so.
#[derive(Debug)]
pub struct ExitPlanMode;

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// The whole plan, in Markdown.
    plan: String,
}

fn parse(input: &Value) -> Result<Input, ToolError> {
    let input: Input = input::parse(NAME, input)?;
    if input.plan.trim().is_empty() {
        let message = "must not be blank".to_owned();
        return Err(ToolError::Input { tool: NAME, path: "plan".to_owned(), message });
    }
    Ok(input)
}

impl Tool for ExitPlanMode {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    fn description(&self) -> String {
        "Shows your plan to the user, who accepts it or says what is wrong with it. Only in plan mode."
            .to_owned()
    }

    fn input_schema(&self) -> Value {
        input::schema::<Input>()
    }

    fn effect(&self, _ctx: &ToolContext, input: &Value) -> Result<Effect, ToolError> {
        parse(input).map(|_| Effect::default())
    }

    fn call<'a>(
        &'a self,
        ctx: &'a ToolContext,
        _judged: &'a Effect,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let Input { plan } = parse(&input)?;
            if !ctx.state.is_planning() {
                return Err(ToolError::Refused("you are not in plan mode: go on with the work".to_owned()));
            }
            let nobody = || ToolError::Refused("nobody is there to accept a plan".to_owned());
            let person = ctx.ports.person.as_ref().ok_or_else(nobody)?;
            let plan = cut::head(&ctx.redactor.apply(&plan), MOST);
            let reply = tokio::select! {
                reply = person.judge_plan(&ctx.agent, &plan) => reply,
                () = ctx.cancel.cancelled() => return Err(ToolError::Cancelled),
            };
            let (accepted, text) = match reply {
                PlanReply::Accepted => {
                    ctx.state.set_planning(false);
                    (true, PLAN_ACCEPTED.to_owned())
                }
                PlanReply::Refused(Some(words)) => {
                    (false, format!("the user did not accept the plan: {words}"))
                }
                PlanReply::Refused(None) => {
                    (false, "the user did not accept the plan; still plan mode".to_owned())
                }
            };
            Ok(ToolOutput { data: json!({"accepted": accepted}), ..ToolOutput::text(text) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::EnterPlanMode;
    use super::super::testing::{Scripted, Work, ok, refused};
    use super::*;

    #[tokio::test]
    async fn plan_mode_lasts_until_the_user_accepts() {
        let work = Work::new();
        let mut ctx = work.agent("A");
        assert!(refused(&EnterPlanMode, &ctx, json!({})).await.contains("nobody"));
        let person = Scripted::judging([PlanReply::Refused(Some("too big".into())), PlanReply::Accepted]);
        ctx.ports = person.ports();
        let plan = json!({"plan": "1. do it"});
        assert!(refused(&ExitPlanMode, &ctx, plan.clone()).await.contains("not in plan mode"));
        ok(&EnterPlanMode, &ctx, json!({})).await;
        assert!(ctx.state.is_planning());
        assert!(ok(&ExitPlanMode, &ctx, plan.clone()).await.text.contains("too big"));
        assert!(ctx.state.is_planning());
        assert!(ok(&ExitPlanMode, &ctx, plan).await.text.contains("carry it out"));
        assert!(!ctx.state.is_planning());
    }
}
