//! One attempt of a merge of branches: put together apart from the workspace, verified, landed there in one step.

use super::agent_step::Report;
use super::command_step::{self, NotRun};
use super::error::RunError;
use super::hands::Hands;
use super::picture::Picture;
use super::place::failure;
use super::start::{RunOptions, RunServices};
use crate::journal::history::History;
use crate::journal::record::{EndState, Ended, Entry, Question, Record, VERSION};
use crate::journal::store::JournalWriter;
use crate::manifest;
use crate::plan::model::OnConflict;
use crate::rundir::RunDir;
use crate::scheduler::{
    Failure, Launch, Outcome, OutcomeEnd, PreparedCommand, PreparedGitMerge, PreparedLine,
};
use crate::worktree::{
    self, Combined, Combining, Fate, Recovered, Spoilt, TakenBack, Verdict, Verify, WorktreeError,
};
use claw_agents::outcome::FailureClass;
use claw_agents::permission::Reach;
use claw_kernel::cancel::CancelToken;
use claw_kernel::clock;
use claw_kernel::digest::Digest;
use claw_tools::process::End;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::oneshot;

const KEEP: &str = "keep";
const RETRY: &str = "retry";
const STOP: &str = "stop";

/// Runs it to its end and reports.
pub(super) async fn run(
    hands: &Arc<Hands>,
    launch: &Launch,
    merge: &PreparedGitMerge,
    token: CancelToken,
    report: Report,
) {
    let node = &hands.plan.nodes[launch.node.at()];
    let mut picture = Picture::new(hands, launch, node);
    picture.started(None);
    let end = match attempt(hands, launch, merge, &token).await {
        Ok(end) => end,
        Err(WorktreeError::Cancelled) => OutcomeEnd::Cancelled,
        Err(error) => OutcomeEnd::Failed(failure(&error)),
    };
    let end = super::artifacts::check(launch, &hands.options.workspace, end, &mut picture).await;
    picture.ended(None, &end);
    let (settle, settled) = oneshot::channel();
    // The receiver lives as long as the run.
    let _ = report.send((Outcome { end, usage: None, denials: Vec::new() }, settle));
    if let Ok(settlement) = settled.await {
        picture.settled(&settlement);
        if let Err(error) = worktree::forget(&hands.run, &launch.addr, launch.attempt) {
            hands.bus.note(Some(&launch.addr), error.to_string());
        }
    }
}

async fn attempt(
    hands: &Arc<Hands>,
    launch: &Launch,
    merge: &PreparedGitMerge,
    token: &CancelToken,
) -> Result<OutcomeEnd, WorktreeError> {
    let choice = merge.answer.as_ref().map(|answer| answer.choice.as_str());
    if choice == Some(STOP) {
        let text = "a person stopped the merge at its conflicts; nothing was written to the workspace";
        return Ok(OutcomeEnd::Failed(Failure::new(FailureClass::Conflict, text)));
    }
    hands.folders.mark(&launch.addr, launch.attempt, launch.key)?;
    let verify = |folder: std::path::PathBuf| verify(hands, launch, merge, folder, token);
    let verify: Option<&Verify<'_>> = match &merge.verify {
        Some(_) => Some(&verify),
        None => None,
    };
    let what = Combining {
        step: &launch.addr,
        attempt: launch.attempt,
        branches: &merge.branches,
        apply: merge.apply,
        verify,
        token,
    };
    let combined = hands.folders.combine(&what).await?;
    if let Some(end) = held_up(&combined, merge.on_conflict, choice) {
        // Nothing is to be settled after a kill, however long a person takes.
        worktree::forget(&hands.run, &launch.addr, launch.attempt)?;
        return Ok(end);
    }
    for back in &combined.taken_back {
        hands
            .bus
            .note(Some(&launch.addr), format!("{}; its branch {} keeps the work", told(back), back.branch));
    }
    let value = output(&combined);
    if combined.changes_something() {
        if token.is_cancelled() {
            return Err(WorktreeError::Cancelled);
        }
        let landing = hands.folders.prepare(&launch.addr, launch.attempt, &combined, value.clone()).await?;
        landing.carry_out().await?;
    }
    let effect = Some(Digest::of(value.to_string()));
    let value = Arc::new(value);
    let kept = hands.keep(&launch.addr, launch.attempt, &value);
    Ok(OutcomeEnd::Succeeded { value, kept, file: None, effect })
}

/// What a branch that was taken back does to the merge.
fn held_up(combined: &Combined, on_conflict: OnConflict, choice: Option<&str>) -> Option<OutcomeEnd> {
    if combined.taken_back.is_empty() {
        return None;
    }
    let all: Vec<String> = combined.taken_back.iter().map(told).collect();
    let message = all.join("; ");
    match on_conflict {
        OnConflict::Keep => None,
        OnConflict::Fail => {
            let text =
                format!("{message}; nothing was written to the workspace, all branches keep their work");
            Some(OutcomeEnd::Failed(Failure::new(FailureClass::Conflict, text)))
        }
        OnConflict::Gate if choice == Some(KEEP) => None,
        OnConflict::Gate => {
            let message = format!(
                "{message}. `keep` leaves that work on its branch and lands the rest, `retry` merges again (put the \
                 branch right first), `stop` lands nothing"
            );
            let choices = [KEEP, RETRY, STOP].map(str::to_owned).to_vec();
            let question = Question { message, show: Vec::new(), choices, default: None, until: None };
            Some(OutcomeEnd::Asks(Box::new(question)))
        }
    }
}

