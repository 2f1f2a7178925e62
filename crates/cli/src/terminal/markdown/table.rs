//! Tables that fit the width: columns shrink, cells wrap; where there is no room at all each row is a list. Pure.

use crate::terminal::paint::{Line, Style, Theme};

/// Columns between two cells.
const GAP: &str = " │ ";
/// A column narrower than this is no column.
const LEAST: usize = 4;

/// One table while it is read.
#[derive(Default)]
pub(super) struct Table {
    pub(super) rows: Vec<Vec<Line>>,
}

impl Table {
    pub(super) fn lines(&self, width: usize, theme: &Theme) -> Vec<Line> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        if count == 0 {
            return Vec::new();
        }
        match self.widths(count, width) {
            Some(widths) => self.grid(&widths, theme),
            None => self.list(width, theme),
        }
    }

    /// The widest column gives way first; `None`: there is no room.
    fn widths(&self, count: usize, width: usize) -> Option<Vec<usize>> {
        let gaps = GAP.chars().count() * (count - 1);
        let room = width.checked_sub(gaps).filter(|room| *room >= LEAST * count)?;
        let cell = |row: &Vec<Line>, n: usize| row.get(n).map_or(0, Line::width);
        let mut widths: Vec<usize> =
            (0..count).map(|n| self.rows.iter().map(|row| cell(row, n)).max().unwrap_or(0).max(1)).collect();
        while widths.iter().sum::<usize>() > room {
            let over = widths.iter().sum::<usize>() - room;
            let widest = widths.iter().copied().max().unwrap_or(0);
            let second = widths.iter().copied().filter(|w| *w < widest).max().unwrap_or(LEAST).max(LEAST);
            let at = widths.iter().position(|w| *w == widest)?;
            let step = (widest - second).clamp(1, over);
            widths[at] = (widest - step).max(LEAST);
        }
        Some(widths)
    }

    fn grid(&self, widths: &[usize], theme: &Theme) -> Vec<Line> {
        let mut lines = Vec::new();
        for (n, row) in self.rows.iter().enumerate() {
            let base = if n == 0 { theme.strong } else { Style::PLAIN };
            let cells: Vec<Vec<Line>> = widths
                .iter()
                .enumerate()
                .map(|(at, width)| {
                    let cell = row.get(at).cloned().unwrap_or_default().under(base);
                    cell.wrap(*width, &Line::empty())
                })
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for part in 0..height {
                lines.push(grid_line(&cells, widths, part, theme));
            }
            if n == 0 {
                let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(Line::styled(rule.join("─┼─"), theme.quiet));
            }
        }
        lines
    }

    fn list(&self, width: usize, theme: &Theme) -> Vec<Line> {
        let Some((head, rows)) = self.rows.split_first() else { return Vec::new() };
        let mut lines = Vec::new();
        for row in rows {
            for (at, cell) in row.iter().enumerate() {
                let name = head.get(at).map(Line::text).unwrap_or_default();
                let mut line = Line::styled(if at == 0 { "• " } else { "  " }, theme.quiet);
                line.push(format!("{name}: "), theme.strong);
                line.append(cell.clone());
                lines.extend(line.wrap(width, &Line::plain("    ")));
            }
        }
        lines
    }
}

fn grid_line(cells: &[Vec<Line>], widths: &[usize], part: usize, theme: &Theme) -> Line {
    let mut line = Line::empty();
    for (at, width) in widths.iter().enumerate() {
        if at > 0 {
            line.push(GAP, theme.quiet);
        }
        let cell = cells.get(at).and_then(|cell| cell.get(part)).cloned().unwrap_or_default();
        let rest = width.saturating_sub(cell.width());
        line.append(cell);
        if at + 1 < widths.len() {
            line.push(" ".repeat(rest), Style::PLAIN);
        }
    }
    line
}
