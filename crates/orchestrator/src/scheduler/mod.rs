//! Decides which step runs next, and carries it out.
//!
//! The core (`core`, `resolve`, `settle`, `gate`, `prepare`) is pure: no clock, no task, no file. The actor round it
//! writes the journal, then acts.

mod actor;
mod core;
mod event;
mod gate;
mod prepare;
mod resolve;
pub(crate) mod schema;
mod settle;
mod state;
mod status;
#[cfg(test)]
mod tests;
mod trees;

pub(crate) use actor::{ActorArguments, RunFinish, RunMsg, RunRef, Settlement};
pub use core::{Schedule, ScheduleContext};
pub use event::{
    Command, Event, Failure, Folder, ItemsFailed, ItemsToRead, Launch, Outcome, OutcomeEnd, Prepared,
    PreparedAgent, PreparedArtifact, PreparedCommand, PreparedGitMerge, PreparedLine, RunEnd, StepIx,
};
pub use state::{Earlier, NoPast, Past, PastSuccess};
pub use status::{NodeStanding, StepStanding};
