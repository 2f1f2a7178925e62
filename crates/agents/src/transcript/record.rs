//! The lines of a transcript. A promise to later versions: see the frozen fixtures.

use claw_kernel::clock::Timestamp;
use claw_kernel::digest::Digest;
use claw_kernel::ids::{AgentId, RunId, SessionId};
use claw_providers::event::StopReason;
use claw_providers::message::{Block, Message};
use claw_providers::usage::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

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
    /// A process begins a session, or goes on with one.
    Session {
        /// Its id.
        id: SessionId,
        /// When.
        at: Timestamp,
        /// Its workspace.
        folder: PathBuf,
        /// The model asked first.
        model: String,
        /// Its name, where it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The session or file that it was made from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
    },
    /// A prompt of the person.
    Said {
        /// From 1.
        prompt: u32,
        /// When.
        at: Timestamp,
        /// Text and images.
        content: Vec<Block>,
    },
    /// The older messages gave way to a summary.
    Compaction {
        /// The text of the message that stands for them.
        summary: String,
        /// Messages at the end that stay.
        kept: usize,
        /// Bytes above which results in them were cut; none where they stayed whole.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cut: Option<usize>,
        /// Messages that went.
        removed: usize,
        /// Tokens before, estimated.
        before: u64,
        /// After.
        after: u64,
    },
    /// The session has a name; empty: none any more.
    Named {
        /// One line.
        name: String,
    },
    /// Back to before a prompt: it and what followed is no longer part of the history.
    Rewound {
        /// Which.
        prompt: u32,
    },
    /// What a file was before a tool of claw's changed it.
    Snapshot {
        /// During which prompt.
        prompt: u32,
        /// Absolute.
        path: PathBuf,
        /// What it was.
        was: Was,
    },
    /// An agent that this session started.
    Agent {
        /// Which.
        agent: AgentId,
        /// The call that asked for it.
        call: String,
        /// Its name as shown.
        label: String,
        /// Its manifest.
        manifest: PathBuf,
    },
    /// The session's agents live in this run.
    Team {
        /// Which.
        run: RunId,
    },
    /// The end of an agent in the background was told: a message of the user's side.
    Told {
        /// The run.
        run: RunId,
        /// The message, from 1 within the run.
        number: u32,
        /// For the model.
        text: String,
    },
    /// What was put right at load and has been said: not said again.
    Repaired {
        /// In the words for people.
        said: Vec<String>,
    },
    /// A process leaves the session in good order; a summary for lists.
    Closed {
        /// When.
        at: Timestamp,
        /// Its name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The beginning of its first prompt.
        title: String,
        /// Prompts so far.
        prompts: u32,
        /// Spent by all processes.
        usage: Usage,
    },
}

/// What a file was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "was", rename_all = "snake_case")]
pub enum Was {
    /// It was not there.
    Absent,
    /// Its content lies beside the session, under this name.
    Kept {
        /// Of the content.
        digest: Digest,
    },
    /// Too large or unreadable: it cannot be put back.
    Unknown,
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
