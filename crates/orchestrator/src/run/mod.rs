//! A run from the outside: started or gone on with, watched, stopped, and what it came to.
//!
//! Owns what surrounds the schedule: the run's folder, its lock, its past, and the hands that carry steps out.

mod agent_step;
mod artifacts;
mod base;
mod children;
mod command_step;
mod error;
mod git_step;
mod given;
pub(crate) mod hands;
mod items;
mod locks;
mod mailbox;
mod orders;
mod past;
mod picture;
mod place;
mod select;
mod session;
mod start;
mod stub;
mod summing;
mod value_step;

pub use error::{NoSuchStep, RunError};
pub use orders::{NotTaken, RunOrders};
pub use select::Again;
pub use session::{SessionTeam, TeamEnd, TeamNews, TeamOptions, TeamRun};
pub use start::{ResumeFrom, RunHandle, RunOptions, RunServices, start};
pub use stub::{StubError, StubProblem, Stubs};
pub use summing::resume_command;
