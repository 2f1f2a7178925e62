//! The region at the bottom of the screen: a few lines that are redrawn, finished text above it that belongs to the
//! terminal's scrollback. Makes bytes and writes none. Moves only relative to itself: it never asks where the cursor is.

use super::paint::{Depth, Line};
use std::fmt::Write;

/// Begin and end of an update that the terminal shows at once, where it knows them.
const TOGETHER: (&str, &str) = ("\x1b[?2026h", "\x1b[?2026l");

/// What the region shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    /// Its lines; never wider than the terminal.
    pub lines: Vec<Line>,
    /// Row and column of the cursor, counted in the region; `None` hides it.
    pub cursor: Option<(usize, usize)>,
}

/// What stands on the terminal.
#[derive(Debug)]
pub struct Region {
    depth: Depth,
    shown: Vec<(String, usize)>,
    /// Where the cursor stands.
    at: (usize, usize),
    columns: usize,
}

impl Region {
    /// Nothing is shown yet; the cursor stands at the start of an empty line.
    pub fn new(depth: Depth) -> Self {
        Self { depth, shown: Vec::new(), at: (0, 0), columns: 0 }
    }

    /// Puts finished lines above and the picture below them. Empty where nothing changed.
    pub fn draw(&mut self, above: &[Line], picture: &Picture, columns: usize) -> String {
        let resized = self.columns != 0 && self.columns != columns;
        let lines: Vec<(String, usize)> =
            picture.lines.iter().map(|line| (line.painted(self.depth), line.width())).collect();
        let at = picture.cursor.unwrap_or((lines.len().saturating_sub(1), 0));
        if above.is_empty() && !resized && lines == self.shown && at == self.at {
            return String::new();
        }
        let mut out = format!("{}\x1b[?25l", TOGETHER.0);
        self.to_the_top(&mut out, columns);
        if !above.is_empty() || resized {
            out.push_str("\x1b[J");
            self.shown.clear();
        }
        for line in above {
            out.push_str(&line.painted(self.depth));
            out.push_str("\r\n");
        }
        self.rows(&mut out, &lines);
        let last = lines.len().saturating_sub(1);
        move_up(&mut out, last.saturating_sub(at.0));
        out.push('\r');
        move_right(&mut out, at.1);
        if picture.cursor.is_some() {
            out.push_str("\x1b[?25h");
        }
        out.push_str(TOGETHER.1);
        self.shown = lines;
        self.at = at;
        self.columns = columns;
        out
    }

    /// Writes the rows that differ. Ends in the last row of the new picture.
    fn rows(&self, out: &mut String, lines: &[(String, usize)]) {
        for (row, line) in lines.iter().enumerate() {
            if row > 0 {
                out.push_str("\r\n");
            }
            let before = self.shown.get(row);
            if before == Some(line) {
                continue;
            }
            out.push('\r');
            out.push_str(&line.0);
            if before.is_some_and(|before| before.1 > line.1) || line.1 == 0 {
                out.push_str("\x1b[K");
            }
        }
        if self.shown.len() > lines.len() {
            // The rows below the last one are no longer wanted.
            if lines.is_empty() {
                out.push_str("\r\x1b[J");
            } else {
                out.push_str("\r\n\x1b[J\x1b[A");
            }
        }
    }

    /// To the start of the first row. After a change of width lines may have been broken by the terminal.
    fn to_the_top(&self, out: &mut String, columns: usize) {
        out.push('\r');
        let broken = |width: usize| width.saturating_sub(1) / columns.max(1);
        let narrower = columns < self.columns;
        let mut rows = self.at.0;
        if narrower {
            rows += self.shown.iter().take(self.at.0).map(|(_, width)| broken(*width)).sum::<usize>();
            rows += self.at.1 / columns.max(1);
        }
        move_up(out, rows);
    }

