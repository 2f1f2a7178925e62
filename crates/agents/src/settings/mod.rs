//! Settings: what people wrote, where it stands, and what of it counts.
//!
//! Owns the files, their order and their diagnostics. Must not know what a rule, a hook or a server does.

mod origin;

pub use origin::{Origin, Scope, Sourced};
