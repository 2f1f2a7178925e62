//! One line for a step that is over: it scrolls up above the bars.

use super::board::row_view;
use super::figures::{money, tokens, took};
use super::fit::{Piece, compose};
use claw_kernel::clock;
use claw_orchestrator::journal::record::EndState;
use claw_orchestrator::report::board::Row;

/// Longest cause, in characters, before the width cuts it.
const CAUSE: usize = 300;

/// `✓ explore=security 1m15s · 3 turns ↑12k ↓950 $0.12`; a failure says why.
pub fn ended(row: &Row, state: EndState, error: Option<&str>, width: usize, color: bool) -> String {
    let view = row_view(row, clock::now());
    let (sign, word) = match state {
        EndState::Succeeded => ("✓", ""),
        EndState::Cached => ("✓", "cached"),
        EndState::Failed => ("✗", "failed"),
        EndState::Skipped => ("-", "skipped"),
        EndState::Cancelled => ("✗", "cancelled"),
        EndState::Interrupted => ("✗", "interrupted"),
    };
    let cause: String = error.unwrap_or_default().chars().take(CAUSE).collect();
    let spent = view.up + view.down > 0;
    let pieces = vec![
        Piece::whole(0, sign),
        Piece::elastic(0, view.label, 12),
        Piece::whole(1, word),
        Piece::whole(5, if view.attempt > 1 { format!("attempt {}", view.attempt) } else { String::new() }),
        Piece::whole(2, if row.started.is_some() { took(view.elapsed) } else { String::new() }),
        Piece::elastic(1, cause, 10),
        Piece::whole(6, if view.turn > 1 { format!("{} turns", view.turn) } else { String::new() }),
        Piece::whole(
            4,
            if spent { format!("↑{} ↓{}", tokens(view.up), tokens(view.down)) } else { String::new() },
        ),
        Piece::whole(3, if spent { money(view.usd) } else { String::new() }),
    ];
    let line = compose(pieces, width.saturating_sub(1));
    if !color {
        return line;
    }
    let style = match state {
        EndState::Succeeded | EndState::Cached => console::Style::new().green(),
        EndState::Failed => console::Style::new().red(),
        EndState::Skipped | EndState::Cancelled | EndState::Interrupted => console::Style::new().yellow(),
    };
    match line.strip_prefix(sign) {
        Some(rest) => format!("{}{rest}", style.force_styling(true).apply_to(sign)),
        None => line,
    }
}
