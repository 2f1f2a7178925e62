//! Decides which step runs next, and carries it out.
//!
//! The core (all but `actor`) is pure: no clock, no task, no file. The actor round it
//! writes the journal, then acts.

mod actor;
mod ask;
mod children;
mod core;
mod event;
mod frame;
mod gate;
mod locks;
mod owner;
mod prepare;
mod resolve;
pub(crate) mod schema;
mod session;
mod settle;
mod state;
mod status;
mod stopping;
#[cfg(test)]
mod tests;
mod trees;

pub(crate) use actor::{ActorArguments, RunFinish, RunMsg, RunRef, Settlement};
pub use core::{Schedule, ScheduleContext};
pub use event::{
    ChildEnd, ChildNews, ChildOrder, Command, Event, Failure, Folder, ItemsFailed, ItemsToRead, Launch,
    NotLocked, Outcome, OutcomeEnd, Prepared, PreparedAgent, PreparedArtifact, PreparedChild,
    PreparedCommand, PreparedGitMerge, PreparedLine, RunEnd, StepIx,
};
pub use frame::{FrameIx, Place};
pub use state::{Earlier, NoPast, Past, PastMate, PastSuccess, Wanted};
pub use status::{NodeStanding, StepStanding};
