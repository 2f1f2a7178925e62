//! The model as a conversation sees it: one request, one answer, live events.
//!
//! Owns the door. Must not know services, wires or accounts.

mod door;
mod providers;

pub use claw_providers::client::ModelTraits;
pub use door::Model;
