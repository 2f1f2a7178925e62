//! All lines of the screen at one moment, within its height.

use super::line;
use super::view::{FootView, View};
use std::time::Duration;

/// Rows that a screen shows at most, however high it is.
pub(super) const MOST: usize = 40;
/// Rows from which on the keys are named.
const LEAST_WITH_HINT: usize = 6;

/// Lines for a terminal of `height` rows and `width` columns: header, one line for each node with many items, agents,
/// and how many more there are. The last row and the last column stay free, so that nothing wraps or scrolls.
pub(super) fn frame(view: &View, width: usize, height: usize, now: Duration) -> Vec<String> {
    let width = width.saturating_sub(1);
    let room = height.saturating_sub(2).clamp(1, MOST);
    let foot = line::foot(&view.foot, width).filter(|_| room > 2);
    let foot = foot.filter(|_| room >= LEAST_WITH_HINT || !matches!(view.foot, FootView::Hint(_)));
    let room = room - usize::from(foot.is_some());
    let mut lines = vec![line::header(&view.header, width)];
    match &view.pane {
        Some(pane) => opened(&mut lines, view, &pane.lines, (width, room), now),
        None => all(&mut lines, view, (width, room), now),
    }
    lines.extend(foot);
    lines
}

fn all(lines: &mut Vec<String>, view: &View, (width, room): (usize, usize), now: Duration) {
    let many = view.many.len().min(room.saturating_sub(1) / 2);
    lines.extend(view.many.iter().take(many).map(|each| line::many(each, width)));
    let left = room.saturating_sub(lines.len());
    let all = view.rows.len() + view.more;
    let shown = if all > left { left.saturating_sub(1) } else { left }.min(view.rows.len());
    // The one that is looked at is always among them.
    let first = view.chosen.map_or(0, |at| (at + 1).saturating_sub(shown));
    for (at, row) in view.rows.iter().enumerate().skip(first).take(shown) {
        lines.push(line::row_chosen(row, view.chosen.map(|chosen| chosen == at), width, now));
    }
    if all > shown && left > 0 {
        lines.push(line::more(all - shown, width));
    }
}

/// The agent that is looked at, and its output as far as there is room.
fn opened(
    lines: &mut Vec<String>,
    view: &View,
    output: &[String],
    (width, room): (usize, usize),
    now: Duration,
) {
    if let Some(row) = view.chosen.and_then(|at| view.rows.get(at)).filter(|_| room > 2) {
        lines.push(line::row(row, width, now));
    }
    let left = room.saturating_sub(lines.len());
    let nothing = ["(it has said nothing since this was opened)".to_owned()];
    let output = if output.is_empty() { &nothing } else { output };
    let over = output.len().saturating_sub(left);
    lines.extend(output.iter().skip(over).map(|text| line::said(text, width)));
}

#[cfg(test)]
mod tests {
    use super::super::view::{Doing, FootView, ManyView, PaneView, RowView};
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
    fn the_row_that_is_looked_at_is_seen_wherever_it_stands() {
        for (chosen, height) in [(0, 10), (5, 10), (11, 10), (11, 6)] {
            let view = View { chosen: Some(chosen), ..view(12, 30) };
            let lines = frame(&view, 80, height, Duration::ZERO);
            let marked: Vec<_> = lines.iter().filter(|line| line.starts_with('▸')).collect();
            assert!(marked.len() == 1 && marked[0].contains(&format!("explore={chosen} ")), "{lines:#?}");
        }
    }

    #[test]
    fn an_open_output_takes_the_room_and_its_end_is_seen() {
        let pane = PaneView { lines: (0..50).map(|n| format!("line {n}")).collect() };
        let foot = FootView::Typed { to: "to explore=2:".into(), text: "x".repeat(200) + "end" };
        let view = View { chosen: Some(2), pane: Some(pane), foot, ..view(12, 0) };
        for (width, height) in [(80, 24), (40, 12), (20, 4), (5, 1)] {
            let lines = frame(&view, width, height, Duration::ZERO);
            assert!(lines.len() <= height.saturating_sub(2).clamp(1, MOST), "{lines:#?}");
            if height > 4 {
                assert!(lines[lines.len() - 2].ends_with("line 49"), "{lines:#?}");
                assert!(
                    lines[1].contains("explore=2") && lines[lines.len() - 1].contains("end"),
                    "{lines:#?}"
                );
            }
            for line in lines {
                assert!(super::super::fit::columns(&line) < width.max(2), "{width}: {line}");
            }
        }
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
