//! `bash`: one shell for each call; the working folder is carried on, nothing else is.

use crate::cut;
use crate::error::ToolError;
use crate::input;
use crate::output::ToolOutput;
use crate::process::{End, Finished, Job, Program, SpillTo, run};
use crate::tool::{Effect, Tool, ToolContext};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const NAME: &str = "bash";
/// Characters of output that the model sees.
const MOST: usize = 30_000;
/// Of these, for stderr at most.
const MOST_ERR: usize = 10_000;
/// Bytes kept of each stream: enough for `MOST` characters of four bytes.
const KEEP: usize = 128 * 1024;
/// Bytes of the file with the whole output.
const MOST_SPILLED: u64 = 64 * 1024 * 1024;
const DEFAULT_TIME: u64 = 120_000;
const MOST_TIME: u64 = 600_000;
/// Runs a shell command.
#[derive(Debug)]
pub struct Bash;

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// The command line or script.
    #[serde(alias = "cmd")]
    command: String,
    /// Milliseconds; 120000 if left out, 600000 at most.
    #[serde(default, alias = "timeout_ms", alias = "timeoutMs")]
    timeout: Option<u64>,
    /// What it does, in a few words.
    #[serde(default)]
    #[expect(dead_code, reason = "shown by whoever reads the call, not used here")]
    description: Option<String>,
    /// Return at once; read on with bash_output.
    #[serde(default, alias = "runInBackground")]
    run_in_background: bool,
}

impl Tool for Bash {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["shell", "run_command"]
    }

    fn description(&self) -> String {
        "Runs a command in bash and gives stdout, stderr and exit code. Each call is a new shell: the working folder \
         carries over, variables do not. No terminal and no input: use flags instead of prompts. Temporary files go to \
         $TMPDIR and are gone after the call. What still runs when the command ends is ended too: start servers and what \
         lasts long with run_in_background. Long output is cut in \
         the middle and kept in a file. To read, edit or search files use read_file, edit_file, glob_search, grep_search."
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
        Box::pin(call(ctx, input))
    }
}

async fn call(ctx: &ToolContext, input: Value) -> Result<ToolOutput, ToolError> {
    let input: Input = input::parse(NAME, &input)?;
    let time = time(input.timeout);
    let folder = ctx.folder.current();
    let mut job = bounded(ctx, Job::shell(input.command, folder.clone(), Arc::clone(&ctx.sandbox)));
    if input.run_in_background {
        return in_background(ctx, job);
    }
    job.time = Some(time);
    job.report_folder = true;
    let done = run(job, &ctx.cancel).await?;
    result(ctx, &done, &folder, time)
}

/// What a command that was waited for gives the model. Its folder is carried on.
pub(super) fn result(
    ctx: &ToolContext,
    done: &Finished,
    folder: &Path,
    time: Duration,
) -> Result<ToolOutput, ToolError> {
    let shown = Shown::of(done);
    match done.end {
        End::Cancelled => Err(ToolError::Cancelled),
        End::TimedOut => {
            let mut parts = notes(done);
            parts.insert(0, shown.output(done));
            parts.retain(|part| !part.is_empty());
            Err(ToolError::TimedOut { after: time, output: parts.join("\n") })
        }
        End::Exited(_) | End::Signalled(_) => {
            let moved = moved_to(folder, done);
            if let Some(folder) = done.folder.clone() {
                ctx.folder.move_to(folder);
            }
            Ok(output(done, &shown, moved))
        }
    }
}

/// How a command is run whose output the model sees.
pub(super) fn bounded(ctx: &ToolContext, mut job: Job) -> Job {
    job.keep = KEEP;
    job.spill = Some(SpillTo { folder: ctx.spill.to_path_buf(), over: MOST as u64, most: MOST_SPILLED });
    job.redactor = Arc::clone(&ctx.redactor);
    job.env = ctx.env.iter().map(|(name, value)| (name.into(), value.into())).collect();
    job
}

/// The time that a call asks for, within bounds.
pub(super) fn time(asked: Option<u64>) -> Duration {
    Duration::from_millis(asked.unwrap_or(DEFAULT_TIME).clamp(1, MOST_TIME))
}

/// Starts it and returns; it ends with the conversation.
fn in_background(ctx: &ToolContext, job: Job) -> Result<ToolOutput, ToolError> {
    let command = match &job.program {
        Program::Shell(line) => cut::head(line, 200),
        Program::Argv(program, _) => program.to_string_lossy().into_owned(),
    };
    let sandbox = job.sandbox.status();
    let id = ctx.state.shells().start(&command, job, ctx.state.over())?;
    ctx.state.load(["bash_output", "kill_shell"]);
    let data = json!({
        "stdout": "",
        "stderr": "",
        "exitCode": null,
        "interrupted": false,
        "backgroundTaskId": id,
        "returnCodeInterpretation": null,
        "persistedOutputPath": null,
        "persistedOutputSize": null,
        "sandboxStatus": sandbox,
    });
    let text =
        format!("started in the background as {id}; bash_output reads what it says, kill_shell ends it");
    Ok(ToolOutput { data, ..ToolOutput::text(text) })
}

