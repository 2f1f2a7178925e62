//! One attempt of a command: run in the sandbox of the bash tool, its output read as the file says.

use super::agent_step::Report;
use super::hands::Hands;
use super::picture::Picture;
use super::place::Place;
use crate::plan::model::{CommandOutput, CommandWork, Node, Work};
use crate::scheduler::schema;
use crate::scheduler::{Failure, Launch, Outcome, OutcomeEnd, PreparedCommand, PreparedLine};
use claw_agents::outcome::FailureClass;
use claw_agents::permission::shell::quoted;
use claw_agents::permission::{Permission, Reach, holds_back_command};
use claw_kernel::cancel::CancelToken;
use claw_kernel::digest::Digest;
use claw_kernel::durable::{self, Mode, Sync};
use claw_tools::process::{self, End, Finished, Job};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Bytes of each stream that are kept: above it the output is no longer whole, and that is said.
const KEEP: usize = 8 << 20;
/// Bytes of a stream in an error message.
const IN_MESSAGE: usize = 600;

/// Runs it to its end and reports.
pub(super) async fn run(
    hands: &Arc<Hands>,
    launch: &Launch,
    command: &PreparedCommand,
    token: CancelToken,
    report: Report,
) {
    let node = &hands.plan.nodes[launch.node.at()];
    let Work::Command(work) = &node.work else { return };
    let mut picture = Picture::new(hands, launch, node);
    let place = Place::of(hands, launch, &mut picture).await;
    picture.started(None);
    let end = match place {
        Ok(place) => {
            let end = match execute(hands, launch, command, &place.root, &token).await {
                Ok(finished) => {
                    keep_streams(hands, launch, &finished);
                    tell_put_aside(hands, launch, &finished);
                    end_of(&finished, work, node, hands, launch)
                }
                Err(NotRun::Cancelled) => OutcomeEnd::Cancelled,
                Err(NotRun::Failed(failure)) => OutcomeEnd::Failed(failure),
            };
            let end = super::artifacts::check(launch, &place.root, end, &mut picture).await;
            place.leave(hands, launch, end).await
        }
        Err(failure) => OutcomeEnd::Failed(failure),
    };
    picture.ended(None, &end);
    let (settle, settled) = oneshot::channel();
    // The receiver lives as long as the run.
    let _ = report.send((Outcome { end, usage: None, denials: Vec::new() }, settle));
    if let Ok(settlement) = settled.await {
        picture.settled(&settlement);
    }
}

pub(super) fn tell_put_aside(hands: &Hands, launch: &Launch, finished: &Finished) {
    for path in &finished.put_aside {
        let text = format!("a file that governs claw or git was made and moved away: {}", path.display());
        hands.bus.note(Some(&launch.addr), text);
    }
}

