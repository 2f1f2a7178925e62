//! `repl`: code in an interpreter that keeps its state through one conversation.

mod session;

pub use session::Repls;

use super::bash::time;
use crate::error::ToolError;
use crate::input;
use crate::output::ToolOutput;
use crate::process::on_path;
use crate::tool::{Effect, Tool, ToolContext};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use session::{Evaluated, How};
use std::path::PathBuf;
use std::time::Duration;

const NAME: &str = "repl";
/// Characters that the model sees.
const MOST: usize = 30_000;
/// Of these, for stderr at most.
const MOST_ERR: usize = 10_000;

/// Evaluates code.
#[derive(Debug)]
pub struct Repl;

/// An interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Language {
    #[serde(alias = "python3", alias = "py")]
    Python,
    #[serde(alias = "javascript", alias = "js", alias = "nodejs")]
    Node,
    #[serde(alias = "bash", alias = "sh")]
    Shell,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// What is evaluated; the value of the last expression is shown.
    code: String,
    /// The interpreter.
    language: Language,
    /// Milliseconds; 120000 if left out, 600000 at most.
    #[serde(default, alias = "timeout", alias = "timeoutMs")]
    timeout_ms: Option<u64>,
}

impl Language {
    fn word(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Node => "node",
            Self::Shell => "shell",
        }
    }

    fn program(self) -> &'static str {
        match self {
            Self::Python => "python3",
            Self::Node => "node",
            Self::Shell => "bash",
        }
    }

    /// What is started; the driver puts `mark` behind what each evaluation writes.
    fn command(self, mark: &str) -> Result<(PathBuf, Vec<String>), ToolError> {
        let program = on_path(self.program()).ok_or_else(|| {
            ToolError::Refused(format!(
                "{} is not installed here: there is no `{}` on PATH",
                self.word(),
                self.program()
            ))
        })?;
        let arguments: &[&str] = match self {
            Self::Python => &["-u", "-c", include_str!("repl/driver.py")],
            Self::Node => &["-e", include_str!("repl/driver.js"), "--"],
            Self::Shell => &["--noprofile", "--norc", "-c", include_str!("repl/driver.sh"), "repl"],
        };
        Ok((program, arguments.iter().copied().chain([mark]).map(str::to_owned).collect()))
    }

    /// Code as its driver reads it.
    fn framed(self, code: &str) -> Vec<u8> {
        match self {
            Self::Python | Self::Node => format!("{}\n{code}", code.len()).into_bytes(),
            // A shell knows no zero bytes.
            Self::Shell => format!("{}\0", code.replace('\0', "")).into_bytes(),
        }
    }

    /// The same as a command line, for who judges those.
    fn line(self, code: &str) -> String {
        let quoted = || format!("'{}'", code.replace('\'', r"'\''"));
        match self {
            Self::Python => format!("python3 -c {}", quoted()),
            Self::Node => format!("node -e {}", quoted()),
            Self::Shell => code.to_owned(),
        }
    }
}

impl Tool for Repl {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    fn description(&self) -> String {
        "Evaluates code in Python, Node or a shell that goes on: variables, imports and functions stay until the end of \
         the conversation. Output and the value of the last expression are shown. There is no input to read."
            .to_owned()
    }

    fn input_schema(&self) -> Value {
        input::schema::<Input>()
    }

    fn effect(&self, _ctx: &ToolContext, input: &Value) -> Result<Effect, ToolError> {
        let input: Input = input::parse(NAME, input)?;
        Ok(Effect { executes: Some(input.language.line(&input.code)), ..Effect::default() })
    }

    fn call<'a>(
        &'a self,
        ctx: &'a ToolContext,
        _judged: &'a Effect,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let input: Input = input::parse(NAME, &input)?;
            let time = time(input.timeout_ms);
            let evaluated = ctx.state.repls().evaluate(ctx, input.language, (&input.code, time)).await?;
            output(&evaluated, input.language, time)
        })
    }
}

