//! The door through which a conversation tells its owner of effects: written first, then acted on.

use claw_kernel::digest::Digest;
use futures_util::future::BoxFuture;
use std::fmt;
use std::path::PathBuf;

/// A call within a conversation, numbered by claw: `<turn>.<index>`, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallNo {
    /// Turn.
    pub turn: u32,
    /// Place within the turn's message.
    pub index: u32,
}

impl fmt::Display for CallNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.turn, self.index)
    }
}

/// The log could not be written: the conversation must stop.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the journal: {0}")]
pub struct EffectLogFailed(pub String);

/// Where intents go. The owner of the run implements it on its journal.
pub trait EffectLog: Send + Sync {
    /// Durable when the future is done: only then may the effect happen.
    fn intent(&self, call: CallNo, tool: &str) -> BoxFuture<'_, Result<(), EffectLogFailed>>;
    /// A tool of claw's own is about to write these files: what they are now may be kept. Done before it writes.
    fn before_write(&self, call: CallNo, writes: &[PathBuf]) -> BoxFuture<'_, Result<(), EffectLogFailed>> {
        let _ = (call, writes);
        Box::pin(std::future::ready(Ok(())))
    }
    /// The effect happened and this is the digest of its result. Need not be awaited for long.
    fn done(&self, call: CallNo, result: Digest) -> BoxFuture<'_, Result<(), EffectLogFailed>>;
}

/// Effects that nobody keeps a journal of: a conversation outside a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEffectLog;

impl EffectLog for NoEffectLog {
    fn intent(&self, _: CallNo, _: &str) -> BoxFuture<'_, Result<(), EffectLogFailed>> {
        Box::pin(std::future::ready(Ok(())))
    }
    fn done(&self, _: CallNo, _: Digest) -> BoxFuture<'_, Result<(), EffectLogFailed>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
