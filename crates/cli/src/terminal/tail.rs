//! The end of what each agent says and does, for the one whose output is open. Bounded, whatever they say.

use super::fit::columns;
use claw_kernel::visible::visible_line;
use claw_orchestrator::addr::StepAddr;
use claw_orchestrator::report::event::{RunEvent, RunEventKind, StepState, ToolPhase};
use indexmap::IndexMap;
use std::collections::VecDeque;

/// Agents whose words are kept: the last that spoke.
const MOST_AGENTS: usize = 256;
/// Lines that are kept of each.
const MOST_LINES: usize = 60;
/// Bytes of a line; a longer one goes on in the next.
const LINE: usize = 400;

/// The last words of many agents.
#[derive(Debug, Default)]
pub(super) struct Tails(IndexMap<StepAddr, Tail>);

#[derive(Debug, Default)]
struct Tail {
    lines: VecDeque<String>,
    /// The last line goes on with the next piece of text.
    goes_on: bool,
}

impl Tails {
    /// Takes an event in.
    pub(super) fn hear(&mut self, event: &RunEvent) {
        let Some(step) = &event.step else { return };
        match &event.kind {
            RunEventKind::AgentText(text) => self.of(step).text(text),
            RunEventKind::AgentTurn { turn, model } => {
                self.of(step).line(format!("── turn {turn} · {model}"))
            }
            RunEventKind::AgentTool { name, subject, phase } => match phase {
                ToolPhase::Started => self.of(step).line(format!("→ {name} {}", visible_line(subject))),
                ToolPhase::Succeeded => self.of(step).line(format!("✓ {name}")),
                ToolPhase::Failed => self.of(step).line(format!("✗ {name} failed")),
            },
            RunEventKind::Note(text) => self.of(step).line(format!("note: {}", visible_line(text))),
            RunEventKind::StepState(StepState::Ended { state, error }) => {
                let why =
                    error.as_ref().map(|error| format!(": {}", visible_line(error))).unwrap_or_default();
                self.of(step).line(format!("── {}{why}", state.as_str()));
            }
            RunEventKind::StepState(StepState::Ready { .. } | StepState::Running | StepState::Waiting(_))
            | RunEventKind::RunStarted { .. }
            | RunEventKind::AgentUsage(_)
            | RunEventKind::GateAsked(_)
            | RunEventKind::RunEnded { .. } => {}
        }
    }

    /// A line of our own among its words.
    pub(super) fn tell(&mut self, step: &StepAddr, line: String) {
        self.of(step).line(line);
    }

    /// The last `rows` lines of a screen of `width` columns.
    pub(super) fn last(&self, step: &StepAddr, width: usize, rows: usize) -> Vec<String> {
        let mut shown: VecDeque<String> = VecDeque::new();
        for line in self.0.get(step).into_iter().flat_map(|tail| tail.lines.iter().rev()) {
            for piece in wrapped(line, width.max(1)).into_iter().rev() {
                shown.push_front(piece);
            }
            if shown.len() >= rows {
                break;
            }
        }
        let over = shown.len().saturating_sub(rows);
        shown.into_iter().skip(over).collect()
    }

    fn of(&mut self, step: &StepAddr) -> &mut Tail {
        // Whoever spoke last stands at the end.
        let tail = self.0.shift_remove(step).unwrap_or_default();
        if self.0.len() >= MOST_AGENTS {
            self.0.shift_remove_index(0);
        }
        self.0.entry(step.clone()).or_insert(tail)
    }
}

impl Tail {
    fn line(&mut self, line: String) {
        self.goes_on = false;
        self.push(line);
    }

    fn push(&mut self, mut line: String) {
        if line.len() > LINE {
            line.truncate(line.floor_char_boundary(LINE));
        }
        self.lines.push_back(line);
        if self.lines.len() > MOST_LINES {
            self.lines.pop_front();
        }
    }

    fn text(&mut self, text: &str) {
        for (at, piece) in text.split('\n').enumerate() {
            if at > 0 {
                self.goes_on = false;
            }
            for letter in visible_line(piece).chars() {
                if !self.goes_on || self.lines.back().is_none_or(|line| line.len() + letter.len_utf8() > LINE)
                {
                    self.push(String::new());
                    self.goes_on = true;
                }
                if let Some(line) = self.lines.back_mut() {
                    line.push(letter);
                }
            }
        }
    }
}

/// Pieces of a line that fit.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let (mut piece, mut taken) = (String::new(), 0);
    for letter in line.chars() {
        let wide = columns(letter.encode_utf8(&mut [0; 4]));
        if taken + wide > width && !piece.is_empty() {
            pieces.push(std::mem::take(&mut piece));
            taken = 0;
        }
        piece.push(letter);
        taken += wide;
    }
    pieces.push(piece);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &str) -> StepAddr {
        name.parse().unwrap()
    }

    #[test]
    fn text_that_comes_in_pieces_is_put_together_and_wrapped_at_the_width() {
        let mut tails = Tails::default();
        for piece in ["one li", "ne\ntwo", "\n漢字漢字\u{1b}[2K"] {
            tails.of(&step("a")).text(piece);
        }
        tails.tell(&step("a"), "→ bash ls".into());
        let lines = tails.last(&step("a"), 20, 10);
        assert_eq!(&lines[..2], ["one line", "two"]);
        assert!(lines.iter().all(|line| columns(line) <= 20 && !line.contains('\u{1b}')), "{lines:?}");
        assert_eq!(lines.last().map(String::as_str), Some("→ bash ls"));
        assert_eq!(tails.last(&step("a"), 20, 1), ["→ bash ls"]);
        assert_eq!(wrapped("漢字漢", 3), ["漢", "字", "漢"]);
        assert!(tails.last(&step("b"), 20, 5).is_empty());
    }

    #[test]
    fn however_much_is_said_the_end_is_kept() {
        let mut tails = Tails::default();
        for n in 0..3000 {
            tails.of(&step("a")).text(&format!("line {n}\n"));
            tails.tell(&step(&format!("b{n}")), "x".into());
        }
        assert!(tails.0.len() <= MOST_AGENTS);
        tails.of(&step("a")).text(&"y".repeat(1_000_000));
        assert!(tails.0[&step("a")].lines.len() <= MOST_LINES);
    }
}
