//! One request becomes one stream of events, whichever service answers.
//!
//! Owns wires (Anthropic Messages, chat completions), retries, limits of an account, routing and prices.
//! Knows nothing of tools, sessions or terminals.

pub mod error;
pub mod event;
pub mod message;
pub mod request;
pub mod usage;
