//! One conversation: a pure turn machine and the actor round it.
//!
//! Owns history, turns, calls and their results. Must not know who scheduled it or what is shown.

mod actor;
mod asking;
mod calls;
mod changed;
mod compacting;
mod core;
mod history;
mod hooked;
mod messages;
mod offer;
mod paying;
mod reading;
mod recall;
mod running;
mod schema;
mod shell;
mod steering;
#[cfg(test)]
pub(crate) mod tests;
mod toolbox;
mod withdrawn;

pub(crate) use calls::CallDesk;
pub(crate) use compacting::{Compacting, Summarised, Summarising, applied};
pub(crate) use core::{AnswerRule, Beginning, Conversation, Rules};
pub(crate) use history::History;
#[cfg(test)]
pub(crate) use history::fault;
pub(crate) use hooked::{Refused, at_session_start, at_the_beginning, at_the_end, at_the_prompt, heeds_stop};
pub(crate) use messages::ToUser;
pub(crate) use offer::Offer;
pub(crate) use recall::recall;
pub(crate) use running::{Ended, run, without_work};
pub use running::{NotSteered, Orders, RunningAgent};
pub(crate) use schema::AnswerSchema;
pub(crate) use shell::{Remains, RequestShape, Running, Shell, Spent, failed};
pub use steering::Heard;
pub use toolbox::offered;
pub(crate) use toolbox::{ToolNames, Toolbox};
