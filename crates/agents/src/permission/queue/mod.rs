//! The one queue of questions over all agents of a process: one after another, each with its agent's name.
//!
//! Owns who waits and what was answered for the session. Must not know how a question is shown.

mod actor;
mod core;
mod handle;

pub use handle::{Answer, Permissions, Presenter};
