//! The commands, one file each.

pub mod agents;
pub mod completions;
pub mod config;
pub mod doctor;
pub mod export;
pub mod init;
pub mod login;
pub mod logout;
pub mod mcp;
pub mod models;
mod plan_file;
pub mod print;
mod problems;
pub mod resume;
pub mod run;
pub mod runs;
mod runtime;
pub mod sandbox;
pub mod saved;
mod shown;
pub mod skills;
pub mod system_prompt;
pub mod trust;
pub mod trusting;
pub mod workflow;

pub use runtime::block_on_task;
