//! Manifests and outputs of attempts: pictures of what the journal says, for people and other programs.
//!
//! Owns their shapes and is their only writer. Decides nothing: no run depends on what stands in a manifest.

pub mod build;
pub mod output;
pub mod rebuild;
pub mod schema;
pub mod store;
