//! Several outputs become one: computed merges, windows of a merge by agents, and what a parent session is told.
//!
//! Pure. Knows nothing of files, actors or sessions.

mod computed;
mod order;
mod turn;
mod windows;

pub use computed::{compute, concat, dedupe, inputs};
pub use turn::{Counts, MergedTurn, RunSummary, StepSummary};
pub use windows::{Window, size_of, windows};
