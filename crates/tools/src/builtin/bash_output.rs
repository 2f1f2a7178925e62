//! `bash_output`: what a background command said since the last look.

use super::bash::meaning;
use crate::background::{Look, ShellState};
use crate::cut;
use crate::error::ToolError;
use crate::input;
use crate::output::ToolOutput;
use crate::process::End;
use crate::tool::{Effect, Tool, ToolContext};
use futures_util::future::BoxFuture;
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

const NAME: &str = "bash_output";
/// Characters that the model sees.
const MOST: usize = 30_000;
/// Of these, for stderr at most.
const MOST_ERR: usize = 10_000;
const MOST_WAIT: u64 = 600_000;

/// Reads the output of a background command.
#[derive(Debug)]
pub struct BashOutput;

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// The id that bash gave.
    #[serde(alias = "bash_id", alias = "bashId", alias = "shell_id", alias = "task_id")]
    id: String,
    /// Wait so many milliseconds for its end first; 0 if left out.
    #[serde(default, alias = "waitMs")]
    wait_ms: u64,
    /// Only lines that match this regular expression.
    #[serde(default)]
    filter: Option<String>,
}

impl Tool for BashOutput {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["bash_output_tool"]
    }

    fn description(&self) -> String {
        "Gives what a background command wrote since the last look, and whether it still runs.".to_owned()
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
            let input: Input = input::parse(NAME, &input)?;
            let keep = input.filter.as_deref().map(pattern).transpose()?;
            let shells = ctx.state.shells();
            if input.wait_ms > 0 {
                let most = Duration::from_millis(input.wait_ms.min(MOST_WAIT));
                tokio::select! {
                    waited = shells.wait(&input.id, most) => waited?,
                    () = ctx.cancel.cancelled() => return Err(ToolError::Cancelled),
                }
            }
            let mut look = shells.look(&input.id)?;
            if let Some(keep) = keep {
                look.out = lines(&look.out, &keep);
                look.err = lines(&look.err, &keep);
            }
            Ok(output(&look, &input.id))
        })
    }
}

fn pattern(typed: &str) -> Result<RegexMatcher, ToolError> {
    RegexMatcher::new(typed).map_err(|error| ToolError::Input {
        tool: NAME,
        path: "filter".to_owned(),
        message: error.to_string(),
    })
}

fn lines(text: &str, keep: &RegexMatcher) -> String {
    let fits = |line: &&str| keep.is_match(line.as_bytes()).unwrap_or(false);
    text.lines().filter(fits).collect::<Vec<_>>().join("\n")
}

fn output(look: &Look, id: &str) -> ToolOutput {
    let err = cut::middle(look.err.trim_end(), MOST_ERR);
    let out = cut::middle(look.out.trim_end(), MOST - err.chars().count().min(MOST_ERR));
    let mut parts = vec![out.clone()];
    if !err.is_empty() {
        parts.push(format!("[stderr]\n{err}"));
    }
    if look.lost > 0 {
        parts.push(format!("[{} bytes before that were not read in time and are lost]", look.lost));
    }
    let (state, code) = match &look.state {
        ShellState::Running => ("running".to_owned(), None),
        ShellState::Ended(end @ End::Exited(code)) => {
            (meaning(*end).unwrap_or_else(|| "ended, exit code 0".to_owned()), Some(*code))
        }
        ShellState::Ended(end @ End::Signalled(signal)) => {
            (meaning(*end).unwrap_or_default(), Some(128 + *signal))
        }
        ShellState::Ended(End::Cancelled | End::TimedOut) => ("ended by kill_shell".to_owned(), None),
        ShellState::Failed(why) => (format!("failed: {why}"), None),
    };
    parts.push(format!("[{state}]"));
    if let Some(path) = &look.spilled {
        parts.push(format!("[the whole output: {}]", path.display()));
    }
    parts.retain(|part| !part.is_empty());
    let data = json!({
        "id": id,
        "command": look.command,
        "status": if look.state == ShellState::Running { "running" } else { "ended" },
        "exitCode": code,
        "stdout": out,
        "stderr": err,
    });
    ToolOutput { data, spilled: look.spilled.clone(), ..ToolOutput::text(parts.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Work, ok, refused};
    use super::super::{Bash, KillShell};
    use super::*;

    #[tokio::test]
    async fn a_background_command_is_read_bit_by_bit_and_ended() {
        let work = Work::new();
        let ctx = work.agent("A");
        let line = "echo first; echo oops >&2; while [ ! -e go ]; do sleep 0.05; done; echo second";
        let begun = ok(&Bash, &ctx, json!({"command": line, "run_in_background": true})).await;
        assert_eq!(begun.data["backgroundTaskId"], "bash_1");
        let mut seen = String::new();
        while !(seen.contains("first") && seen.contains("oops")) {
            seen += &ok(&BashOutput, &ctx, json!({"bash_id": "bash_1", "wait_ms": 20})).await.text;
            assert!(seen.contains("[running]"), "{seen}");
        }
        work.put("go", "");
        let last = ok(&BashOutput, &ctx, json!({"id": "bash_1", "wait_ms": 10_000})).await;
        assert_eq!(last.text, "second\n[ended, exit code 0]");
        let begun = ok(&Bash, &ctx, json!({"command": "sleep 300", "run_in_background": true})).await;
        assert!(begun.text.contains("bash_2"));
        assert!(ok(&KillShell, &ctx, json!({"shell_id": "bash_2"})).await.text.contains("ended"));
        assert!(ok(&BashOutput, &ctx, json!({"id": "bash_2"})).await.text.contains("kill_shell"));
        assert!(refused(&BashOutput, &ctx, json!({"id": "bash_7"})).await.contains("bash_1, bash_2"));
    }

    #[tokio::test]
    async fn only_matching_lines_are_shown_where_that_is_asked_for() {
        let work = Work::new();
        let ctx = work.agent("A");
        ok(&Bash, &ctx, json!({"command": "echo a1; echo b; echo a2", "run_in_background": true})).await;
        let seen = ok(&BashOutput, &ctx, json!({"id": "bash_1", "wait_ms": 10_000, "filter": "^a\\d"})).await;
        assert_eq!(seen.text, "a1\na2\n[ended, exit code 0]");
        assert!(refused(&BashOutput, &ctx, json!({"id": "bash_1", "filter": "("})).await.contains("filter"));
    }

    #[tokio::test]
    async fn all_background_commands_end_with_the_conversation() {
        let work = Work::new();
        let ctx = work.agent("A");
        ok(&Bash, &ctx, json!({"command": "sleep 300 & sleep 301; true", "run_in_background": true})).await;
        let state = std::sync::Arc::clone(&ctx.state);
        tokio::time::timeout(Duration::from_secs(5), state.end()).await.unwrap();
        assert!(state.shells().running().is_empty());
    }
}
