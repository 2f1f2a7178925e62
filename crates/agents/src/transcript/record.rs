//! The lines of a transcript. A promise to later versions: see the frozen fixtures.

use claw_kernel::ids::AgentId;
use claw_providers::event::StopReason;
use claw_providers::message::{Block, Message};
use claw_providers::usage::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version that is written.
pub const VERSION: u32 = 1;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Record {
    /// The task, as expanded. First.
    Prompt {
        /// The text.
        text: String,
    },
    /// An attempt begins to write.
    Meta {
        /// Whose.
        agent: AgentId,
        /// Its name as shown.
        label: String,
    },
    /// A message of the history. Neighbours of one role are one message.
    Message {
        /// The turn that it belongs to.
        turn: u32,
        /// The message.
        message: Message,
        /// Why the model stopped, for its messages.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop: Option<StopReason>,
    },
    /// What one request cost, failed tries included.
    Usage {
        /// Of this request.
        usage: Usage,
        /// The model that answered; none where it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// What was decided about a call, where the mode alone did not let it pass.
    Permission {
        /// The call, as `turn.index`.
        call: String,
        /// Canonical name.
        tool: String,
        /// What.
        verdict: Verdict,
        /// The rule with its place, the hook, or the person; none: the mode.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// A try that was thrown away: never part of the history.
    Abandoned {
        /// What had come.
        blocks: Vec<Block>,
    },
    /// The attempt ended.
    End(End),
}

/// What was decided about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A rule or a hook let it pass.
    Allowed,
    /// A person let it pass.
    Answered,
    /// It did not run.
    Denied,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum End {
    /// The model was done: nothing is asked again.
    Completed {
        /// The last text.
        text: String,
        /// The structured answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Value>,
    },
    /// It failed.
    Failed {
        /// One line for people.
        message: String,
    },
    /// It was cancelled.
    Cancelled,
}

#[derive(Serialize)]
struct Line<'a> {
    v: u32,
    #[serde(flatten)]
    record: &'a Record,
}

impl Record {
    /// The line with its end.
    pub(crate) fn line(&self) -> Vec<u8> {
        // These shapes have string keys only, so that nothing can fail.
        let mut line = Vec::with_capacity(256);
        if serde_json::to_writer(&mut line, &Line { v: VERSION, record: self }).is_err() {
            line.clear();
        }
        line.push(b'\n');
        line
    }
}
