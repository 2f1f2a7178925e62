//! `/status`: session, model, mode, folder, spending.

use super::command::{Desk, Slash};
use super::registry::ready;
use crate::lead::deed::Deed;
use crate::terminal::figures::{money, tokens};
use crate::terminal::paint::{Line, Style};
use futures_util::future::BoxFuture;

pub(super) struct Status;

impl Slash for Status {
    fn name(&self) -> &'static str {
        "status"
    }

    fn about(&self) -> &'static str {
        "shows session, model, mode, folder and spending"
    }

    fn run(&self, _: String, desk: Desk) -> BoxFuture<'static, Vec<Deed>> {
        let theme = desk.looks();
        let status = &desk.status;
        let row = |name: &str, value: String| {
            Line::styled(format!("{name:<12} "), theme.quiet).with(value, Style::PLAIN)
        };
        let mut lines = vec![row("claw", env!("CARGO_PKG_VERSION").to_owned())];
        if let Some(view) = &desk.view {
            let name = view.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
            lines.push(row("session", format!("{}{name}", view.session)));
            lines.push(row("kept in", view.path.display().to_string()));
        }
        lines.push(row("model", status.model.clone()));
        lines.push(row("mode", status.permission.to_string()));
        lines.push(row("folder", desk.setup.cwd.display().to_string()));
        if let Some(branch) = &status.branch {
            lines.push(row("branch", branch.clone()));
        }
        lines.push(row("prompts", desk.prompts.len().to_string()));
        lines.push(row("tokens", format!("↑{} ↓{}", tokens(status.tokens.0), tokens(status.tokens.1))));
        lines.push(row("cost", money(status.usd)));
        if let Some((used, window)) = status.context {
            let of = window.map(|window| format!(" of {}", tokens(window))).unwrap_or_default();
            lines.push(row("context", format!("{}{of}", tokens(used))));
        }
        if status.agents > 0 {
            lines.push(row("agents", format!("{} at work", status.agents)));
        }
        ready([Deed::Show(lines)])
    }
}
