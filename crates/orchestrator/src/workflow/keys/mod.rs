//! The one table of keys. A file for each kind of node, for what every node has, and for the top level.
//!
//! Reading, near names, the schema for editors and the reference page all come from here.

mod agent;
mod by_kind;
mod command;
mod each;
mod gate;
mod group;
mod merge;
mod node;
mod set;
mod table;
mod top;
mod workflow;

pub use by_kind::{kinds_with, of, own};
pub use node::common;
pub use table::{Key, NodeKind, State, Ty};
pub use top::{TOP, agents_table, inputs_table};