/// `root`: the workspace, or the folder that the step works in.
pub(super) async fn execute(
    hands: &Arc<Hands>,
    launch: &Launch,
    command: &PreparedCommand,
    root: &Path,
    token: &CancelToken,
) -> Result<Finished, NotRun> {
    let broken = |text: String| NotRun::Failed(Failure::new(FailureClass::Tool, text));
    let node = &hands.plan.nodes[launch.node.at()];
    let own = match &node.work {
        Work::Command(work) => work.permission,
        Work::Agent(_) | Work::Set { .. } | Work::Merge(_) | Work::Group(_) | Work::Gate(_) => None,
    };
    let most = hands.options.permission;
    let permission = own.map_or(most, |own| most.intersect(own));
    let policy = hands.agents.sandboxes.policy(permission.reach, root, &hands.agents.protected);
    allowed(permission, policy.status().is_walled())?;
    if let Some(why) = holds_back_command(&line_of(&command.line), &hands.agents.rules, root) {
        let text = format!("{why}; mode in force: {permission}");
        return Err(NotRun::Failed(Failure::new(FailureClass::Denied, text)));
    }
    let folder = root.join(command.cwd.as_deref().unwrap_or("."));
    let inside = |folder: &Path| {
        let real = folder.canonicalize()?;
        Ok::<_, std::io::Error>(real.starts_with(root.canonicalize()?))
    };
    if !inside(&folder).unwrap_or(false) {
        return Err(broken(format!("cwd {} is not a folder below the workspace", folder.display())));
    }
    if !folder.is_dir() {
        return Err(broken(format!("cwd {} is not a folder", folder.display())));
    }
    let mut job = match &command.line {
        PreparedLine::Shell(text) => Job::shell(text, folder, policy),
        PreparedLine::Argv(argv) => {
            let Some((program, arguments)) = argv.split_first() else {
                return Err(broken("the command is empty".to_owned()));
            };
            Job::argv(program, arguments.iter().map(Into::into), folder, policy)
        }
    };
    let env = hands.agents.shared.env().iter().chain(command.env.iter());
    job.env = env.map(|(name, value)| (name.into(), value.into())).collect();
    job.env.extend([
        ("CLAW_RUN_ID".into(), hands.run.id().to_string().into()),
        ("CLAW_STEP".into(), launch.addr.to_string().into()),
        ("CLAW_STEP_ID".into(), launch.key.hex().into()),
    ]);
    job.stdin = command.stdin.clone().map(String::into_bytes);
    job.time = Some(node.timeout);
    job.keep = KEEP;
    job.redactor = Arc::clone(&hands.agents.redactor);
    job.aside = Some(hands.run.node(&launch.addr, launch.attempt).join("aside"));
    process::run(job, token).await.map_err(|error| match error {
        claw_tools::error::ToolError::Cancelled => NotRun::Cancelled,
        other => broken(other.to_string()),
    })
}

fn line_of(line: &PreparedLine) -> String {
    match line {
        PreparedLine::Shell(text) => text.clone(),
        PreparedLine::Argv(argv) => argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
    }
}

/// A command of which no end is known.
pub(super) enum NotRun {
    /// Before it could start.
    Cancelled,
    /// It could not be run.
    Failed(Failure),
}

