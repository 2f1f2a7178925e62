//! One request becomes one stream of events, whichever service answers.
//!
//! Owns wires (Anthropic Messages, chat completions), retries, limits of an account, routing and prices.
//! Knows nothing of tools, sessions or terminals.

pub mod assemble;
pub mod client;
pub mod config;
pub mod credentials;
mod engine;
pub mod error;
pub mod event;
mod http;
pub mod limiter;
pub mod message;
pub mod models;
pub mod profile;
pub mod request;
pub mod retry;
pub mod route;
pub mod saved;
pub mod sse;
pub mod usage;
pub mod wire;

pub use client::{ModelTraits, Providers, ResolvedModel};
pub use config::{ProfileSettings, ProfilesTable, ProvidersConfig};
