//! What the core hears and what it orders. Facts in, orders out.

use super::frame::Place;
use crate::addr::StepAddr;
use crate::journal::record::{Answer, EndState, Entry, OutputRef, Question, RunStatus};
use crate::plan::model::{Apply, Base, NodeIx, OnConflict};
use crate::report::event::RunEventKind;
use crate::report::status::EndSignal;
use claw_agents::definition::AgentDefinition;
use claw_agents::effects::CallNo;
use claw_agents::outcome::{Denial, FailureClass};
use claw_kernel::clock::Timestamp;
use claw_kernel::digest::Digest;
use claw_kernel::ids::AgentId;
use claw_providers::usage::Usage;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Place of a step in the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepIx(pub u32);

impl StepIx {
    /// As an index.
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

/// A fact.
#[derive(Debug)]
pub enum Event {
    /// The run begins, or goes on.
    Begin,
    /// The items of a dynamic `each` were read from the disk.
    ItemsRead {
        /// Whose.
        place: Place,
        /// In order.
        items: Result<Vec<Value>, ItemsFailed>,
    },
    /// An attempt ended.
    Finished {
        /// Which step.
        step: StepIx,
        /// Which attempt of it.
        attempt: u32,
        /// How.
        outcome: Outcome,
    },
    /// The wait before the next attempt is over.
    Woke {
        /// Which step.
        step: StepIx,
        /// The attempt that will follow.
        attempt: u32,
    },
    /// Somebody answered a question.
    Answered {
        /// Which step asks.
        step: StepAddr,
        /// What.
        answer: Answer,
    },
    /// A gate has waited as long as it may.
    GateExpired {
        /// Which step.
        step: StepIx,
    },
    /// The first byte of an answer is there, or it was waited for long enough.
    Warmed {
        /// Which step.
        step: StepIx,
    },
    /// Another process holds a lock that a step waits for.
    LockBusy {
        /// Which step.
        step: StepIx,
        /// Which lock.
        name: String,
    },
    /// All locks of a step are held against other processes too.
    LocksHeld {
        /// Which step.
        step: StepIx,
        /// What went wrong, where they cannot be.
        result: Result<(), NotLocked>,
    },
    /// A group has taken as long as it may.
    GroupExpired {
        /// Which step.
        step: StepIx,
    },
    /// The model of an agent wants a child.
    Spawn {
        /// Which step.
        parent: StepIx,
        /// Which attempt of it.
        attempt: u32,
        /// The call that waits for its end.
        call: CallNo,
        /// What it is for.
        order: ChildOrder,
    },
    /// Whether calls of an agent run that are no children.
    Busy {
        /// Which step.
        step: StepIx,
        /// Which attempt of it.
        attempt: u32,
        /// Whether any do.
        is_busy: bool,
    },
    /// The call of a session's conversation that waited for a child was cancelled.
    CallOff {
        /// Whose call.
        parent: StepIx,
        /// Which.
        call: CallNo,
    },
    /// An agent is to end.
    StopAgent {
        /// Which.
        step: StepAddr,
    },
    /// The end of a background agent is in the session's log.
    Delivered {
        /// Which message.
        number: u32,
    },
    /// The user of a session has said something: what it may start counts from here.
    UserSpoke,
    /// The session is left.
    Left,
    /// A person said something to an agent; it is on record and handed over where an attempt runs.
    Steered {
        /// Which step.
        step: StepAddr,
        /// What.
        text: String,
    },
    /// A ceiling of the run's budget is reached: nothing new starts but final nodes.
    BudgetSpent {
        /// Which ceiling, for people.
        reason: String,
    },
    /// A service refuses all: the run waits for a person or for time.
    Pause {
        /// For people.
        reason: String,
        /// When it may go on.
        until: Option<Timestamp>,
    },
    /// Somebody wants the run to stop.
    Cancel {
        /// The signal that said so.
        signal: Option<EndSignal>,
    },
}

/// A child as its parent's model wants it, with its agent found.
#[derive(Clone, Debug)]
pub struct ChildOrder {
    /// Its id over all attempts; `None`: each attempt has one of its own.
    pub id: Option<AgentId>,
    /// What it is.
    pub definition: Arc<AgentDefinition>,
    /// Its task.
    pub prompt: String,
    /// Shown to people.
    pub label: String,
    /// Instead of its definition's.
    pub model: Option<String>,
    /// The call is answered at once; its end is told to the session.
    pub background: bool,
    /// It works in a work tree of its own.
    pub isolated: bool,
}

/// The end of an agent in the background.
#[derive(Clone, Debug)]
pub struct ChildNews {
    /// Which message, from 1 within the run.
    pub number: u32,
    /// Which agent.
    pub step: StepAddr,
    /// Its id.
    pub agent: Option<AgentId>,
    /// Its name.
    pub label: String,
    /// Its definition's name.
    pub subagent_type: String,
    /// The last attempt.
    pub attempt: u32,
    /// How it ended.
    pub state: EndState,
    /// What it gave, or why not.
    pub end: ChildEnd,
}

/// What a call that waits for a child is told.
#[derive(Clone, Debug)]
pub enum ChildEnd {
    /// It is done.
    Done {
        /// Which.
        step: StepAddr,
        /// What it said.
        value: Arc<Value>,
        /// The file that holds the whole of it.
        file: Option<PathBuf>,
        /// Spent on it and on its own children.
        usage: Usage,
    },
    /// It works, or waits for a slot, and the call does not wait for it.
    Begun {
        /// Which.
        step: StepAddr,
        /// So many wait for a slot, itself among them; 0: it has one.
        waiting: usize,
    },
    /// It never started, or did not succeed.
    Failed(String),
}

/// Items could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ItemsFailed {
    /// What and where.
    pub message: String,
}

