//! `powershell`: as `bash`, where `pwsh` is installed.

use super::bash::{bounded, result, time};
use crate::error::ToolError;
use crate::input;
use crate::output::ToolOutput;
use crate::process::{Job, on_path, run};
use crate::tool::{Effect, Tool, ToolContext};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

const NAME: &str = "powershell";
const PROGRAM: &str = "pwsh";

/// Runs a PowerShell command.
#[derive(Debug)]
pub struct PowerShell {
    program: Option<PathBuf>,
}

impl PowerShell {
    /// As installed here, or with nothing to run.
    pub fn here() -> Self {
        Self { program: on_path(PROGRAM) }
    }

    /// Whether it can be run here.
    pub fn is_there(&self) -> bool {
        self.program.is_some()
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// The command or script.
    command: String,
    /// Milliseconds; 120000 if left out, 600000 at most.
    #[serde(default, alias = "timeout_ms", alias = "timeoutMs")]
    timeout: Option<u64>,
}

impl Tool for PowerShell {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["pwsh"]
    }

    fn description(&self) -> String {
        "Runs a command in PowerShell, as bash does in bash. The working folder is the agent's; nothing carries over."
            .to_owned()
    }

    fn input_schema(&self) -> Value {
        input::schema::<Input>()
    }

    fn effect(&self, _ctx: &ToolContext, input: &Value) -> Result<Effect, ToolError> {
        let input: Input = input::parse(NAME, input)?;
        Ok(Effect { executes: Some(input.command), ..Effect::default() })
    }

    fn call<'a>(
        &'a self,
        ctx: &'a ToolContext,
        _judged: &'a Effect,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let input: Input = input::parse(NAME, &input)?;
            let program = self.program.as_ref().ok_or_else(|| {
                ToolError::Refused(
                    "PowerShell is not installed here (no `pwsh` on PATH); use bash".to_owned(),
                )
            })?;
            let (folder, time) = (ctx.folder.current(), time(input.timeout));
            let fixed = ["-NoLogo", "-NoProfile", "-NonInteractive", "-Command"].map(Into::into);
            let arguments = fixed.into_iter().chain([input.command.into()]);
            let job = Job::argv(program, arguments, folder.clone(), Arc::clone(&ctx.sandbox));
            let mut job = bounded(ctx, job);
            job.time = Some(time);
            let done = run(job, &ctx.cancel).await?;
            result(ctx, &done, &folder, time)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Work, ok, refused};
    use super::*;
    use serde_json::json;
    use std::os::unix::fs::PermissionsExt;

    #[tokio::test]
    async fn it_runs_what_is_installed_and_says_when_nothing_is() {
        let work = Work::new();
        let program = work.put("pwsh", "#!/bin/sh\nprintf '%s|' \"$@\"; exit 3\n");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let ctx = work.agent("A");
        let tool = PowerShell { program: Some(program) };
        let done = ok(&tool, &ctx, json!({"command": "Get-Item 'a b'"})).await;
        assert!(
            done.is_error && done.text.contains("-NonInteractive|-Command|Get-Item 'a b'|"),
            "{}",
            done.text
        );
        assert!(done.text.contains("exit code 3"), "{}", done.text);
        let text = refused(&PowerShell { program: None }, &ctx, json!({"command": "x"})).await;
        assert!(text.contains("pwsh"), "{text}");
    }
}
