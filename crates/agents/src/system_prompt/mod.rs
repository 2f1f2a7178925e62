//! The system prompt: built from parts, the same for all agents of one kind in one folder, so that a cache can hold it.
//!
//! Owns its words. Must not know which model reads them.

mod build;
mod memory;

pub(crate) use build::{Parts, build};
pub use memory::{MemoryFiles, load_memory};
