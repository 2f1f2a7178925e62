//! What comes back while a model answers: one closed enum for every wire.
//!
//! Owns live events and the finished answer. Must not know what is done with them.

use crate::message::Block;
use crate::usage::Usage;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One event of a message's stream, in wire order. `index` names the block.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEvent {
    /// The message begins.
    MessageStart {
        /// The service's id of the message, where it has one.
        id: Option<String>,
        /// The model that answers, as the service names it.
        model: Option<String>,
    },
    /// A text block begins (it may be left out before its first delta).
    TextStart {
        /// Block.
        index: u32,
    },
    /// A piece of text.
    TextDelta {
        /// Block.
        index: u32,
        /// The piece; may be empty.
        text: String,
    },
    /// A piece of thinking.
    ThinkingDelta {
        /// Block.
        index: u32,
        /// The piece; may be empty.
        thinking: String,
    },
    /// A piece of the signature of a thinking block.
    SignatureDelta {
        /// Block.
        index: u32,
        /// The piece.
        signature: String,
    },
    /// A whole block of encrypted thinking.
    RedactedThinking {
        /// Block.
        index: u32,
        /// Opaque.
        data: String,
    },
    /// A tool call begins.
    ToolUseStart {
        /// Block.
        index: u32,
        /// The service's id; may be empty or repeated.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// A piece of the JSON text of a call's input.
    ToolInputDelta {
        /// Block.
        index: u32,
        /// The piece.
        json: String,
    },
    /// A block is whole.
    BlockStop {
        /// Block.
        index: u32,
    },
    /// Usage so far in this message: a later one replaces the fields that it names.
    Usage(UsageReport),
    /// Why the model stopped.
    Stop(StopReason),
    /// The message is whole.
    MessageStop,
    /// The service reports an error inside the stream.
    Error {
        /// Such as `overloaded_error`.
        kind: String,
        /// The service's words.
        message: String,
    },
}

/// Usage as one event tells it; a field that the event does not name is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageReport {
    /// Uncached input tokens.
    pub input: Option<u64>,
    /// Output tokens, cumulative.
    pub output: Option<u64>,
    /// Input tokens read from a cache.
    pub cache_read: Option<u64>,
    /// Input tokens written to a cache.
    pub cache_write: Option<u64>,
}

/// Why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It was done.
    EndTurn,
    /// It wants results of tool calls.
    ToolUse,
    /// The output limit was reached.
    MaxTokens,
    /// A stop sequence of the request.
    StopSequence,
    /// The service's filter or the model refused.
    Refusal,
    /// A server-side pause: ask again with the same history.
    PauseTurn,
    /// A word this version does not know.
    Other(String),
}

/// Live news of one request, over all its tries.
#[derive(Clone, Debug)]
pub enum RequestEvent {
    /// The request left for this model of this provider.
    Sent {
        /// Provider.
        provider: String,
        /// Model as sent.
        model: String,
    },
    /// An event of the stream of the current try.
    Stream(StreamEvent),
    /// What came of the current try is void: take it back from the screen.
    Withdrawn {
        /// The blocks that had come.
        partial: Vec<Block>,
    },
    /// Waiting before the next try.
    Waiting {
        /// For how long from now.
        delay: Duration,
        /// Why.
        why: WaitReason,
        /// The try that failed, from 1 (0: none was made yet).
        attempt: u32,
        /// The error's text.
        error: String,
    },
    /// The next model of the fallback list is used.
    FellBack {
        /// From this model.
        from: String,
        /// To this one.
        to: String,
        /// The error's text.
        error: String,
    },
}

/// Why a request waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// The account's rate limit.
    RateLimit,
    /// The service is overloaded.
    Overloaded,
    /// The connection or the service failed.
    Transient,
    /// The service is down: one request probes it, the others wait.
    Breaker,
}

/// A finished message.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// In order. Tool inputs are objects; see `cut_calls`.
    pub blocks: Vec<Block>,
    /// Why it ended.
    pub stop: StopReason,
    /// Indexes into `blocks` of tool calls whose input was cut or does not parse: never run these. Their input in
    /// `blocks` is `{}`, so that the history stays valid.
    pub cut_calls: Vec<CutCall>,
    /// Spent by this request, failed tries included.
    pub usage: Usage,
    /// The provider that answered.
    pub provider: String,
    /// The model as sent.
    pub model: String,
    /// Tries made, from 1.
    pub attempts: u32,
}

/// A tool call that must not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutCall {
    /// Index into `Answer::blocks`.
    pub block: usize,
    /// Why.
    pub why: CutReason,
}

/// Why a call must not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutReason {
    /// The output limit was reached inside the call.
    OutputLimit,
    /// Its input is no JSON object.
    NotJson,
}
