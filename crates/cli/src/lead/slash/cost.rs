//! `/cost`: tokens and money.

use super::command::{Desk, Slash};
use super::registry::ready;
use crate::lead::deed::Deed;
use crate::terminal::figures::{money, tokens};
use crate::terminal::paint::{Line, Style};
use claw_providers::usage::Usage;
use futures_util::future::BoxFuture;

pub(super) struct Cost;

impl Slash for Cost {
    fn name(&self) -> &'static str {
        "cost"
    }

    fn about(&self) -> &'static str {
        "shows tokens and money of the last turn and of the session"
    }

    fn run(&self, _: String, desk: Desk) -> BoxFuture<'static, Vec<Deed>> {
        let theme = desk.looks();
        let Some(reckoning) = desk.reckoning else {
            return ready([Deed::Show(vec![Line::styled("nothing was spent yet", theme.quiet)])]);
        };
        let row = |name: &str, usage: &Usage| {
            let text = format!(
                "{} input, {} written to the cache, {} read from it, {} output · {}",
                tokens(usage.input),
                tokens(usage.cache_write),
                tokens(usage.cache_read),
                tokens(usage.output),
                if usage.usd.is_none() { "price unknown".to_owned() } else { money(usage.usd) },
            );
            Line::styled(format!("{name:<10} "), theme.quiet).with(text, Style::PLAIN)
        };
        ready([Deed::Show(vec![row("last turn", &reckoning.turn), row("session", &reckoning.session)])])
    }
}
