//! Events as JSON lines: the shape of `stream-json` and of a run's socket.

use super::event::{RunEvent, RunEventKind, StepState, ToolPhase, WaitingFor};
use crate::addr::StepAddr;
use crate::journal::record::Question;
use claw_kernel::clock::Timestamp;
use claw_kernel::ids::RunId;
use claw_providers::usage::Usage;
use serde::Serialize;
use serde_json::Value;

/// The version of the shape.
pub const VERSION: u32 = 1;

/// One object, without a line end.
pub fn line(event: &RunEvent) -> serde_json::Result<String> {
    let mut line = Line::of(event);
    line.fill(&event.kind);
    serde_json::to_string(&line)
}

/// The fields of a step's state alone.
pub(super) fn state(state: &StepState) -> serde_json::Result<Value> {
    let mut fields = Fields::default();
    fields.state(state);
    serde_json::to_value(fields)
}

#[derive(Serialize)]
struct Line<'a> {
    v: u32,
    #[serde(rename = "type")]
    kind: &'static str,
    run: RunId,
    seq: u64,
    at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<&'a StepAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    #[serde(flatten)]
    fields: Fields<'a>,
}

#[derive(Default, Serialize)]
struct Fields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    workflow: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    take: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_for: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_position: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<&'a Question>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<u8>,
}

impl<'a> Line<'a> {
    fn of(event: &'a RunEvent) -> Self {
        Self {
            v: VERSION,
            kind: kind(&event.kind),
            run: event.run,
            seq: event.seq,
            at: event.at,
            step: event.step.as_ref(),
            attempt: event.attempt,
            fields: Fields::default(),
        }
    }

    fn fill(&mut self, kind: &'a RunEventKind) {
        let fields = &mut self.fields;
        match kind {
            RunEventKind::RunStarted { workflow, nodes, take } => {
                fields.workflow = Some(workflow);
                (fields.nodes, fields.take) = (Some(*nodes), Some(*take));
            }
            RunEventKind::StepState(state) => fields.state(state),
            RunEventKind::AgentTurn { turn, model } => {
                fields.turn = Some(*turn);
                fields.model = Some(model);
            }
            RunEventKind::AgentTool { name, subject, phase } => {
                fields.name = Some(name);
                fields.subject = Some(subject);
                fields.phase = Some(match phase {
                    ToolPhase::Started => "started",
                    ToolPhase::Succeeded => "succeeded",
                    ToolPhase::Failed => "failed",
                });
            }
            RunEventKind::AgentUsage(usage) => fields.usage = Some(*usage),
            RunEventKind::AgentText(text) => fields.text = Some(text),
            RunEventKind::GateAsked(question) => fields.question = Some(question),
            RunEventKind::Note(text) => fields.text = Some(text),
            RunEventKind::RunEnded { status, exit_code } => {
                (fields.status, fields.exit_code) = (Some(status.as_str()), Some(*exit_code));
            }
        }
    }
}

impl<'a> Fields<'a> {
    fn state(&mut self, state: &'a StepState) {
        match state {
            StepState::Ready { position } => {
                (self.state, self.queue_position) = (Some("ready"), Some(*position));
            }
            StepState::Running => self.state = Some("running"),
            StepState::Waiting(waiting) => {
                self.state = Some("waiting");
                self.waiting(waiting);
            }
            StepState::Ended { state, error } => {
                (self.state, self.error) = (Some(state.as_str()), error.as_deref());
            }
        }
    }

    fn waiting(&mut self, waiting: &'a WaitingFor) {
        let millis = |delay: &std::time::Duration| u64::try_from(delay.as_millis()).ok();
        match waiting {
            WaitingFor::Retry { delay, error } => {
                (self.waiting_for, self.delay_ms) = (Some("retry"), millis(delay));
                self.error = Some(error);
            }
            WaitingFor::Provider { delay, why } => {
                (self.waiting_for, self.delay_ms) = (Some("provider"), millis(delay));
                self.why = Some(why);
            }
            WaitingFor::Permission => self.waiting_for = Some("permission"),
            WaitingFor::Gate => self.waiting_for = Some("gate"),
            WaitingFor::Lock { name } => {
                (self.waiting_for, self.subject) = (Some("lock"), Some(name.as_str()));
            }
            WaitingFor::Breaker { why } => {
                (self.waiting_for, self.error) = (Some("breaker"), Some(why.as_str()));
            }
        }
    }
}