/// Locks cannot be held against other processes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NotLocked {
    /// What and where.
    pub message: String,
}

/// How an attempt ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The end.
    pub end: OutcomeEnd,
    /// Spent in this attempt; `None` where nothing could be.
    pub usage: Option<Usage>,
    /// What was denied on the way.
    pub denials: Vec<Denial>,
}

/// The end itself.
#[derive(Clone, Debug)]
pub enum OutcomeEnd {
    /// With an output.
    Succeeded {
        /// What it gave.
        value: Arc<Value>,
        /// Where it is kept: in the record, or in a file that is on disk.
        kept: OutputRef,
        /// The file that holds the whole of it, for agents to read.
        file: Option<PathBuf>,
        /// Of the effect's result, where the step is one (a command).
        effect: Option<Digest>,
    },
    /// Without.
    Failed(Failure),
    /// Its token was cancelled.
    Cancelled,
    /// It cannot go on without a person's answer; it starts again with it.
    Asks(Box<Question>),
    /// claw itself stopped it, for this reason: the next attempt goes on from what is whole.
    Interrupted(String),
}

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The class that `retry.on` names.
    pub class: FailureClass,
    /// One line for people.
    pub message: String,
    /// The service asks to wait so long.
    pub retry_after: Option<Duration>,
    /// Until when, for people.
    pub retry_at: Option<Timestamp>,
    /// Of the effect's result, where it happened all the same (a command's exit code).
    pub effect: Option<Digest>,
}

impl Failure {
    /// A failure of a class, with nothing else known.
    pub fn new(class: FailureClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), retry_after: None, retry_at: None, effect: None }
    }
}

/// An order. The actor carries them out in their sequence; every `Record` before another order is durable first.
#[derive(Debug)]
pub enum Command {
    /// Write this down.
    Record {
        /// Which step; `None` for the run.
        step: Option<StepAddr>,
        /// Which attempt.
        attempt: Option<u32>,
        /// What.
        entry: Box<Entry>,
    },
    /// Start an attempt.
    Start(Box<Launch>),
    /// Read the items of a node.
    ReadItems {
        /// Whose.
        place: Place,
        /// From where.
        source: ItemsToRead,
    },
    /// Say `Woke` later.
    WakeAfter {
        /// Which step.
        step: StepIx,
        /// The attempt that will follow.
        attempt: u32,
        /// From now.
        delay: Duration,
    },
    /// Say `GateExpired` later.
    ExpireGate {
        /// Which step.
        step: StepIx,
        /// From now.
        delay: Duration,
    },
    /// Say `Warmed` later, at the latest.
    ExpireWarming {
        /// Which step.
        step: StepIx,
        /// From now.
        delay: Duration,
    },
    /// Say `GroupExpired` later.
    ExpireGroup {
        /// Which step.
        step: StepIx,
        /// From now.
        delay: Duration,
    },
    /// Hold these against other processes, in this order; say `LocksHeld`.
    Lock {
        /// For which step.
        step: StepIx,
        /// Sorted.
        names: Vec<String>,
    },
    /// Let the locks of a step go.
    Unlock {
        /// Which step.
        step: StepIx,
    },
    /// Nobody works in this folder any more: its work is kept on its branch, the folder goes.
    CloseFolder(Folder),
    /// Hand a person's words to the running attempt.
    Steer {
        /// Which step.
        step: StepIx,
        /// What.
        text: String,
    },
    /// The fact just heard is not taken: whoever brought it is told why. Nothing else follows from it.
    Refuse {
        /// For people: what does not hold.
        reason: String,
    },
    /// Tell a waiting call of an agent how its child ended.
    Deliver {
        /// Whose call.
        parent: StepIx,
        /// Which.
        call: CallNo,
        /// What.
        end: Box<ChildEnd>,
    },
    /// Tell the session of the end of a background agent.
    Announce(Box<ChildNews>),
    /// Cancel the running attempt.
    Stop(StepIx),
    /// The end of an attempt is on record: its manifest may say so.
    Settled {
        /// Which step.
        step: StepIx,
        /// Which attempt.
        attempt: u32,
        /// How it ended.
        state: EndState,
        /// Why.
        error: Option<String>,
        /// The class of a failure.
        class: Option<FailureClass>,
        /// Spent on its children and theirs.
        children: Usage,
    },
    /// Write a value that is too long for the journal to a file below the run's folder.
    WriteOutput {
        /// Relative to the run's folder.
        path: String,
        /// What.
        value: Arc<Value>,
    },
    /// Tell those who watch.
    Tell {
        /// Which step; `None` for the run.
        step: Option<StepAddr>,
        /// Which attempt.
        attempt: Option<u32>,
        /// What.
        kind: RunEventKind,
    },
    /// A node is final: counted on the board.
    NodeClosed,
    /// The run is over.
    End(RunEnd),
}

