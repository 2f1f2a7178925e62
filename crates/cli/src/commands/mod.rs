//! The commands, one file each.

pub mod completions;
pub mod init;
pub mod models;
mod plan_file;
pub mod print;
mod problems;
pub mod run;
pub mod runs;
mod runtime;
mod shown;
pub mod workflow;
