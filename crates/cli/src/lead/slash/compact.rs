//! `/compact`: a summary in the place of the older messages.

use super::command::{Desk, Slash};
use super::registry::ready;
use crate::lead::deed::Deed;
use claw_agents::lead::LeadCommand;
use futures_util::future::BoxFuture;

pub(super) struct Compact;

impl Slash for Compact {
    fn name(&self) -> &'static str {
        "compact"
    }

    fn args(&self) -> &'static str {
        "[WHAT TO KEEP]"
    }

    fn about(&self) -> &'static str {
        "puts a summary in the place of the older messages"
    }

    fn run(&self, args: String, _: Desk) -> BoxFuture<'static, Vec<Deed>> {
        let keep = (!args.is_empty()).then_some(args);
        ready([Deed::Order(LeadCommand::Compact { keep })])
    }
}
