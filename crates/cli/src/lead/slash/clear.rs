//! `/clear`: a new session.

use super::command::{Desk, Slash};
use super::registry::ready;
use crate::lead::deed::Deed;
use claw_agents::lead::LeadCommand;
use futures_util::future::BoxFuture;

pub(super) struct Clear;

impl Slash for Clear {
    fn name(&self) -> &'static str {
        "clear"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["new"]
    }

    fn about(&self) -> &'static str {
        "begins a new session; the old one stays on disk"
    }

    fn run(&self, _: String, _: Desk) -> BoxFuture<'static, Vec<Deed>> {
        ready([Deed::Order(LeadCommand::Clear), Deed::Refresh])
    }
}