/// How the run is over.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEnd {
    /// Derived from the steps.
    pub status: RunStatus,
    /// Of the process.
    pub exit_code: u8,
    /// `workflow.result`, or the outputs of the terminal nodes.
    pub result: Value,
    /// Why it stopped, where it did not end by itself.
    pub reason: Option<String>,
}

/// Where the items of a node are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemsToRead {
    /// Paths that match.
    Glob {
        /// Patterns.
        include: Vec<String>,
        /// Left out.
        exclude: Vec<String>,
    },
    /// Lines of a file.
    Lines(String),
    /// JSON documents of a file, one a line.
    Jsonl(String),
}

/// One attempt, ready to start.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Which step.
    pub step: StepIx,
    /// Of which node.
    pub node: NodeIx,
    /// Its address.
    pub addr: StepAddr,
    /// From 1, over all takes.
    pub attempt: u32,
    /// Shown to people.
    pub label: String,
    /// Its content key.
    pub key: Digest,
    /// What runs.
    pub work: Prepared,
    /// The file of the workspace that its output is written to.
    pub write: Option<String>,
    /// Files that it must or may leave.
    pub artifacts: Vec<PreparedArtifact>,
    /// The first byte of its answer is waited for: say `Warmed`.
    pub warms: bool,
    /// A folder and a branch other than the workspace.
    pub folder: Option<Folder>,
    /// What persons said to earlier attempts of this step, for one that starts anew.
    pub said: Vec<String>,
}

/// A folder and a branch that a step, or a group, works in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Folder {
    /// The isolated step or group step: with the attempt it names folder and branch.
    pub owner: StepAddr,
    /// From 1, over all takes; of a group always 1: it has one folder for all iterations and takes.
    pub attempt: u32,
    /// What a fresh one starts from.
    pub base: Base,
    /// The attempt whose branch it starts from instead.
    pub goes_on_from: Option<u32>,
}

/// A file that a step leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedArtifact {
    /// Relative to the workspace.
    pub path: String,
    /// Missing fails the step.
    pub required: bool,
    /// Bytes.
    pub max_size: Option<u64>,
}

/// What runs: all texts expanded.
#[derive(Clone, Debug)]
pub enum Prepared {
    /// An agent.
    Agent(PreparedAgent),
    /// A command.
    Command(PreparedCommand),
    /// A value that is known: only its file is written.
    Value(Arc<Value>),
    /// A merge of branches.
    GitMerge(PreparedGitMerge),
}

/// A merge of branches.
#[derive(Clone, Debug)]
pub struct PreparedGitMerge {
    /// In the order in which they are applied.
    pub branches: Vec<Folder>,
    /// How the work lands.
    pub apply: Apply,
    /// Run in the merged tree behind each branch.
    pub verify: Option<Vec<String>>,
    /// What a conflict does.
    pub on_conflict: OnConflict,
    /// What a person chose at the last conflict.
    pub answer: Option<Answer>,
}

/// An agent's texts.
#[derive(Clone, Debug)]
pub struct PreparedAgent {
    /// Its id.
    pub id: AgentId,
    /// Its task.
    pub prompt: String,
    /// Behind its system prompt.
    pub system_append: Option<String>,
    /// Files outside the workspace that its prompt names.
    pub readable: Vec<PathBuf>,
    /// Files whose text goes behind the prompt.
    pub attach: Vec<String>,
    /// The attempt whose transcript it goes on from.
    pub goes_on_from: Option<u32>,
    /// Why what that attempt gave was refused.
    pub fault: Option<String>,
    /// Where another agent started it.
    pub child: Option<PreparedChild>,
}

/// What an agent that another one started has of its own.
#[derive(Clone, Debug)]
pub struct PreparedChild {
    /// Its definition behind those of the agents above it, without the node's own.
    pub line: Vec<Arc<AgentDefinition>>,
    /// Instead of its definition's.
    pub model: Option<String>,
    /// Its parent.
    pub parent: Option<AgentId>,
}

/// A command's texts.
#[derive(Clone, Debug)]
pub struct PreparedCommand {
    /// What runs.
    pub line: PreparedLine,
    /// Relative to the workspace.
    pub cwd: Option<String>,
    /// Beside the allow-list.
    pub env: Vec<(String, String)>,
    /// Its standard input.
    pub stdin: Option<String>,
}

/// A program with arguments, or a text for the shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreparedLine {
    /// Never through a shell.
    Argv(Vec<String>),
    /// As it stands in the file.
    Shell(String),
}
