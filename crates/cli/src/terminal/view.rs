//! What the screen shows, free of how the run keeps it.

use std::time::Duration;

/// The run as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct HeaderView {
    pub(super) workflow: String,
    pub(super) elapsed: Duration,
    pub(super) nodes_done: usize,
    pub(super) nodes: usize,
    pub(super) steps_done: usize,
    pub(super) steps: usize,
    pub(super) running: usize,
    pub(super) waiting: usize,
    pub(super) done: usize,
    pub(super) failed: usize,
    pub(super) tokens: u64,
    pub(super) usd: Option<f64>,
    /// The mode, where it is dangerous.
    pub(super) danger: Option<String>,
    /// What goes on with the run itself, such as `stopping`.
    pub(super) notice: Option<String>,
}

/// What a step is doing.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Doing {
    /// In the queue.
    Queued { position: usize },
    /// At work, with the tool in progress.
    Working { tool: Option<(String, String)> },
    /// The answer comes: so many characters of it are there.
    Writing { chars: usize },
    /// It waits; the words say for what.
    Waiting { on: String },
    /// It waits for a person.
    Asking,
}

/// One step at work.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RowView {
    pub(super) label: String,
    pub(super) phase: Option<String>,
    pub(super) attempt: u32,
    pub(super) elapsed: Duration,
    pub(super) turn: u32,
    pub(super) doing: Doing,
    pub(super) up: u64,
    pub(super) down: u64,
    pub(super) usd: Option<f64>,
}

/// A node with many items.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ManyView {
    pub(super) label: String,
    pub(super) total: usize,
    pub(super) done: usize,
    pub(super) failed: usize,
    pub(super) running: usize,
}

/// All of it at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct View {
    pub(super) header: HeaderView,
    pub(super) many: Vec<ManyView>,
    /// The most telling first; at most as many as a screen could show.
    pub(super) rows: Vec<RowView>,
    /// Steps at work that are not in `rows`.
    pub(super) more: usize,
}
