//! The objects of `json` and `stream-json`, in the shapes that users of other programs parse. Pure.

use claw_agents::outcome::{AgentEnd, AgentOutcome, FailureClass};
use claw_kernel::ids::SessionId;
use claw_providers::event::{Answer, StopReason, StreamEvent};
use claw_providers::message::{Block, Message};
use claw_providers::usage::Usage;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::Duration;

/// The first line.
pub(super) fn init(session: SessionId, cwd: &str, model: &str, mode: &str, tools: &[&str]) -> Value {
    json!({
        "type": "system",
        "subtype": "init",
        "cwd": cwd,
        "session_id": session,
        "tools": tools,
        "mcp_servers": [],
        "model": model,
        "permissionMode": mode,
        "slash_commands": [],
        "agents": [],
        "claw_version": env!("CARGO_PKG_VERSION"),
    })
}

/// A whole message of the model.
pub(super) fn assistant(session: SessionId, id: Option<&str>, answer: &Answer) -> Value {
    json!({
        "type": "assistant",
        "message": {
            "id": id,
            "type": "message",
            "role": "assistant",
            "model": answer.model,
            "content": answer.blocks.iter().map(block).collect::<Vec<_>>(),
            "stop_reason": stop_word(&answer.stop),
            "stop_sequence": null,
            "usage": usage(&answer.usage),
        },
        "parent_tool_use_id": null,
        "session_id": session,
    })
}

/// Results of tool calls; `None` where the message holds none.
pub(super) fn results(session: SessionId, message: &Message) -> Option<Value> {
    let results: Vec<Value> =
        message.content.iter().filter(|b| matches!(b, Block::ToolResult { .. })).map(block).collect();
    (!results.is_empty()).then(|| {
        json!({
            "type": "user",
            "message": { "role": "user", "content": results },
            "parent_tool_use_id": null,
            "session_id": session,
        })
    })
}

fn block(block: &Block) -> Value {
    match block {
        Block::Text { text } => json!({ "type": "text", "text": text }),
        Block::Thinking { thinking, signature, .. } => {
            json!({ "type": "thinking", "thinking": thinking, "signature": signature })
        }
        Block::RedactedThinking { data, .. } => json!({ "type": "redacted_thinking", "data": data }),
        Block::ToolUse { id, name, input } => {
            json!({ "type": "tool_use", "id": id, "name": name, "input": input })
        }
        Block::ToolResult { tool_use_id, content, images, is_error } => {
            let content = if images.is_empty() {
                json!(content)
            } else {
                let texts = std::iter::once(json!({ "type": "text", "text": content }));
                texts.chain(images.iter().map(image)).collect()
            };
            json!({ "type": "tool_result", "tool_use_id": tool_use_id, "content": content, "is_error": is_error })
        }
        Block::Image(picture) => image(picture),
    }
}

fn image(image: &claw_providers::message::Image) -> Value {
    json!({ "type": "image", "source": { "type": "base64", "media_type": image.media_type, "data": image.data } })
}

fn stop_word(stop: &StopReason) -> &str {
    match stop {
        StopReason::EndTurn => "end_turn",
        StopReason::ToolUse => "tool_use",
        StopReason::MaxTokens => "max_tokens",
        StopReason::StopSequence => "stop_sequence",
        StopReason::Refusal => "refusal",
        StopReason::PauseTurn => "pause_turn",
        StopReason::Other(word) => word,
    }
}

fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    })
}

/// The older messages gave way to a summary.
pub(super) fn compacted(session: SessionId, removed: usize, before: u64, after: u64) -> Value {
    json!({
        "type": "system",
        "subtype": "compact_boundary",
        "session_id": session,
        "compact_metadata": {
            "trigger": "auto",
            "removed_messages": removed,
            "pre_tokens": before,
            "post_tokens": after,
        },
    })
}

