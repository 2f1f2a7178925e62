//! Conversations, roles, permissions: the only place where models and tools meet.
//!
//! Knows nothing of workflows, runs on disk or terminals.

pub mod children;
pub mod compaction;
mod conversation;
pub mod definition;
pub mod effects;
pub mod event;
pub mod hooks;
pub mod lead;
pub mod library;
pub mod mcp;
pub mod model;
pub mod outcome;
pub mod permission;
pub mod purse;
pub mod request;
pub mod roles;
mod sandboxes;
pub mod services;
pub mod session;
pub mod settings;
mod start;
pub mod system_prompt;
mod text_calls;
pub mod transcript;
pub mod trust;

pub use conversation::{Heard, NotSteered, Orders, RunningAgent, offered};
pub use start::{start, tools_of};
