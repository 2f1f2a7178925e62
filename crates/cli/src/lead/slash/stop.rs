//! `/stop`: ends the turn.

use super::command::{Desk, Slash};
use super::registry::ready;
use crate::lead::deed::Deed;
use claw_agents::lead::LeadCommand;
use futures_util::future::BoxFuture;

pub(super) struct Stop;

impl Slash for Stop {
    fn name(&self) -> &'static str {
        "stop"
    }

    fn about(&self) -> &'static str {
        "interrupts the turn"
    }

    fn run(&self, _: String, desk: Desk) -> BoxFuture<'static, Vec<Deed>> {
        if desk.is_idle {
            return ready([Deed::Wrong("no turn is running".to_owned())]);
        }
        ready([Deed::Order(LeadCommand::Interrupt)])
    }
}
