//! `/rename`: a name for the session.

use super::command::{Desk, Slash};
use super::registry::ready;
use crate::lead::deed::Deed;
use claw_agents::lead::LeadCommand;
use futures_util::future::BoxFuture;

pub(super) struct Rename;

impl Slash for Rename {
    fn name(&self) -> &'static str {
        "rename"
    }

    fn args(&self) -> &'static str {
        "[NAME]"
    }

    fn about(&self) -> &'static str {
        "gives the session a name; without one takes it away"
    }

    fn run(&self, args: String, _: Desk) -> BoxFuture<'static, Vec<Deed>> {
        ready([Deed::Order(LeadCommand::Rename { name: args })])
    }
}
