//! What those who watch are told of a hook.

use super::event::HookEvent;
use std::time::Duration;

/// How far a hook is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookState {
    /// It runs.
    Started,
    /// It ended.
    Finished {
        /// Whether it said no, or failed.
        is_denial: bool,
        /// From start to end.
        took: Duration,
    },
    /// It was ended with what it stood for.
    Cancelled,
}

/// One step of one hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookNews {
    /// When it runs.
    pub event: HookEvent,
    /// As configured.
    pub command: String,
    /// The tool, where it is about a call.
    pub tool: Option<String>,
    /// How far it is.
    pub state: HookState,
}
