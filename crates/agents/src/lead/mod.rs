//! The lead: a conversation that lives over many prompts, with its session on disk.
//!
//! Owns what a person can do to it and what a screen is told. Must not know terminals, workflows or flags.

mod command;
mod event;
mod handle;
mod images;
mod life;
mod orders;
mod setup;
#[cfg(test)]
mod tests;
mod turn;

pub use command::{LeadCommand, Rewinding};
pub use event::{LeadEvent, LeadView, Reckoning};
pub use handle::{Lead, LeadOrders, NotOrdered};
pub use images::with_images;
pub use setup::LeadSetup;
