//! The lead: a conversation that lives over many prompts, with its session on disk.
//!
//! Owns what a person can do to it and what a screen is told. Must not know terminals, workflows or flags.

mod command;
mod event;

pub use command::{LeadCommand, Rewinding};
pub use event::{LeadEvent, LeadView, Reckoning};
