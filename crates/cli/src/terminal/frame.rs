//! All lines of the screen at one moment, within its height.

use super::line;
use super::view::View;
use std::time::Duration;

/// Rows that a screen shows at most, however high it is.
pub(super) const MOST: usize = 40;

/// Lines for a terminal of `height` rows and `width` columns: header, one line for each node with many items, agents,
/// and how many more there are. The last row and the last column stay free, so that nothing wraps or scrolls.
pub(super) fn frame(view: &View, width: usize, height: usize, now: Duration) -> Vec<String> {
    let width = width.saturating_sub(1);
    let room = height.saturating_sub(2).clamp(1, MOST);
    let mut lines = vec![line::header(&view.header, width)];
    let many = view.many.len().min(room.saturating_sub(1) / 2);
    lines.extend(view.many.iter().take(many).map(|each| line::many(each, width)));
    let left = room.saturating_sub(lines.len());
    let all = view.rows.len() + view.more;
    let shown = if all > left { left.saturating_sub(1) } else { left }.min(view.rows.len());
    lines.extend(view.rows.iter().take(shown).map(|row| line::row(row, width, now)));
    if all > shown && left > 0 {
        lines.push(line::more(all - shown, width));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::view::{Doing, ManyView, RowView};
    use super::*;

    fn view(rows: usize, more: usize) -> View {
        let row = |n: usize| RowView {
            label: format!("explore={n}"),
            phase: None,
            attempt: 1,
            elapsed: Duration::from_secs(3),
            turn: 1,
            doing: Doing::Working { tool: None },
            up: 0,
            down: 0,
            usd: None,
        };
        View {
            rows: (0..rows).map(row).collect(),
            many: vec![ManyView {
                label: "explore".into(),
                total: 50,
                done: 9,
                failed: 0,
                running: rows + more,
            }],
            more,
            ..View::default()
        }
    }

    #[test]
    fn more_agents_than_rows_are_counted() {
        let lines = frame(&view(12, 34), 80, 10, Duration::ZERO);
        assert_eq!(lines.len(), 8);
        assert_eq!(lines.last().unwrap(), "+ 41 more");
        assert_eq!(frame(&view(3, 0), 80, 24, Duration::ZERO).len(), 5);
    }

    #[test]
    fn the_smallest_terminal_gets_a_frame_that_fits() {
        for (width, height) in [(0, 0), (5, 2), (1, 1), (40, 3), (80, 24), (300, 200)] {
            let lines = frame(&view(30, 900), width, height, Duration::ZERO);
            assert!(
                !lines.is_empty() && lines.len() <= height.saturating_sub(2).clamp(1, MOST),
                "{width}×{height}"
            );
        }
    }
}
