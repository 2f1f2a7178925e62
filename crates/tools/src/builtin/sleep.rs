//! `sleep`: waits.

use crate::error::ToolError;
use crate::input;
use crate::output::ToolOutput;
use crate::tool::{Effect, Tool, ToolContext};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;

const NAME: &str = "sleep";
/// Ten minutes, as for a command.
const MOST: u64 = 600_000;

/// Waits.
#[derive(Debug)]
pub struct Sleep;

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// Milliseconds, 600000 at most.
    #[serde(alias = "durationMs", alias = "ms")]
    duration_ms: u64,
}

fn parse(input: &Value) -> Result<Duration, ToolError> {
    let Input { duration_ms } = input::parse(NAME, input)?;
    if duration_ms > MOST {
        let message = format!("{duration_ms} is more than {MOST}");
        return Err(ToolError::Input { tool: NAME, path: "duration_ms".to_owned(), message });
    }
    Ok(Duration::from_millis(duration_ms))
}

impl Tool for Sleep {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["wait"]
    }

    fn description(&self) -> String {
        "Waits so many milliseconds, without a shell. For the end of a background command use bash_output with wait_ms."
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
            let time = parse(&input)?;
            tokio::select! {
                () = tokio::time::sleep(time) => Ok(ToolOutput::text(format!("waited {} ms", time.as_millis()))),
                () = ctx.cancel.cancelled() => Err(ToolError::Cancelled),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Work, call, ok};
    use super::*;
    use serde_json::json;

    #[tokio::test(start_paused = true)]
    async fn it_waits_as_long_as_asked_and_ends_with_a_cancel() {
        let work = Work::new();
        let ctx = work.agent("A");
        let began = tokio::time::Instant::now();
        assert_eq!(ok(&Sleep, &ctx, json!({"duration_ms": 5_000})).await.text, "waited 5000 ms");
        assert_eq!(began.elapsed(), Duration::from_secs(5));
        ctx.cancel.cancel();
        assert!(matches!(call(&Sleep, &ctx, json!({"duration_ms": 5_000})).await, Err(ToolError::Cancelled)));
        assert!(call(&Sleep, &ctx, json!({"duration_ms": 600_001})).await.is_err());
    }
}
