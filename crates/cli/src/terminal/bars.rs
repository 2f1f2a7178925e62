//! The bars themselves: one block of lines at the bottom of the terminal, finished text above it. The only file that
//! knows indicatif.

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use std::io;
use std::time::Duration;

/// Redraws a second that the terminal is asked for at most; the screen itself draws ten.
const HERTZ: u8 = 20;

/// A block of lines that is redrawn.
#[derive(Debug)]
pub(super) struct Bars {
    block: ProgressBar,
    term: Term,
    shown: Vec<String>,
    suspended: bool,
}

impl Bars {
    pub(super) fn new() -> Self {
        Self::on(Term::buffered_stderr())
    }

    fn on(term: Term) -> Self {
        let block = ProgressBar::with_draw_target(None, target(&term));
        // The template is a constant that parses.
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            block.set_style(style);
        }
        Self { block, term, shown: Vec::new(), suspended: false }
    }

    /// Columns and rows at this moment.
    pub(super) fn size(&self) -> (usize, usize) {
        let (rows, columns) = self.term.size_checked().unwrap_or((24, 80));
        (usize::from(columns), usize::from(rows))
    }

    /// Puts text above the block, in one redraw.
    pub(super) fn above(&self, text: &str) {
        self.block.println(text.trim_end_matches('\n'));
    }

    /// Redraws the block where its lines changed.
    pub(super) fn draw(&mut self, lines: Vec<String>) {
        if !self.suspended && lines != self.shown {
            self.block.set_message(lines.join("\n"));
            self.shown = lines;
        }
    }

    /// Takes the block away until `resume`, for a question.
    pub(super) fn suspend(&mut self) {
        self.suspended = true;
        self.shown.clear();
        self.block.set_message("");
        self.block.suspend(|| {});
        self.block.set_draw_target(ProgressDrawTarget::hidden());
    }

    pub(super) fn resume(&mut self) {
        self.suspended = false;
        self.block.set_draw_target(target(&self.term));
    }

    /// Takes the block away; the cursor stands at the start of an empty line.
    pub(super) fn clear(&self) {
        // The target alone knows how many lines stand there: another one would leave them.
        self.block.set_elapsed(Duration::ZERO);
        self.block.finish_and_clear();
        // Where the terminal is gone there is nothing to restore.
        let _ = self.term.show_cursor();
        let _ = self.term.flush();
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.clear();
    }
}

fn target(term: &Term) -> ProgressDrawTarget {
    ProgressDrawTarget::term_like_with_hz(Box::new(Surface { term: term.clone() }), HERTZ)
}

/// The terminal, with the cursor at the start of the last line after each draw. Behind a full line the next character
/// would begin another one: what the terminal echoes (`^C`) would then shift all that follows.
#[derive(Debug)]
struct Surface {
    term: Term,
}

impl TermLike for Surface {
    fn width(&self) -> u16 {
        self.term.size().1
    }

    fn height(&self) -> u16 {
        self.term.size().0
    }

    fn move_cursor_up(&self, lines: usize) -> io::Result<()> {
        self.term.move_cursor_up(lines)
    }

    fn move_cursor_down(&self, lines: usize) -> io::Result<()> {
        self.term.move_cursor_down(lines)
    }

    fn move_cursor_right(&self, columns: usize) -> io::Result<()> {
        self.term.move_cursor_right(columns)
    }

    fn move_cursor_left(&self, columns: usize) -> io::Result<()> {
        self.term.move_cursor_left(columns)
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.term.write_line(text)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.term.write_str(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.term.clear_line()
    }

    fn flush(&self) -> io::Result<()> {
        self.term.write_str("\r")?;
        self.term.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use claw_kit::Screen;
    use std::fs::File;
    use std::io::{Read, Seek, Write};

    /// What stands on a terminal of 24 rows and 80 columns.
    fn shown(mut file: File) -> Vec<String> {
        let mut bytes = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut bytes).unwrap();
        Screen::after(&bytes).lines.into_iter().filter(|line| !line.is_empty()).collect()
    }

    fn bars() -> (Bars, File) {
        let file = tempfile::tempfile().unwrap();
        let term = Term::read_write_pair(File::open("/dev/null").unwrap(), file.try_clone().unwrap());
        (Bars::on(term), file)
    }

    fn lines(all: &[&str]) -> Vec<String> {
        all.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn nothing_of_the_block_is_left_when_it_is_gone() {
        let (mut bars, mut file) = bars();
        bars.draw(lines(&["header", "agent a", "agent b"]));
        bars.above("one finished");
        // What a terminal echoes when somebody presses Ctrl-C.
        file.write_all(b"^C").unwrap();
        bars.above("stopping");
        assert_eq!(
            shown(file.try_clone().unwrap()),
            ["one finished", "stopping", "header", "agent a", "agent b"]
        );
        drop(bars);
        file.write_all(b"summary\n").unwrap();
        assert_eq!(shown(file), ["one finished", "stopping", "summary"]);
    }

    #[test]
    fn a_block_that_was_taken_away_for_a_question_comes_back_once() {
        let (mut bars, mut file) = bars();
        bars.draw(lines(&["header", "agent a"]));
        bars.suspend();
        file.write_all(b"question? y\n").unwrap();
        bars.resume();
        bars.draw(lines(&["header", "agent b"]));
        let screen = shown(file.try_clone().unwrap());
        assert_eq!(screen.iter().filter(|line| *line == "header").count(), 1, "{screen:?}");
        assert_eq!(screen.last().map(String::as_str), Some("agent b"));
        drop(bars);
        assert!(!shown(file).contains(&"agent b".to_owned()));
    }
}