fn told(back: &TakenBack) -> String {
    let step = &back.step;
    match &back.why {
        Spoilt::Conflict(files) => format!("{step} conflicts in {}", files.join(", ")),
        Spoilt::Governs(files) => format!("{step} changes what governs claw ({})", files.join(", ")),
        Spoilt::Verify(said) => format!("`verify` fails behind {step}: {said}"),
    }
}

fn output(combined: &Combined) -> Value {
    let step = |back: &TakenBack| back.step.to_string();
    let conflict = |back: &TakenBack| {
        let (reason, files, message) = match &back.why {
            Spoilt::Conflict(files) => ("conflict", files.clone(), None),
            Spoilt::Governs(files) => ("governs", files.clone(), None),
            Spoilt::Verify(said) => ("verify", Vec::new(), Some(said)),
        };
        let mut value =
            json!({ "step": step(back), "branch": back.branch, "reason": reason, "files": files });
        if let (Some(said), Some(map)) = (message, value.as_object_mut()) {
            map.insert("message".to_owned(), said.clone().into());
        }
        value
    };
    json!({
        "applied": combined.applied.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "backed_out": combined.taken_back.iter().map(step).collect::<Vec<_>>(),
        "conflicts": combined.taken_back.iter().map(conflict).collect::<Vec<_>>(),
        "commit": combined.commit(),
    })
}

/// Runs the command of `verify` in a folder that holds the merged tree.
fn verify<'v>(
    hands: &'v Arc<Hands>,
    launch: &'v Launch,
    merge: &'v PreparedGitMerge,
    folder: std::path::PathBuf,
    token: &'v CancelToken,
) -> futures_util::future::BoxFuture<'v, Result<Verdict, WorktreeError>> {
    Box::pin(async move {
        let Some(argv) = &merge.verify else { return Ok(Verdict::Good) };
        let line = PreparedLine::Argv(argv.clone());
        let command = PreparedCommand { line, cwd: None, env: Vec::new(), stdin: None };
        let finished = match command_step::execute(hands, launch, &command, &folder, token).await {
            Ok(finished) => finished,
            Err(NotRun::Cancelled) => return Err(WorktreeError::Cancelled),
            Err(NotRun::Failed(failure)) => return Err(WorktreeError::Verify(failure.message)),
        };
        command_step::tell_put_aside(hands, launch, &finished);
        let said = command_step::tail(&finished, hands);
        Ok(match finished.end {
            End::Exited(0) => Verdict::Good,
            End::Exited(code) => Verdict::Bad(format!("exit code {code}{said}")),
            End::Signalled(signal) => Verdict::Bad(format!("ended by signal {signal}{said}")),
            End::TimedOut => Verdict::Bad(format!("timed out{said}")),
            End::Cancelled => return Err(WorktreeError::Cancelled),
        })
    })
}

/// Settles merges that a killed process left half way, and puts it on record: none of them is in doubt any more. Notes
/// for people.
pub(super) async fn recover(
    services: &RunServices,
    options: &RunOptions,
    run: &RunDir,
    journal: &JournalWriter,
    history: &mut History,
) -> Result<Vec<String>, RunError> {
    let policy = services.agents.sandboxes.policy(Reach::DangerFullAccess, &options.workspace, &[]);
    let ended = |step: &crate::addr::StepAddr, attempt: u32| {
        let past = history.step(step)?.attempts.iter().find(|past| past.number == attempt)?;
        past.ended.as_ref().map(|(_, ended)| ended.state)
    };
    let found = worktree::recover(run, &options.workspace, policy, ended).await?;
    let mut notes = Vec::new();
    for Recovered { step, attempt, key, fate } in found {
        let mut entries = Vec::new();
        let plain = |state, output, error| {
            let (class, usage) = (None, None);
            Entry::Ended(Ended {
                state,
                key: Some(key),
                output,
                error,
                class,
                retry: false,
                usage,
                denials: Vec::new(),
            })
        };
        match fate {
            Fate::Finished(value) => {
                notes.push(format!(
                    "{step}: its merge was stopped half way; all of it is in the workspace now"
                ));
                entries.push(Entry::Done { digest: Digest::of(value.to_string()), call: None });
                let kept = manifest::output::keep(run, &step, attempt, Arc::new(value));
                let kept = kept.map_err(|error| RunError::Write {
                    path: run.node(&step, attempt),
                    source: std::io::Error::other(error),
                })?;
                entries.push(plain(EndState::Succeeded, Some(kept), None));
            }
            Fate::TakenBack(why) => {
                notes.push(format!("{step}: its merge was stopped half way and taken back: {why}"));
                entries.push(plain(EndState::Interrupted, None, Some(why)));
            }
            Fate::Untouched => {
                let why = "it was stopped before anything reached the workspace";
                entries.push(plain(EndState::Interrupted, None, Some(why.to_owned())));
            }
        }
        let lines = entries.iter().map(|entry| (Some(step.clone()), Some(attempt), entry.clone())).collect();
        journal.record_all(lines).await?.done().await?;
        for entry in entries {
            let (v, seq, at) = (VERSION, 0, clock::now());
            history.add(&Record { v, seq, at, step: Some(step.clone()), attempt: Some(attempt), entry });
        }
        worktree::forget(run, &step, attempt)?;
    }
    Ok(notes)
}
