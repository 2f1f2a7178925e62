//! `/context`: how full the model's window is.

use super::command::{Desk, Slash};
use super::registry::ready;
use crate::lead::deed::Deed;
use crate::terminal::figures::tokens;
use crate::terminal::paint::{Line, Style};
use futures_util::future::BoxFuture;

pub(super) struct Context;

/// Signs of the bar.
const BAR: usize = 40;

impl Slash for Context {
    fn name(&self) -> &'static str {
        "context"
    }

    fn about(&self) -> &'static str {
        "shows how full the model's window is"
    }

    fn run(&self, _: String, desk: Desk) -> BoxFuture<'static, Vec<Deed>> {
        let theme = desk.looks();
        let line = match desk.status.context {
            None => Line::styled("not known before the first answer", theme.quiet),
            Some((used, None)) => Line::plain(format!(
                "{} tokens; the window of {} is unknown",
                tokens(used),
                desk.status.model
            )),
            Some((used, Some(window))) => {
                let part =
                    usize::try_from(used.saturating_mul(BAR as u64) / window.max(1)).unwrap_or(BAR).min(BAR);
                let style = if part * 5 > BAR * 4 { theme.warning } else { theme.good };
                let percent = used.saturating_mul(100) / window.max(1);
                Line::styled("█".repeat(part), style)
                    .with("░".repeat(BAR - part), theme.quiet)
                    .with(format!(" {} of {} tokens, {percent}%", tokens(used), tokens(window)), Style::PLAIN)
            }
        };
        ready([Deed::Show(vec![line])])
    }
}
