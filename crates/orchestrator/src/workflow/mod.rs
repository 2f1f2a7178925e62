//! The workflow file as written: its keys, its reader, its problems.
//!
//! Owns the one table of keys that drives reading, near names, the schema for editors and the reference page. Knows
//! nothing of graphs, agents or runs.

pub mod file;
pub mod keys;
pub mod problem;
pub mod reader;
pub mod reference;
pub mod schema;
pub mod spans;
pub mod units;
