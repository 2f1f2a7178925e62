//! An answer while it comes: whole blocks are finished lines, the open one is shown live.

use super::blocks::{complete, open_fence};
use super::render::render;
use crate::terminal::paint::{Line, Theme};

/// Bytes of the open block that are looked at to show its end.
const TAIL: usize = 6 * 1024;

/// One answer.
#[derive(Debug, Default)]
pub struct Answer {
    open: String,
    begun: bool,
}

impl Answer {
    /// Takes a piece of text, and gives the lines of the blocks that it completed.
    pub fn push(&mut self, piece: &str, theme: &Theme, width: usize) -> Vec<Line> {
        self.open.push_str(piece);
        let mut lines = Vec::new();
        loop {
            let done = complete(&self.open);
            if done == 0 {
                return lines;
            }
            let rest = self.open.split_off(done);
            let block = std::mem::replace(&mut self.open, rest);
            if let Some(fence) = open_fence(&block) {
                self.open = format!("{fence}\n{}", self.open);
            }
            self.block(&block, theme, width, &mut lines);
        }
    }

    /// The answer is over: the lines of what was still open.
    pub fn finish(&mut self, theme: &Theme, width: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        let block = std::mem::take(&mut self.open);
        self.block(&block, theme, width, &mut lines);
        self.begun = false;
        lines
    }

    /// What came of the open block is void.
    pub fn withdraw(&mut self) {
        self.open.clear();
        self.begun = false;
    }

    /// The open block as it stands, its last `most` lines.
    pub fn live(&self, theme: &Theme, width: usize, most: usize) -> Vec<Line> {
        let open = self.open.trim_end();
        if open.is_empty() {
            return Vec::new();
        }
        let mut lines = if open.len() > TAIL {
            let from = open.ceil_char_boundary(open.len() - TAIL);
            open[from..].lines().flat_map(|line| Line::plain(line).fold(width)).collect()
        } else {
            render(open, theme, width)
        };
        if lines.len() > most {
            lines.drain(..lines.len() - most);
        }
        lines
    }

    fn block(&mut self, block: &str, theme: &Theme, width: usize, lines: &mut Vec<Line>) {
        let shown = render(block, theme, width);
        if shown.is_empty() {
            return;
        }
        if self.begun {
            lines.push(Line::empty());
        }
        self.begun = true;
        lines.extend(shown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::paint::ThemeName;

    const TEXT: &str = "# Head\n\nOne paragraph\nof two lines.\n\n- a\n- b\n\n  more\n\n```rust\nlet x = 1;\n\nlet y;\n```\n\n\
        | a | b |\n|---|---|\n| 1 | 2 |\n\nThe end.";

    fn texts(lines: &[Line]) -> Vec<String> {
        lines.iter().map(Line::text).collect()
    }

    #[test]
    fn pieces_of_any_size_give_the_page_that_the_whole_gives() {
        let theme = ThemeName::None.theme();
        let whole = texts(&render(TEXT, &theme, 60));
        for size in [1, 2, 3, 7, 20, 1000] {
            let mut answer = Answer::default();
            let mut lines = Vec::new();
            let chars: Vec<char> = TEXT.chars().collect();
            for piece in chars.chunks(size) {
                lines.extend(answer.push(&piece.iter().collect::<String>(), &theme, 60));
            }
            lines.extend(answer.finish(&theme, 60));
            assert_eq!(texts(&lines), whole, "{size}");
        }
    }

    #[test]
    fn what_is_open_is_shown_live() {
        let theme = ThemeName::None.theme();
        let mut answer = Answer::default();
        assert!(answer.push("Hello wor", &theme, 60).is_empty());
        assert_eq!(texts(&answer.live(&theme, 60, 5)), ["Hello wor"]);
        assert_eq!(texts(&answer.push("ld\n\nnext", &theme, 60)), ["Hello world"]);
        assert_eq!(texts(&answer.live(&theme, 60, 5)), ["next"]);
        answer.withdraw();
        assert!(answer.live(&theme, 60, 5).is_empty());
    }

    #[test]
    fn a_line_of_a_megabyte_does_not_stop_anything() {
        let theme = ThemeName::None.theme();
        let mut answer = Answer::default();
        let lines = answer.push(&"x".repeat(1_000_000), &theme, 80);
        assert!(lines.len() > 1_000);
        assert!(answer.live(&theme, 80, 10).len() <= 10);
    }
}
