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
    /// It is over and still looked at.
    Over { state: &'static str },
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
    /// The row that is looked at.
    pub(super) chosen: Option<usize>,
    /// Its output, where that is open.
    pub(super) pane: Option<PaneView>,
    /// The last line.
    pub(super) foot: FootView,
}

/// The output of one agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PaneView {
    /// The end of it, wrapped for the screen, two columns from its edge.
    pub(super) lines: Vec<String>,
}

/// The line below all others.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum FootView {
    /// Nobody has keys to press.
    #[default]
    Nothing,
    /// What keys there are; left out where there is little room.
    Hint(&'static str),
    /// A question.
    Ask(String),
    /// A message that is being typed.
    Typed { to: String, text: String },
}
