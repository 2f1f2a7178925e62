//! The commands, one file each.

pub mod agents;
pub mod completions;
pub mod config;
pub mod login;
pub mod logout;
pub mod models;
mod plan_file;
pub mod print;
mod problems;
pub mod run;
pub mod runs;
mod runtime;
mod shown;
<<<<<<< HEAD
pub mod skills;
=======
pub mod trust;
mod trusting;
>>>>>>> 60333b2195ac8a0359ede614fa4306a108fd8023
pub mod workflow;