/// Where the shell has gone, when that is news.
fn moved_to<'d>(from: &Path, done: &'d Finished) -> Option<&'d Path> {
    done.folder.as_deref().filter(|folder| *folder != from)
}

struct Shown {
    out: String,
    err: String,
}

impl Shown {
    fn of(done: &Finished) -> Self {
        let err = done.err.text(MOST_ERR);
        let room = MOST - err.chars().count().min(MOST_ERR);
        Self { out: done.out.text(room), err }
    }

    /// Both streams and where the rest is.
    fn output(&self, done: &Finished) -> String {
        let mut text = self.out.trim_end().to_owned();
        if !self.err.trim().is_empty() {
            let line = if text.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{line}[stderr]\n{}", self.err.trim_end()));
        }
        if let (true, Some(spilled)) = (self.is_cut(done), &done.spilled) {
            let end = if spilled.lost > 0 {
                format!("the first {} of {} bytes of", spilled.bytes, spilled.bytes + spilled.lost)
            } else {
                format!("all {} bytes of", spilled.bytes)
            };
            text.push_str(&format!("\n[{end} the output: {}]", spilled.path.display()));
        }
        text
    }

    fn is_cut(&self, done: &Finished) -> bool {
        let shown = self.out.len() + self.err.len();
        done.out.missing() + done.err.missing() > 0 || done.out.total() + done.err.total() > shown as u64
    }
}

fn output(done: &Finished, shown: &Shown, moved: Option<&Path>) -> ToolOutput {
    let meaning = meaning(done.end);
    let mut parts = vec![shown.output(done)];
    parts.extend(meaning.iter().map(|meaning| format!("[{meaning}]")));
    parts.extend(moved.map(|folder| format!("[working folder is now {}]", folder.display())));
    parts.extend(notes(done));
    parts.retain(|part| !part.is_empty());
    if parts.is_empty() {
        parts.push("[no output]".to_owned());
    }
    let failed = !matches!(done.end, End::Exited(0));
    let spilled = done.spilled.as_ref().filter(|_| shown.is_cut(done));
    ToolOutput {
        text: parts.join("\n"),
        is_error: failed || !done.put_aside.is_empty(),
        data: data(done, shown, meaning.as_deref()),
        images: Vec::new(),
        spilled: spilled.map(|spilled| spilled.path.clone()),
    }
}

/// What claw did after the command.
fn notes(done: &Finished) -> Vec<String> {
    let mut notes = Vec::new();
    if done.left_behind > 0 {
        let many = done.left_behind;
        notes.push(format!("[{many} process(es) that the command left running were ended]"));
    }
    if !done.put_aside.is_empty() {
        let paths: Vec<String> = done.put_aside.iter().map(|path| path.display().to_string()).collect();
        notes.push(format!("[not allowed and taken out of the workspace again: {}]", paths.join(", ")));
    }
    notes
}

fn data(done: &Finished, shown: &Shown, meaning: Option<&str>) -> Value {
    let code = match done.end {
        End::Exited(code) => code,
        End::Signalled(signal) => 128 + signal,
        End::TimedOut | End::Cancelled => -1,
    };
    json!({
        "stdout": shown.out,
        "stderr": shown.err,
        "exitCode": code,
        "interrupted": false,
        "backgroundTaskId": null,
        "returnCodeInterpretation": meaning,
        "persistedOutputPath": done.spilled.as_ref().map(|spilled| spilled.path.display().to_string()),
        "persistedOutputSize": done.spilled.as_ref().map(|spilled| spilled.bytes),
        "sandboxStatus": done.sandbox,
    })
}

/// What an exit says; nothing to say of success.
pub(super) fn meaning(end: End) -> Option<String> {
    match end {
        End::Exited(0) | End::TimedOut | End::Cancelled => None,
        End::Exited(126) => Some("exit code 126: found, but it cannot be executed".to_owned()),
        End::Exited(127) => Some("exit code 127: command not found".to_owned()),
        End::Exited(code @ 129..=192) => Some(format!("exit code {code}: ended by {}", signal(code - 128))),
        End::Exited(code) => Some(format!("exit code {code}")),
        End::Signalled(number) => Some(format!("ended by {}", signal(number))),
    }
}

fn signal(number: i32) -> String {
    let name = match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        6 => "SIGABRT (it aborted)",
        8 => "SIGFPE",
        9 => "SIGKILL (perhaps out of memory)",
        11 => "SIGSEGV (it crashed)",
        13 => "SIGPIPE (its reader had gone)",
        15 => "SIGTERM",
        _ => return format!("signal {number}"),
    };
    cut::plain(name, 60).to_owned()
}

#[cfg(test)]
mod tests;
