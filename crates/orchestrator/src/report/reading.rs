//! The other way: a line of `stream-json`, or of a run's socket, back to the event.

use super::event::{RunEvent, RunEventKind, StepState, ToolPhase, WaitingFor};
use crate::addr::StepAddr;
use crate::journal::record::{EndState, Question, RunStatus};
use claw_kernel::clock::Timestamp;
use claw_kernel::ids::RunId;
use claw_providers::usage::Usage;
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;

/// Words for what a provider makes a step wait for, as this program knows them.
const PROVIDER_WORDS: [&str; 3] = ["rate limited", "overloaded", "connection lost"];

/// A line that is no event.
#[derive(Debug, thiserror::Error)]
pub enum NotAnEvent {
    /// Not JSON, or a field has another type.
    #[error("a line is no event: {0}")]
    Shape(#[from] serde_json::Error),
    /// An event of another version, or one that lacks a field.
    #[error("a line is no event that this program knows: {0}")]
    Unknown(String),
}

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    run: RunId,
    seq: u64,
    at: Timestamp,
    step: Option<StepAddr>,
    attempt: Option<u32>,
    #[serde(flatten)]
    fields: Fields,
}

#[derive(Deserialize)]
struct Fields {
    workflow: Option<String>,
    nodes: Option<usize>,
    take: Option<u32>,
    turn: Option<u32>,
    model: Option<String>,
    name: Option<String>,
    phase: Option<String>,
    usage: Option<Usage>,
    text: Option<String>,
    question: Option<Question>,
    status: Option<RunStatus>,
    exit_code: Option<u8>,
    #[serde(flatten)]
    state: State,
}

#[derive(Deserialize)]
struct State {
    state: Option<String>,
    waiting_for: Option<String>,
    why: Option<String>,
    delay_ms: Option<u64>,
    queue_position: Option<usize>,
    error: Option<String>,
    subject: Option<String>,
}

/// The event of a line.
///
/// # Errors
/// It is none, or one of another version.
pub fn event(line: &str) -> Result<RunEvent, NotAnEvent> {
    let Line { kind, run, seq, at, step, attempt, fields } = serde_json::from_str(line)?;
    let kind = event_kind(&kind, fields).ok_or(NotAnEvent::Unknown(kind))?;
    Ok(RunEvent { run, seq, at, step, attempt, kind })
}

/// The state of a step from the fields that `json::state` gives.
pub(super) fn state(value: Value) -> Result<StepState, NotAnEvent> {
    let state: State = serde_json::from_value(value)?;
    state.read().ok_or_else(|| NotAnEvent::Unknown("step.state".to_owned()))
}

fn event_kind(kind: &str, fields: Fields) -> Option<RunEventKind> {
    Some(match kind {
        "run.started" => {
            RunEventKind::RunStarted { workflow: fields.workflow?, nodes: fields.nodes?, take: fields.take? }
        }
        "step.state" => RunEventKind::StepState(fields.state.read()?),
        "agent.turn" => RunEventKind::AgentTurn { turn: fields.turn?, model: fields.model? },
        "agent.tool" => RunEventKind::AgentTool {
            name: fields.name?,
            subject: fields.state.subject?,
            phase: match fields.phase?.as_str() {
                "started" => ToolPhase::Started,
                "succeeded" => ToolPhase::Succeeded,
                "failed" => ToolPhase::Failed,
                _ => return None,
            },
        },
        "agent.usage" => RunEventKind::AgentUsage(fields.usage?),
        "agent.text" => RunEventKind::AgentText(fields.text?.into()),
        "gate.asked" => RunEventKind::GateAsked(Box::new(fields.question?)),
        "note" => RunEventKind::Note(fields.text?),
        "run.ended" => RunEventKind::RunEnded { status: fields.status?, exit_code: fields.exit_code? },
        _ => return None,
    })
}

impl State {
    fn read(self) -> Option<StepState> {
        Some(match self.state.as_deref()? {
            "ready" => StepState::Ready { position: self.queue_position? },
            "running" => StepState::Running,
            "waiting" => StepState::Waiting(self.waiting()?),
            word => StepState::Ended {
                state: EndState::deserialize(Value::String(word.to_owned())).ok()?,
                error: self.error,
            },
        })
    }

    fn waiting(self) -> Option<WaitingFor> {
        let delay = || self.delay_ms.map(Duration::from_millis);
        Some(match self.waiting_for.as_deref()? {
            "retry" => WaitingFor::Retry { delay: delay()?, error: self.error? },
            "provider" => {
                let word = self.why.as_deref()?;
                let known = PROVIDER_WORDS.iter().find(|known| **known == word);
                WaitingFor::Provider {
                    delay: delay()?,
                    why: known.copied().unwrap_or("waits for the service"),
                }
            }
            "permission" => WaitingFor::Permission,
            "gate" => WaitingFor::Gate,
            "lock" => WaitingFor::Lock { name: self.subject? },
            "breaker" => WaitingFor::Breaker { why: self.error? },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::json;
    use crate::report::plain::tests::event as made;

    #[test]
    fn every_event_comes_back_as_it_was_written() {
        let delay = Duration::from_millis(1500);
        let error = "connection lost".to_owned();
        let waits = [
            WaitingFor::Retry { delay, error: error.clone() },
            WaitingFor::Provider { delay, why: "rate limited" },
            WaitingFor::Permission,
            WaitingFor::Gate,
            WaitingFor::Lock { name: "cargo".into() },
            WaitingFor::Breaker { why: error.clone() },
        ];
        let states = [
            StepState::Ready { position: 2 },
            StepState::Running,
            StepState::Ended { state: EndState::Failed, error: Some(error) },
            StepState::Ended { state: EndState::Interrupted, error: None },
        ];
        let states = states.into_iter().chain(waits.map(StepState::Waiting));
        let question = Question {
            message: "Apply?".into(),
            show: Vec::new(),
            choices: vec!["approve".into()],
            default: None,
            until: None,
        };
        let subject = "ls".to_owned();
        let others = [
            RunEventKind::RunStarted { workflow: "w".into(), nodes: 3, take: 1 },
            RunEventKind::AgentTurn { turn: 1, model: "m".into() },
            RunEventKind::AgentTool { name: "bash".into(), subject, phase: ToolPhase::Failed },
            RunEventKind::AgentUsage(Usage::NOTHING),
            RunEventKind::AgentText("Hm\n".into()),
            RunEventKind::GateAsked(Box::new(question)),
            RunEventKind::Note("a word".into()),
            RunEventKind::RunEnded { status: RunStatus::Paused, exit_code: 4 },
        ];
        for kind in states.map(RunEventKind::StepState).chain(others) {
            let line = json::line(&made(Some("a"), kind)).unwrap();
            let read = event(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            assert_eq!(json::line(&read).unwrap(), line);
        }
        assert!(event("{").is_err() && event(r#"{"type":"later"}"#).is_err());
    }
}
