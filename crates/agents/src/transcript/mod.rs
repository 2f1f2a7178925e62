//! The log of one conversation: append-only JSON lines, versioned; the prompt is its first record.
//!
//! Owns the shape, the writing and the repair at load. Must not know why a conversation ended or goes on.

mod facts;
mod load;
mod raw;
mod record;
mod writer;

pub(crate) use facts::first_line;
pub use facts::{Facts, Head, Snapshot, StartedAgent};
pub use load::{Loaded, OpenCall, Repair, TranscriptError, load};
pub(crate) use raw::{INTERRUPTED, interrupted};
pub use raw::{Mark, cut_results};
pub use record::{End, Record, VERSION, Verdict, Was};
pub(crate) use writer::{Opened, Transcript};
