//! The checked graph: what a run consumes and `--plan` prints. A pure function of file, inputs and surroundings.

mod agents;
mod build;
mod command;
pub mod decl;
pub mod drawing;
mod each;
pub mod estimate;
mod facts;
mod files;
mod forest;
mod from_source;
mod gate;
mod graph;
mod group;
mod inputs;
mod key;
mod limits;
mod merge;
pub mod model;
mod names;
mod node;
mod output;
mod paths;
pub mod print;
mod reads;
pub mod render;
pub mod session;
mod shape;
pub mod surroundings;
mod work;
mod writers;

pub use command::{OptionLike, check_argv};
pub use inputs::{Given, InputArgs, InputsFileError};

#[cfg(test)]
pub(crate) mod tests;
