//! Workflow files, plans, the scheduler, runs on disk.
//!
//! Knows nothing of terminals; what a screen shows comes out of it as run events.

pub mod addr;
pub mod plan;