impl From<Failure> for NotRun {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// In read-only a command runs only behind a wall that holds its writes.
fn allowed(permission: Permission, walled: bool) -> Result<(), Failure> {
    match permission.reach {
        Reach::DangerFullAccess => Ok(()),
        Reach::ReadOnly | Reach::WorkspaceWrite if walled => Ok(()),
        Reach::ReadOnly | Reach::WorkspaceWrite => Err(Failure::new(
            FailureClass::Denied,
            "denied: the mode in force needs a sandbox for commands and there is none here; \
             `--permission-mode danger-full-access` would run it without one",
        )),
    }
}

fn keep_streams(hands: &Hands, launch: &Launch, finished: &Finished) {
    let streams = [
        (hands.run.stdout(&launch.addr, launch.attempt), &finished.out),
        (hands.run.stderr(&launch.addr, launch.attempt), &finished.err),
    ];
    for (path, kept) in streams {
        if kept.total() == 0 {
            continue;
        }
        // Text leaves its secrets behind; other bytes are kept as they are.
        let bytes = match String::from_utf8(kept.bytes()) {
            Ok(text) => hands.agents.redactor.apply(&text).into_owned().into_bytes(),
            Err(other) => other.into_bytes(),
        };
        if let Err(error) = durable::replace(&path, &bytes, Mode::Private, Sync::No) {
            hands.bus.note(Some(&launch.addr), format!("cannot write {}: {error}", path.display()));
        }
    }
}

fn end_of(
    finished: &Finished,
    work: &CommandWork,
    node: &Node,
    hands: &Hands,
    launch: &Launch,
) -> OutcomeEnd {
    let effect = Some(Digest::of(finished.out.bytes()));
    let fail = |class, text: String| OutcomeEnd::Failed(Failure { effect, ..Failure::new(class, text) });
    match finished.end {
        End::Cancelled => OutcomeEnd::Cancelled,
        End::TimedOut => {
            let text = format!("timed out after {} s (the step's `timeout`)", node.timeout.as_secs());
            fail(FailureClass::Timeout, text)
        }
        End::Signalled(signal) => {
            fail(FailureClass::Exit, format!("ended by signal {signal}{}", tail(finished, hands)))
        }
        End::Exited(code) if !work.ok_exit.contains(&code) => {
            fail(FailureClass::Exit, format!("exit code {code}{}", tail(finished, hands)))
        }
        End::Exited(_) => match parse(finished, work.parse) {
            Ok(value) => {
                if let Err(error) = schema::check(&node.output, &value) {
                    let text = hands.agents.redactor.apply(&error.to_string()).into_owned();
                    return fail(FailureClass::Schema, text);
                }
                let file: PathBuf = hands.run.stdout(&launch.addr, launch.attempt);
                let file = (finished.out.total() > 0).then_some(file);
                let value = Arc::new(redacted(hands, value));
                let kept = hands.keep(&launch.addr, launch.attempt, &value);
                OutcomeEnd::Succeeded { value, kept, file, effect }
            }
            Err(text) => fail(FailureClass::Schema, text.to_string()),
        },
    }
}

/// Secrets leave a text where it enters.
fn redacted(hands: &Hands, value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(hands.agents.redactor.apply(&text).into_owned()),
        Value::Array(items) => items.into_iter().map(|item| redacted(hands, item)).collect(),
        Value::Object(map) => map
            .into_iter()
            .map(|(key, item)| (hands.agents.redactor.apply(&key).into_owned(), redacted(hands, item)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

/// The end of what it said. Secrets leave before it is cut, so that none slips through in part.
pub(super) fn tail(finished: &Finished, hands: &Hands) -> String {
    let said = [&finished.err, &finished.out].into_iter().find(|kept| kept.total() > 0);
    let bytes = said.map(claw_tools::process::Kept::bytes).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let clean = hands.agents.redactor.apply(text.trim());
    if clean.is_empty() {
        return String::new();
    }
    let cut = clean.ceil_char_boundary(clean.len().saturating_sub(IN_MESSAGE));
    let sign = if cut > 0 { "… " } else { "" };
    format!(": {sign}{}", &clean[cut..])
}

/// An output that is not what the file says.
#[derive(Debug, thiserror::Error)]
enum Unreadable {
    #[error("the output is longer than {KEEP} bytes")]
    TooLong,
    #[error("the output is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("line {line} of the output is not JSON: {error}")]
    Line { line: usize, error: serde_json::Error },
}

fn parse(finished: &Finished, how: CommandOutput) -> Result<Value, Unreadable> {
    let missing = finished.out.missing() > 0;
    if missing && how != CommandOutput::Text {
        return Err(Unreadable::TooLong);
    }
    if missing {
        return Ok(Value::String(finished.out.text(usize::MAX)));
    }
    let bytes = finished.out.bytes();
    let text = String::from_utf8_lossy(&bytes);
    match how {
        CommandOutput::Text => {
            let text =
                text.strip_suffix('\n').map_or(text.as_ref(), |text| text.strip_suffix('\r').unwrap_or(text));
            Ok(Value::String(text.to_owned()))
        }
        CommandOutput::Json => Ok(serde_json::from_str(&text)?),
        CommandOutput::Lines => Ok(text.lines().map(Value::from).collect()),
        CommandOutput::Lines0 => {
            Ok(text.split('\0').filter(|part| !part.is_empty()).map(Value::from).collect())
        }
        CommandOutput::Jsonl => text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
            .map(|(at, line)| {
                serde_json::from_str::<Value>(line).map_err(|error| Unreadable::Line { line: at + 1, error })
            })
            .collect(),
    }
}
