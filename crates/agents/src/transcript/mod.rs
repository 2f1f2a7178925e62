//! The log of one conversation: append-only JSON lines, versioned; the prompt is its first record.
//!
//! Owns the shape, the writing and the repair at load. Must not know why a conversation ended or goes on.

mod load;
mod record;
mod writer;

pub(crate) use load::INTERRUPTED;
pub use load::{Loaded, OpenCall, Repair, TranscriptError, load};
pub use record::{End, Record, VERSION, Verdict};
pub(crate) use writer::{Opened, Transcript};
