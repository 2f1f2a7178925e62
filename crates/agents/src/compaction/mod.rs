//! Compaction: when a history is too full for the model's window, what goes, and the text that stands for it.
//!
//! Owns need, cut and summary; all of it pure. Must not know requests, transcripts or screens.

mod estimate;
mod need;
mod outline;
mod plan;
mod question;
mod settings;
mod summary;

pub use estimate::{tokens_of, tokens_of_all};
pub(crate) use need::Fullness;
pub(crate) use plan::{Plan, Squeeze};
pub use question::is_summary;
pub(crate) use question::{SYSTEM, question};
pub use settings::{CompactionSettings, Threshold};
