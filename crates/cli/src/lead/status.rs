//! The status line: model, mode, folder and branch, tokens, context left, cost, agents. Pure.

use crate::terminal::figures::{money, tokens};
use crate::terminal::paint::{Line, Style, Theme};
use claw_agents::permission::{Permission, Reach};

/// What it tells.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Status {
    pub(super) model: String,
    pub(super) permission: Permission,
    pub(super) folder: String,
    pub(super) branch: Option<String>,
    /// Up and down, of the session.
    pub(super) tokens: (u64, u64),
    pub(super) usd: Option<f64>,
    /// Used, and the window where it is known.
    pub(super) context: Option<(u64, Option<u64>)>,
    pub(super) agents: usize,
}

/// Pieces with what they are worth: the dearest number goes first where there is no room.
struct Piece(u8, String, Style);

impl Status {
    /// The line; empty pieces and those without room are left out.
    pub(super) fn line(&self, theme: &Theme, width: usize) -> Line {
        let mode_style =
            if self.permission.reach == Reach::DangerFullAccess { theme.error } else { theme.quiet };
        let mut pieces = vec![
            Piece(1, self.model.clone(), theme.accent),
            Piece(0, self.permission.to_string(), mode_style),
            Piece(4, self.place(), theme.quiet),
        ];
        let (up, down) = self.tokens;
        if up + down > 0 {
            pieces.push(Piece(5, format!("↑{} ↓{}", tokens(up), tokens(down)), theme.quiet));
            pieces.push(Piece(3, money(self.usd), theme.quiet));
        }
        if let Some((used, Some(window))) = self.context.filter(|(_, window)| window.is_some_and(|w| w > 0)) {
            let left = 100 - (used.saturating_mul(100) / window).min(100);
            let style = if left < 20 { theme.warning } else { theme.quiet };
            pieces.push(Piece(2, format!("{left}% context left"), style));
        }
        if self.agents > 0 {
            let what = if self.agents == 1 { "agent" } else { "agents" };
            pieces.push(Piece(1, format!("{} {what}", self.agents), theme.good));
        }
        while total(&pieces) > width && pieces.len() > 1 {
            let Some(dearest) = pieces.iter().map(|piece| piece.0).max() else { break };
            if let Some(at) = pieces.iter().rposition(|piece| piece.0 == dearest) {
                pieces.remove(at);
            }
        }
        let mut line = Line::empty();
        for (n, Piece(_, text, style)) in pieces.into_iter().enumerate() {
            if n > 0 {
                line.push(" · ", theme.quiet);
            }
            line.push(text, style);
        }
        line.cut(width)
    }

    fn place(&self) -> String {
        match &self.branch {
            Some(branch) => format!("{} ({branch})", self.folder),
            None => self.folder.clone(),
        }
    }
}

fn total(pieces: &[Piece]) -> usize {
    pieces.iter().map(|piece| Line::plain(&piece.1).width() + 3).sum::<usize>().saturating_sub(3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::paint::ThemeName;

    #[test]
    fn what_matters_stays_on_a_narrow_line() {
        let status = Status {
            model: "claude-sonnet".into(),
            permission: Permission::DANGER_FULL_ACCESS,
            folder: "~/src/claw".into(),
            branch: Some("main".into()),
            tokens: (12_400, 950),
            usd: Some(0.12),
            context: Some((150_000, Some(200_000))),
            agents: 3,
        };
        let line = |width| status.line(&ThemeName::Dark.theme(), width).text();
        assert_eq!(
            line(120),
            "claude-sonnet · danger-full-access · ~/src/claw (main) · ↑12k ↓950 · $0.12 · 25% context left · 3 agents"
        );
        assert_eq!(line(60), "claude-sonnet · danger-full-access · 3 agents");
        assert_eq!(line(70), "claude-sonnet · danger-full-access · 25% context left · 3 agents");
        assert_eq!(line(20), "danger-full-access");
        assert!((0..130).all(|width| status.line(&ThemeName::Dark.theme(), width).width() <= width));
    }
}
