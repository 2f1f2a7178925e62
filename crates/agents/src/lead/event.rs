//! What the lead tells: one closed enum, in order.

use crate::event::AgentEvent;
use crate::outcome::AgentOutcome;
use crate::permission::Permission;
use claw_kernel::ids::{RunId, SessionId};
use claw_providers::message::Block;
use claw_providers::usage::Usage;
use std::path::PathBuf;

/// News of the lead, in order. The channel is bounded: whoever reads slowly slows the model's stream.
#[derive(Clone, Debug)]
pub enum LeadEvent {
    /// The session is open, or another one took its place (`Clear`). First.
    Opened(Box<LeadView>),
    /// A turn begins with this prompt.
    TurnStarted {
        /// From 1 within the session.
        prompt: u32,
    },
    /// News of the conversation.
    Agent(AgentEvent),
    /// A turn is over. The lead is idle next, or begins a turn with what waits.
    TurnEnded {
        /// Which prompt.
        prompt: u32,
        /// How it ended; usage, calls and denials of this turn alone.
        outcome: Box<AgentOutcome>,
    },
    /// Messages that were said and that no model has heard: the turn was interrupted.
    Unheard {
        /// One list for each message.
        messages: Vec<Vec<Block>>,
    },
    /// The end of a background agent is in the session's log.
    Told {
        /// The run.
        run: RunId,
        /// The message.
        number: u32,
    },
    /// The older messages gave way to a summary.
    Compacted {
        /// Messages removed.
        removed: usize,
        /// Tokens of the history before, estimated.
        before: u64,
        /// After.
        after: u64,
        /// Why the summary is not the model's, where it is not.
        without_model: Option<String>,
    },
    /// What has been spent.
    Reckoning(Reckoning),
    /// How full the model's window is.
    Context {
        /// Tokens that the next request holds, estimated from the last real count.
        used: u64,
        /// The window, where it is known.
        window: Option<u64>,
    },
    /// Another model answers from now on.
    ModelSet {
        /// The first of the list.
        model: String,
    },
    /// Another mode holds from the next turn on.
    PermissionSet {
        /// The mode.
        permission: Permission,
    },
    /// A folder was added.
    DirAdded {
        /// Resolved.
        path: PathBuf,
    },
    /// The session stands before a prompt again.
    Rewound {
        /// That prompt.
        prompt: u32,
        /// What it said: for the input line.
        said: Vec<Block>,
        /// Files put back, each with what was wrong where it could not be.
        files: Vec<(PathBuf, Option<String>)>,
    },
    /// The session has another name.
    Renamed {
        /// Empty: none.
        name: String,
    },
    /// An order that could not be carried out, for people.
    Refused {
        /// The order: `compact`, `rewind`, `add-dir`, …
        what: &'static str,
        /// Why, and what to do.
        why: String,
    },
    /// A word for people.
    Note(String),
    /// Nothing runs and nothing waits.
    Idle,
    /// The lead has ended and its session is closed. Last.
    Closed,
}

/// A session as it stands.
#[derive(Clone, Debug)]
pub struct LeadView {
    /// Its id.
    pub session: SessionId,
    /// Its name, where the user gave one.
    pub name: Option<String>,
    /// Its file.
    pub path: PathBuf,
    /// The model asked first.
    pub model: String,
    /// What may be done.
    pub permission: Permission,
    /// The workspace.
    pub workspace: PathBuf,
    /// The run of its agents, where it has one.
    pub team: Option<RunId>,
    /// Messages of the history.
    pub messages: usize,
    /// The prompts of the history, oldest first: number and first line.
    pub prompts: Vec<(u32, String)>,
    /// Spent before, where it goes on from an earlier process.
    pub spent: Usage,
    /// What was put right when it was read, for people.
    pub repairs: Vec<String>,
}

/// Money and tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reckoning {
    /// Of the running or last turn.
    pub turn: Usage,
    /// Of the session, over all its processes.
    pub session: Usage,
}
