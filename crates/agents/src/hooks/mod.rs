//! Hooks: commands of people that see, change or stop what agents do.
//!
//! Owns events, configuration, payload, how output is read, how several answers become one. Must not know settings
//! files, turns or screens.

mod actor;
mod config;
mod event;
mod fire;
mod fold;
mod matcher;
mod news;
mod payload;
mod reply;
#[cfg(test)]
mod tests;

pub use config::{HookProblem, HookSet, HookSource, HookSpec};
pub use event::HookEvent;
pub use fire::Hooks;
pub(crate) use fire::Moment;
pub use fold::{HookDecision, Verdict};
pub use news::{HookNews, HookState};
pub use payload::{Happening, Scene};