    /// Takes the region away; the cursor stands where it began.
    pub fn clear(&mut self) -> String {
        let mut out = String::new();
        if !self.shown.is_empty() {
            self.to_the_top(&mut out, self.columns);
            out.push_str("\x1b[J");
        }
        out.push_str("\x1b[?25h");
        self.forget();
        out
    }

    /// Whatever was shown is left to the scrollback: the next picture begins at the cursor.
    pub fn forget(&mut self) {
        self.shown.clear();
        self.at = (0, 0);
        self.columns = 0;
    }

    /// The depth of colour that it writes.
    pub fn depth(&self) -> Depth {
        self.depth
    }
}

fn move_up(out: &mut String, rows: usize) {
    if rows > 0 {
        // Writing to a string does not fail.
        let _ = write!(out, "\x1b[{rows}A");
    }
}

fn move_right(out: &mut String, columns: usize) {
    if columns > 0 {
        // Writing to a string does not fail.
        let _ = write!(out, "\x1b[{columns}C");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use claw_kit::Screen;

    fn picture(lines: &[&str], cursor: (usize, usize)) -> Picture {
        Picture { lines: lines.iter().map(Line::plain).collect(), cursor: Some(cursor) }
    }

    fn shown(bytes: &str) -> (Vec<String>, (u16, u16)) {
        let screen = Screen::after(bytes);
        let mut lines = screen.lines;
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        (lines, screen.cursor)
    }

    #[test]
    fn finished_text_stands_above_and_the_region_below_it() {
        let mut region = Region::new(Depth::NoColor);
        let mut bytes = String::from("$ claw\r\n");
        bytes += &region.draw(&[], &picture(&["bar a", "> he", "status"], (1, 4)), 80);
        assert_eq!(
            shown(&bytes),
            (vec!["$ claw".into(), "bar a".into(), "> he".into(), "status".into()], (2, 4))
        );
        bytes += &region.draw(
            &[Line::plain("answer"), Line::plain("more")],
            &picture(&["> hello", "status"], (0, 7)),
            80,
        );
        let wanted = ["$ claw", "answer", "more", "> hello", "status"];
        assert_eq!(shown(&bytes), (wanted.map(str::to_owned).to_vec(), (3, 7)));
        bytes += &region.draw(&[], &picture(&["> hello", "second", "third", "status"], (2, 1)), 80);
        let wanted = ["$ claw", "answer", "more", "> hello", "second", "third", "status"];
        assert_eq!(shown(&bytes), (wanted.map(str::to_owned).to_vec(), (5, 1)));
        bytes += &region.draw(&[], &picture(&["> "], (0, 2)), 80);
        assert_eq!(shown(&bytes).0, ["$ claw", "answer", "more", ">"]);
        bytes += &region.clear();
        assert_eq!(shown(&bytes), (vec!["$ claw".into(), "answer".into(), "more".into()], (3, 0)));
    }

    #[test]
    fn what_did_not_change_is_not_written() {
        let mut region = Region::new(Depth::NoColor);
        region.draw(&[], &picture(&["a long line of a bar", "> x"], (1, 3)), 80);
        assert_eq!(region.draw(&[], &picture(&["a long line of a bar", "> x"], (1, 3)), 80), "");
        let typed = region.draw(&[], &picture(&["a long line of a bar", "> xy"], (1, 4)), 80);
        assert!(!typed.contains("bar") && typed.contains("> xy"), "{typed:?}");
    }

    #[test]
    fn at_the_bottom_of_the_screen_the_text_scrolls_up() {
        let mut region = Region::new(Depth::NoColor);
        let mut bytes = String::new();
        for n in 0..40 {
            bytes +=
                &region.draw(&[Line::plain(format!("line {n}"))], &picture(&["> ", "status"], (0, 2)), 80);
        }
        let (lines, cursor) = shown(&bytes);
        assert_eq!(lines.len(), 24);
        assert_eq!((lines[21].as_str(), lines[22].as_str(), lines[23].as_str()), ("line 39", ">", "status"));
        assert_eq!(cursor, (22, 2));
    }
}
