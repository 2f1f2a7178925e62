//! The bars themselves: one block of lines at the bottom of the terminal, finished text above it. The only file that
//! knows indicatif.

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
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
        let term = Term::buffered_stderr();
        let block = ProgressBar::with_draw_target(None, ProgressDrawTarget::term(term.clone(), HERTZ));
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
        self.block.set_draw_target(ProgressDrawTarget::term(self.term.clone(), HERTZ));
    }

    /// Takes the block away; the cursor stands at the start of an empty line.
    pub(super) fn clear(&self) {
        self.block.set_draw_target(ProgressDrawTarget::term(self.term.clone(), HERTZ));
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
