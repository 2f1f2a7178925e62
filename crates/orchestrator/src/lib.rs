//! Workflow files, plans, the scheduler, runs on disk.
//!
//! Knows nothing of terminals; what a screen shows comes out of it as run events.

pub mod addr;
pub mod control;
pub mod expr;
pub mod journal;
pub mod ledger;
pub mod manifest;
pub mod merge;
pub mod plan;
pub mod report;
pub mod run;
pub mod rundir;
pub mod scheduler;
pub mod workflow;
pub mod worktree;
