//! What an agent can do to the machine.
//!
//! Owns tools, processes, the sandbox, patches, search. Knows nothing of models, conversations or workflows.

pub mod error;
pub mod output;
pub mod tool;