fn output(done: &Evaluated, language: Language, time: Duration) -> Result<ToolOutput, ToolError> {
    let err = done.err.text(MOST_ERR);
    let out = done.out.text(MOST - err.chars().count().min(MOST_ERR));
    let mut parts = vec![out.trim_end().to_owned()];
    if !err.trim().is_empty() {
        parts.push(format!("[stderr]\n{}", err.trim_end()));
    }
    if done.is_anew {
        parts.push("[the interpreter was started anew: its earlier state is gone]".to_owned());
    }
    let (word, is_error) = match &done.how {
        How::Cancelled => return Err(ToolError::Cancelled),
        How::TimedOut => {
            parts.push("[the interpreter was ended: its state is gone]".to_owned());
            parts.retain(|part| !part.is_empty());
            return Err(ToolError::TimedOut { after: time, output: parts.join("\n") });
        }
        How::Gone => {
            parts.push("[the interpreter ended; the next call starts a new one]".to_owned());
            ("gone", true)
        }
        How::Said(word) => match word.as_str() {
            "ok" | "0" => ("ok", false),
            "error" => ("error", true),
            code => {
                parts.push(format!("[exit code {code}]"));
                ("error", true)
            }
        },
    };
    parts.retain(|part| !part.is_empty());
    if parts.is_empty() {
        parts.push("[no output]".to_owned());
    }
    let data = json!({"language": language.word(), "status": word, "stdout": out, "stderr": err});
    Ok(ToolOutput { is_error, data, ..ToolOutput::text(parts.join("\n")) })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{SECRET, Work, call, ok};
    use super::*;

    fn code(language: &str, code: &str) -> Value {
        json!({"language": language, "code": code})
    }

    #[tokio::test]
    async fn state_is_kept_from_call_to_call() {
        let work = Work::new();
        let ctx = work.agent("A");
        let cases = [
            ("python", "x = 41\nprint('set')", "set", "x + 1", "42"),
            ("node", "const x = 41; console.log('set')", "set", "x + 1", "42"),
            ("shell", "x=41; cd /; echo set", "set", "echo $((x + 1)) $PWD", "42 /"),
        ];
        for (language, first, said, second, value) in cases {
            if on_path(if language == "node" { "node" } else { "bash" }).is_none() {
                continue;
            }
            let done = ok(&Repl, &ctx, code(language, first)).await;
            assert!(done.text.starts_with(said), "{language}: {}", done.text);
            assert_eq!(ok(&Repl, &ctx, code(language, second)).await.text, value, "{language}");
        }
        ctx.state.end().await;
    }

    #[tokio::test]
    async fn an_error_is_told_and_the_state_stays() {
        let work = Work::new();
        let ctx = work.agent("A");
        ok(&Repl, &ctx, code("python", "x = 1")).await;
        let bad = ok(&Repl, &ctx, code("python", "1 / 0")).await;
        assert!(bad.is_error && bad.text.contains("ZeroDivisionError"), "{}", bad.text);
        assert_eq!(ok(&Repl, &ctx, code("python", "input() if False else x")).await.text, "1");
        let read = ok(&Repl, &ctx, code("python", "import sys; sys.stdin.read()")).await;
        assert_eq!(read.text, "''", "there is no input");
        let bad = ok(&Repl, &ctx, code("shell", "false")).await;
        assert!(bad.is_error && bad.text.contains("exit code 1"), "{}", bad.text);
        ctx.state.end().await;
    }

    #[tokio::test]
    async fn a_time_limit_ends_the_interpreter_and_the_next_call_starts_anew() {
        let work = Work::new();
        let ctx = work.agent("A");
        let slow = json!({"language": "shell", "code": "x=1; echo before; sleep 300", "timeout_ms": 300});
        let error = call(&Repl, &ctx, slow).await.unwrap_err().to_string();
        assert!(error.contains("timed out") && error.contains("before") && error.contains("gone"), "{error}");
        assert_eq!(ok(&Repl, &ctx, code("shell", "echo [$x]")).await.text, "[]");
        let ended = ok(&Repl, &ctx, code("shell", "echo bye; exit 4")).await;
        assert!(ended.is_error && ended.text.contains("bye"), "{}", ended.text);
        assert_eq!(ok(&Repl, &ctx, code("shell", "echo again")).await.text, "again");
        ctx.state.end().await;
    }

    #[tokio::test]
    async fn output_is_bounded_and_holds_no_secret() {
        let work = Work::new();
        let ctx = work.agent("A");
        let flood = format!("echo {SECRET}; head -c 5000000 /dev/zero | tr '\\0' a; echo end");
        let done = ok(&Repl, &ctx, code("shell", &flood)).await;
        assert!(done.text.len() < 40_000 && done.text.contains("bytes cut") && done.text.ends_with("end"));
        assert!(done.text.contains("[redacted]") && !done.text.contains("canary"));
        ctx.state.end().await;
    }

    #[tokio::test]
    async fn commands_of_the_shell_are_judged_as_they_are_and_others_as_one_command() {
        let ctx = Work::new().agent("A");
        let effect = |language, text| Repl.effect(&ctx, &code(language, text)).unwrap().executes.unwrap();
        assert_eq!(effect("shell", "rm -rf x"), "rm -rf x");
        assert_eq!(effect("python", "print('a')"), r"python3 -c 'print('\''a'\'')'");
        assert!(Repl.effect(&ctx, &code("ruby", "x")).is_err());
    }
}
