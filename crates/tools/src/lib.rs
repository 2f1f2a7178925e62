//! What an agent can do to the machine.
//!
//! Owns tools, processes, the sandbox, patches, search. Knows nothing of models, conversations or workflows.

pub mod background;
pub mod builtin;
pub mod cut;
pub mod error;
pub mod files;
pub mod folder;
mod input;
pub mod names;
pub mod output;
pub mod patch;
mod platform;
pub mod ports;
pub mod process;
pub mod read_state;
pub mod registry;
pub mod sandbox;
pub mod state;
pub mod tasks;
pub mod tool;
pub mod web;