fn kind(kind: &RunEventKind) -> &'static str {
    match kind {
        RunEventKind::RunStarted { .. } => "run.started",
        RunEventKind::StepState(_) => "step.state",
        RunEventKind::AgentTurn { .. } => "agent.turn",
        RunEventKind::AgentTool { .. } => "agent.tool",
        RunEventKind::AgentUsage(_) => "agent.usage",
        RunEventKind::AgentText(_) => "agent.text",
        RunEventKind::GateAsked(_) => "gate.asked",
        RunEventKind::Note(_) => "note",
        RunEventKind::RunEnded { .. } => "run.ended",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::record::{EndState, RunStatus};
    use crate::report::plain::tests::event;
    use std::time::Duration;

    #[test]
    fn each_kind_of_event_has_its_line() {
        let delay = Duration::from_millis(1500);
        let error = "connection lost".to_owned();
        let tool = RunEventKind::AgentTool {
            name: "bash".into(),
            subject: "cargo test".into(),
            phase: ToolPhase::Started,
        };
        let ended = StepState::Ended { state: EndState::Failed, error: Some("no".into()) };
        let kinds = [
            (None, RunEventKind::RunStarted { workflow: "w".into(), nodes: 3, take: 1 }),
            (Some("a"), RunEventKind::StepState(StepState::Ready { position: 2 })),
            (Some("a"), RunEventKind::StepState(StepState::Running)),
            (Some("a"), RunEventKind::StepState(StepState::Waiting(WaitingFor::Retry { delay, error }))),
            (
                Some("a"),
                RunEventKind::StepState(StepState::Waiting(WaitingFor::Provider {
                    delay,
                    why: "rate limited",
                })),
            ),
            (Some("a"), RunEventKind::AgentTurn { turn: 1, model: "m".into() }),
            (Some("a"), tool),
            (Some("a"), RunEventKind::AgentUsage(Usage::NOTHING)),
            (Some("a"), RunEventKind::AgentText("Hm\n".into())),
            (Some("a"), RunEventKind::StepState(ended)),
            (None, RunEventKind::Note("a word".into())),
            (None, RunEventKind::RunEnded { status: RunStatus::Failed, exit_code: 1 }),
        ];
        let lines: Vec<String> =
            kinds.into_iter().map(|(step, kind)| line(&event(step, kind)).unwrap()).collect();
        insta::assert_snapshot!(lines.join("\n"), @r###"
        {"v":1,"type":"run.started","run":"01KBCDEFGHJKMNPQRSTVWXYZ01","seq":7,"at":"2025-12-01T09:23:42.042Z","workflow":"w","nodes":3,"take":1}
        {"v":1,"type":"step.state","run":"01KBCDEFGHJKMNPQRSTVWXYZ01","seq":7,"at":"2025-12-01T09:23:42.042Z","step":"a","attempt":1,"state":"ready","queue_position":2}
        {"v":1,"type":"step.state","run":"01KBCDEFGHJKMNPQRSTVWXYZ01","seq":7,"at":"2025-12-01T09:23:42.042Z","step":"a","attempt":1,"state":"running"}
        {"v":1,"type":"step.state","run":"01KBCDEFGHJKMNPQRSTVWXYZ01","seq":7,"at":"2025-12-01T09:23:42.042Z","step":"a","attempt":1,"state":"waiting","waiting_for":"retry","delay_ms":1500,"error":"connection lost"}
        {"v":1,"type":"step.state","run":"01KBCDEFGHJKMNPQRSTVWXYZ01","seq":7,"at":"2025-12-01T09:23:42.042Z","step":"a","attempt":1,"state":"waiting","waiting_for":"provider","why":"rate limited","delay_ms":1500}
        {"v":1,"type":"agent.turn","run":"01KBCDEFGHJKMNPQRSTVWXYZ01","seq":7,"at":"2025-12-01T09:23:42.042Z","step":"a","attempt":1,"turn":1,"model":"m"}
        {"v":1,"type":"agent.tool","run":"01KBCDEFGHJKMNPQRSTVWXYZ01","seq":7,"at":"2025-12-01T09:23:42.042Z","step":"a","attempt":1,"name":"bash","subject":"cargo test","phase":"started"}
        {"v":1,"type":"agent.usage","run":"01KBCDEFGHJKMNPQRSTVWXYZ01","seq":7,"at":"2025-12-01T09:23:42.042Z","step":"a","attempt":1,"usage":{"input":0,"output":0,"cache_read":0,"cache_write":0,"usd":0.0}}
        {"v":1,"type":"agent.text","run":"01KBCDEFGHJKMNPQRSTVWXYZ01","seq":7,"at":"2025-12-01T09:23:42.042Z","step":"a","attempt":1,"text":"Hm\n"}
        {"v":1,"type":"step.state","run":"01KBCDEFGHJKMNPQRSTVWXYZ01","seq":7,"at":"2025-12-01T09:23:42.042Z","step":"a","attempt":1,"state":"failed","error":"no"}
        {"v":1,"type":"note","run":"01KBCDEFGHJKMNPQRSTVWXYZ01","seq":7,"at":"2025-12-01T09:23:42.042Z","text":"a word"}
        {"v":1,"type":"run.ended","run":"01KBCDEFGHJKMNPQRSTVWXYZ01","seq":7,"at":"2025-12-01T09:23:42.042Z","status":"failed","exit_code":1}
        "###);
    }
}
