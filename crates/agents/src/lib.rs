//! Conversations, roles, permissions: the only place where models and tools meet.
//!
//! Knows nothing of workflows, runs on disk or terminals.

pub mod definition;
pub mod effects;
pub mod event;
pub mod outcome;
pub mod permission;
pub mod request;