/// An answer with what it cost.
pub(super) struct Answered<'a> {
    pub(super) session: SessionId,
    pub(super) outcome: &'a AgentOutcome,
    pub(super) took: Duration,
    /// By the session, over all its processes.
    pub(super) spent: Usage,
    pub(super) compactions: usize,
}

/// The last line of `stream-json`, the only one of `json`. Usage is of this question, money of the session.
pub(super) fn result(answered: &Answered<'_>) -> Value {
    let Answered { session, outcome, took, spent, compactions } = answered;
    let (subtype, text, error) = match &outcome.end {
        AgentEnd::Completed { text, output } => {
            ("success", output.as_ref().map_or_else(|| text.clone(), Value::to_string), None)
        }
        AgentEnd::Failed { class: FailureClass::Limit, message, partial, .. } => {
            ("error_max_turns", partial.clone().unwrap_or_default(), Some(message.clone()))
        }
        AgentEnd::Failed { message, partial, .. } => {
            ("error_during_execution", partial.clone().unwrap_or_default(), Some(message.clone()))
        }
        AgentEnd::OutOfBudget { reason } => ("error_max_budget_usd", String::new(), Some(reason.clone())),
        AgentEnd::Cancelled => ("error_during_execution", String::new(), Some("cancelled".to_owned())),
    };
    json!({
        "type": "result",
        "subtype": subtype,
        "is_error": error.is_some(),
        "duration_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        "num_turns": outcome.turns,
        "result": text,
        "errors": error.into_iter().collect::<Vec<_>>(),
        "session_id": session,
        "total_cost_usd": spent.usd,
        "usage": usage(&outcome.usage),
        "session_usage": usage(spent),
        "compactions": compactions,
        "model": outcome.model,
        "permission_denials": outcome
            .denials
            .iter()
            .map(|denial| json!({ "tool_name": denial.tool, "subject": denial.subject, "reason": denial.reason }))
            .collect::<Vec<_>>(),
        "agents": [],
    })
}

/// Turns the events of one message back into those of the Messages wire, whichever wire they came over.
#[derive(Debug, Default)]
pub(super) struct Partial {
    open: HashSet<u32>,
    stop: Option<StopReason>,
    output: u64,
}

impl Partial {
    /// The events to print for one event.
    pub(super) fn on(&mut self, event: &StreamEvent) -> Vec<Value> {
        let delta = |index: &u32, delta: Value| json!({ "type": "content_block_delta", "index": index, "delta": delta });
        match event {
            StreamEvent::MessageStart { id, model } => {
                *self = Self::default();
                vec![json!({ "type": "message_start", "message": {
                    "id": id, "type": "message", "role": "assistant", "model": model, "content": [],
                    "stop_reason": null, "stop_sequence": null,
                    "usage": { "input_tokens": 0, "output_tokens": 0 },
                } })]
            }
            StreamEvent::TextStart { index } => self.open(*index, json!({ "type": "text", "text": "" })),
            StreamEvent::TextDelta { index, text } => {
                let mut all = self.open(*index, json!({ "type": "text", "text": "" }));
                all.push(delta(index, json!({ "type": "text_delta", "text": text })));
                all
            }
            StreamEvent::ThinkingDelta { index, thinking } => {
                let mut all = self.open(*index, json!({ "type": "thinking", "thinking": "" }));
                all.push(delta(index, json!({ "type": "thinking_delta", "thinking": thinking })));
                all
            }
            StreamEvent::SignatureDelta { index, signature } => {
                let mut all = self.open(*index, json!({ "type": "thinking", "thinking": "" }));
                all.push(delta(index, json!({ "type": "signature_delta", "signature": signature })));
                all
            }
            StreamEvent::RedactedThinking { index, data } => {
                self.open(*index, json!({ "type": "redacted_thinking", "data": data }))
            }
            StreamEvent::ToolUseStart { index, id, name } => {
                self.open(*index, json!({ "type": "tool_use", "id": id, "name": name, "input": {} }))
            }
            StreamEvent::ToolInputDelta { index, json } => {
                vec![delta(index, json!({ "type": "input_json_delta", "partial_json": json }))]
            }
            StreamEvent::BlockStop { index } => vec![json!({ "type": "content_block_stop", "index": index })],
            StreamEvent::Usage(report) => {
                self.output = report.output.unwrap_or(self.output);
                Vec::new()
            }
            StreamEvent::Stop(stop) => {
                self.stop = Some(stop.clone());
                Vec::new()
            }
            StreamEvent::MessageStop => vec![
                json!({
                    "type": "message_delta",
                    "delta": { "stop_reason": self.stop.as_ref().map(stop_word), "stop_sequence": null },
                    "usage": { "output_tokens": self.output },
                }),
                json!({ "type": "message_stop" }),
            ],
            StreamEvent::Error { kind, message } => {
                vec![json!({ "type": "error", "error": { "type": kind, "message": message } })]
            }
        }
    }

