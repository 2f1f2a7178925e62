//! `/undo`: the files as they were before the last prompt.

use super::command::{Desk, Slash};
use super::registry::ready;
use crate::lead::deed::Deed;
use claw_agents::lead::{LeadCommand, Rewinding};
use futures_util::future::BoxFuture;

pub(super) struct Undo;

impl Slash for Undo {
    fn name(&self) -> &'static str {
        "undo"
    }

    fn about(&self) -> &'static str {
        "puts the files back that claw's tools changed since the last prompt"
    }

    fn run(&self, _: String, desk: Desk) -> BoxFuture<'static, Vec<Deed>> {
        let Some((prompt, _)) = desk.prompts.last() else {
            return ready([Deed::Wrong("nothing was changed yet".to_owned())]);
        };
        let order = LeadCommand::Rewind { prompt: *prompt, what: Rewinding::Files };
        ready([Deed::Order(order)])
    }
}
