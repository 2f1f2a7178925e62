//! What an agent may do: modes, the first gate, and whom to ask.
//!
//! Owns decisions about effects. Must not know which tool has them or how a question is shown.

mod ask;
mod decide;
mod mode;

pub use ask::{AskRequest, Asker, NobodyToAsk, Reply};
pub use decide::{Decision, Places, Wall, decide};
pub use mode::{Asking, Permission, Reach, UnknownMode};
