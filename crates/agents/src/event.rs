//! Live news of an agent: one closed enum, many readers.

use crate::effects::CallNo;
use crate::hooks::HookNews;
use claw_providers::usage::Usage;
use futures_util::future::BoxFuture;
use std::time::Duration;
use tokio::sync::mpsc;

/// Where the news of one conversation goes. Bounded: whoever takes them slowly slows the model's stream.
pub trait EventSink: Send + Sync {
    /// Done when there was room. News for nobody are dropped.
    fn send(&self, event: AgentEvent) -> BoxFuture<'_, ()>;
}

impl EventSink for mpsc::Sender<AgentEvent> {
    fn send(&self, event: AgentEvent) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let _ = Self::send(self, event).await;
        })
    }
}

/// News of one conversation, in order.
#[derive(Clone, Debug)]
pub enum AgentEvent {
    /// A request leaves.
    TurnStarted {
        /// From 1.
        turn: u32,
        /// The model asked first.
        model: String,
    },
    /// A byte came from the provider (coalesced): resets the idle timer.
    Alive,
    /// A piece of the answer's text.
    Text(String),
    /// A piece of thinking.
    Thinking(String),
    /// What came in this turn so far is void.
    Withdrawn,
    /// The request waits before its next try.
    Waiting {
        /// For how long.
        delay: Duration,
        /// For people: `rate limited`, `overloaded`, `connection lost`.
        why: &'static str,
        /// The error.
        error: String,
    },
    /// The service is down: one request probes it, this one waits.
    Held {
        /// What the service says.
        why: String,
    },
    /// The next model of the list is used.
    FellBack {
        /// To this model.
        to: String,
        /// The error.
        error: String,
    },
    /// The model's message is whole and in the transcript.
    Answered {
        /// Turn.
        turn: u32,
        /// Its text.
        text: String,
        /// Spent in this attempt so far.
        usage: Usage,
    },
    /// A tool call begins.
    ToolStarted {
        /// Which.
        call: CallNo,
        /// Canonical name.
        tool: String,
        /// One line: command, path, pattern.
        subject: String,
    },
    /// A tool call waits for a person's answer.
    Asking {
        /// Which.
        call: CallNo,
        /// Canonical name.
        tool: String,
    },
    /// A tool call ended.
    ToolEnded {
        /// Which.
        call: CallNo,
        /// Canonical name.
        tool: String,
        /// Whether it failed or was denied.
        is_error: bool,
        /// The result's text for the model, bounded.
        result: String,
        /// What it changed in a file: the lines of a difference, bounded; empty where it changed none.
        patch: Vec<String>,
    },
    /// A hook began, ended or was cancelled.
    Hook(HookNews),
    /// A turn is whole in the transcript: so many bytes of it.
    TurnKept {
        /// Turn.
        turn: u32,
        /// Bytes of the transcript that are whole.
        bytes: u64,
        /// Spent in this attempt so far: what is known of it, should it be killed.
        usage: Usage,
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
    /// How full the model's window is.
    Context {
        /// Tokens of the history.
        used: u64,
        /// The window, where it is known.
        window: Option<u64>,
    },
    /// A word for people that belongs to no other event.
    Note(String),
}
