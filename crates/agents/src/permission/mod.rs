//! What an agent may do: modes, rules, the order of decision, and whom to ask.
//!
//! Owns decisions about effects. Must not know which tool has them or how a question is shown.

mod ask;
mod contain;
mod decide;
mod mode;
mod pattern;
mod queue;
mod rule;
mod rules;
pub mod shell;

pub use ask::{AskRequest, Asker, NobodyToAsk, Reply};
pub use contain::{Contained, OpenedBy, Places, Wall, contain};
pub use decide::{Decision, HookVerdict, Question, decide, holds_back_command, refuses_command};
pub use mode::{Asking, Permission, Reach, UnknownMode};
pub use pattern::Anchored;
pub use queue::{Answer, Permissions, Presenter};
pub use rule::{Kind, Rule, RuleError, RuleFault, Subject, exact};
pub use rules::{Allowed, Call, RuleSet, Said};
