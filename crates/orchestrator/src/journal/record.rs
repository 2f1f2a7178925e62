//! What a journal line says: the types that writer and reader share. A closed enum; the format has a version.
//!
//! Knows nothing of files: see `store.rs`.

use crate::addr::StepAddr;
use claw_agents::outcome::{Denial, FailureClass};
use claw_kernel::clock::Timestamp;
use claw_kernel::digest::Digest;
use claw_kernel::durable::Durability;
use claw_kernel::ids::AgentId;
use claw_providers::usage::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// The version that this program writes.
pub const VERSION: u32 = 1;

/// One line of `journal.jsonl`, without its checksum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Format.
    pub v: u32,
    /// Rises by one through all takes, from 1.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// Which step; `None` for the run itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepAddr>,
    /// Which attempt of it, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// What happened.
    #[serde(flatten)]
    pub entry: Entry,
}

/// What happened. `Entry::durability` says which are on disk before claw acts on them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", content = "data", rename_all = "snake_case")]
pub enum Entry {
    /// A process took the run.
    Take(Take),
    /// The items of an `each` node are known.
    Expanded {
        /// Keys in the order of the input.
        keys: Vec<String>,
    },
    /// The step may start.
    Admitted {
        /// Its content key.
        key: Digest,
        /// Where it is an agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentId>,
    },
    /// An effect is about to happen.
    Intent {
        /// A command's step key, or the tool of a call.
        what: String,
        /// Call within the agent, `<turn>.<index>`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<String>,
    },
    /// It happened.
    Done {
        /// Of its result.
        digest: Digest,
        /// Call within the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<String>,
    },
    /// A turn is whole in the transcript.
    Turn {
        /// From 1.
        turn: u32,
        /// Bytes of the transcript that are whole.
        bytes: u64,
        /// Spent in this attempt so far.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    },
    /// A model started a child.
    Spawned {
        /// Its address.
        child: StepAddr,
        /// The call that it answers, `<turn>.<index>`.
        call: String,
        /// What it is for, where a session's conversation started it: it may have to go on without being asked for again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        order: Option<Box<SpawnedOrder>>,
    },
    /// The end of a background agent is to be told to the session's conversation.
    MergeEnqueued {
        /// Which message, from 1 within the run: the agent's own number.
        number: u32,
    },
    /// It is in the session's log.
    MergeDelivered {
        /// Which message.
        number: u32,
    },
    /// A person is asked.
    Asked(Question),
    /// Somebody answered.
    Answered(Answer),
    /// A person said something to the agent.
    Steered {
        /// From 1 within the step.
        number: u32,
        /// As it was said.
        text: String,
    },
    /// The step is final, or this attempt is (`Failed` with `retry`).
    Ended(Ended),
    /// The run waits for something that only time or a person brings.
    Paused {
        /// For people.
        reason: String,
        /// When it may go on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// The run is over, for this take.
    RunEnded {
        /// Derived.
        status: RunStatus,
        /// Of the process.
        exit_code: u8,
        /// Over all takes.
        usage: Usage,
    },
    /// Lines that could not be read were accepted as lost: stands in their place.
    Damaged {
        /// Where they stood.
        offset: u64,
        /// How long they were, moved to `journal.damaged`.
        bytes: u64,
        /// The last `seq` that is lost; this record has the first.
        through: u64,
        /// Steps that may have been spoken of: in doubt.
        steps: Vec<StepAddr>,
    },
}

impl Entry {
    /// Whether claw waits for the disk before it acts on such a record.
    pub fn durability(&self) -> Durability {
        match self {
            Self::Take(_)
            | Self::Admitted { .. }
            | Self::Intent { .. }
            | Self::Done { .. }
            | Self::Ended(_)
            | Self::Spawned { .. }
            | Self::MergeEnqueued { .. }
            | Self::Answered(_)
            | Self::Steered { .. }
            | Self::Paused { .. }
            | Self::RunEnded { .. }
            | Self::Damaged { .. } => Durability::Synced,
            Self::Expanded { .. } | Self::Asked(_) | Self::Turn { .. } | Self::MergeDelivered { .. } => {
                Durability::Written
            }
        }
    }
}

/// What an agent of a session is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnedOrder {
    /// Its id, over all attempts.
    pub id: AgentId,
    /// The name of its definition.
    pub agent: String,
    /// Its task.
    pub prompt: String,
    /// Shown to people.
    pub label: String,
    /// Instead of its definition's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its parent goes on meanwhile, and is told of its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
    /// It works in a work tree of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub isolated: bool,
}

/// A process took the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Take {
    /// From 1.
    pub take: u32,
    /// Process.
    pub pid: u32,
    /// The kernel's boot id, where it tells one.
    pub boot_id: String,
    /// Of claw.
    pub version: String,
    /// Of the file's text.
    pub file: Digest,
    /// Of the plan's static keys.
    pub plan: Digest,
    /// Of the inputs (secrets keyed).
    pub inputs: Digest,
}

/// What a person is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The question.
    pub message: String,
    /// Values shown with it, each with the expression that gave it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub show: Vec<Shown>,
    /// The answers.
    pub choices: Vec<String>,
    /// Taken where nobody can be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Until when an answer is waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// A value beside a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    /// The expression.
    pub name: String,
    /// What it gave.
    pub value: Value,
}

/// What somebody answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// One of the choices.
    pub choice: String,
    /// A word with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Who.
    pub by: AnsweredBy,
}

/// Who answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnsweredBy {
    /// A person.
    Person,
    /// `default`: nobody could be asked.
    Default,
    /// `on_timeout`.
    Timeout,
}

/// A step or an attempt ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// How.
    pub state: EndState,
    /// Its content key (as `admitted` said), where it was admitted or cached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Digest>,
    /// What it gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputRef>,
    /// Why it failed, was skipped or cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Class of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<FailureClass>,
    /// A further attempt follows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retry: bool,
    /// Spent in this attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What was denied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denials: Vec<Denial>,
}

/// Final states of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndState {
    /// It gave its output.
    Succeeded,
    /// It did not.
    Failed,
    /// `join` or `when` said no.
    Skipped,
    /// Stopped from outside.
    Cancelled,
    /// An earlier success of the same content stands for it.
    Cached,
    /// claw itself stopped this attempt (pause, shut-down): the next one goes on from its transcript.
    Interrupted,
}

/// Where an output is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputRef {
    /// Here, up to 16 KiB of JSON text.
    Inline(Arc<Value>),
    /// In a file below the run's folder that holds the JSON text of the value.
    File {
        /// Relative to the run's folder.
        path: String,
        /// Its length.
        bytes: u64,
        /// Of its bytes.
        digest: Digest,
    },
}

/// How a run stands. Derived from its steps, never set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// A process works on it.
    Running,
    /// All required nodes succeeded.
    Succeeded,
    /// A required node failed.
    Failed,
    /// Only optional ones failed.
    Partial,
    /// It waits for time or a person.
    Paused,
    /// A budget or limit ended it.
    Stopped,
    /// It was cancelled.
    Cancelled,
    /// Its process is gone without a word.
    Interrupted,
}