    fn open(&mut self, index: u32, block: Value) -> Vec<Value> {
        if !self.open.insert(index) {
            return Vec::new();
        }
        vec![json!({ "type": "content_block_start", "index": index, "content_block": block })]
    }
}

/// A raw event of the wire.
pub(super) fn stream_event(session: SessionId, event: &Value) -> Value {
    json!({ "type": "stream_event", "event": event, "parent_tool_use_id": null, "session_id": session })
}

/// What came of the running message is void.
pub(super) fn withdrawn(session: SessionId) -> Value {
    json!({ "type": "system", "subtype": "withdrawn", "session_id": session })
}

#[cfg(test)]
mod tests {
    use super::*;
    use claw_agents::outcome::Denial;
    use claw_providers::event::UsageReport;

    #[test]
    fn a_message_streams_in_the_shape_of_the_messages_wire() {
        let mut partial = Partial::default();
        let events = [
            StreamEvent::MessageStart { id: Some("m1".into()), model: Some("x".into()) },
            StreamEvent::TextDelta { index: 0, text: "hel".into() },
            StreamEvent::TextDelta { index: 0, text: "lo".into() },
            StreamEvent::BlockStop { index: 0 },
            StreamEvent::ToolUseStart { index: 1, id: "t1".into(), name: "bash".into() },
            StreamEvent::ToolInputDelta { index: 1, json: "{}".into() },
            StreamEvent::BlockStop { index: 1 },
            StreamEvent::Stop(StopReason::ToolUse),
            StreamEvent::Usage(UsageReport { output: Some(7), ..UsageReport::default() }),
            StreamEvent::MessageStop,
        ];
        let lines: Vec<String> =
            events.iter().flat_map(|event| partial.on(event)).map(|v| v.to_string()).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn a_result_says_how_it_ended() {
        let session: SessionId = "0190b3a8-0000-7000-8000-000000000000".parse().unwrap();
        let outcome = AgentOutcome {
            end: AgentEnd::Completed { text: "done".into(), output: None },
            usage: Usage { input: 10, output: 2, usd: Some(0.01), ..Usage::NOTHING },
            turns: 2,
            tool_calls: std::iter::once(("bash".to_owned(), 1)).collect(),
            denials: vec![Denial { tool: "bash".into(), subject: "curl x".into(), reason: "network".into() }],
            model: Some("x".into()),
        };
        let of = |outcome: &AgentOutcome, ms| {
            let (took, spent) = (Duration::from_millis(ms), Usage { usd: Some(0.03), ..outcome.usage });
            result(&Answered { session, outcome, took, spent, compactions: 0 })
        };
        insta::assert_snapshot!(of(&outcome, 1500).to_string());
        let failed = AgentOutcome {
            end: AgentEnd::Failed {
                class: FailureClass::Limit,
                message: "10 turns".into(),
                partial: None,
                retry_at: None,
            },
            ..outcome
        };
        let value = of(&failed, 0);
        assert_eq!(
            (value["subtype"].as_str(), value["is_error"].as_bool()),
            (Some("error_max_turns"), Some(true))
        );
    }
}
