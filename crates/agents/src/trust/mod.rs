//! Trust: what a repository brings counts only after the user's decision on that very item.
//!
//! Owns items, their digests and the decisions on disk. Must not know what an item does, or how a question is put.

mod error;
mod item;
mod store;

pub use error::TrustError;
pub use item::{ItemKind, TrustItem};
pub use store::{Decided, Decision, Decisions, TrustFile};
