//! The ground floor: supervision and tasks, durable files, ids, safe names, redaction, visible control characters,
//! clock and cancel token.
//!
//! Holds no word of the domain: nothing of models, tools, agents or workflows.

pub mod cancel;
pub mod clock;
pub mod digest;
pub mod durable;
pub mod ids;
pub mod near;
pub mod redact;
pub mod safe_name;
pub mod supervise;
pub mod tasks;
pub mod visible;
