//! The journal: written first, then acted on. The truth about a run; manifests are its picture.

pub mod codec;
pub mod error;
pub mod history;
pub mod reader;
pub mod record;
pub mod store;
