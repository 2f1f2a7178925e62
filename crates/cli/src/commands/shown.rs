//! Events of a run as lines on a screen: all of them where there are no bars, what bars do not show where there are.

use crate::terminal::{Screen, ended, width};
use claw_kernel::clock::Timestamp;
use claw_orchestrator::report::board::Board;
use claw_orchestrator::report::event::{RunEvent, RunEventKind, StepState, WaitingFor};
use claw_orchestrator::report::plain::PlainLines;

/// What was shown of a run so far.
#[derive(Debug, Default)]
pub(super) struct Shown {
    plain: PlainLines,
    began: Option<Timestamp>,
}

impl Shown {
    /// Shows it. The board has it already.
    pub(super) fn show(&mut self, event: &RunEvent, board: &Board, screen: &mut Screen) {
        let began = *self.began.get_or_insert(event.at);
        let line = self.plain.line(event);
        if matches!(event.kind, RunEventKind::StepState(StepState::Waiting(WaitingFor::Gate))) {
            // The question itself follows.
            return;
        }
        if !screen.has_bars() {
            if let Some(line) = line {
                let seconds = event.at.since(began).as_secs();
                screen.line(format!("[{:02}:{:02}] {line}", seconds / 60, seconds % 60));
            }
            return;
        }
        match (&event.kind, &event.step) {
            (RunEventKind::StepState(StepState::Ended { state, error }), Some(step)) => {
                if let Some(row) = board.row(step) {
                    screen.line(ended(&row, *state, error.as_deref(), width(), screen.has_color()));
                }
            }
            (
                RunEventKind::StepState(StepState::Waiting(_))
                | RunEventKind::GateAsked(_)
                | RunEventKind::Note(_),
                _,
            ) => {
                if let Some(line) = line {
                    screen.line(line);
                }
            }
            (
                RunEventKind::StepState(_)
                | RunEventKind::RunStarted { .. }
                | RunEventKind::RunEnded { .. }
                | RunEventKind::AgentTurn { .. }
                | RunEventKind::AgentTool { .. }
                | RunEventKind::AgentUsage(_)
                | RunEventKind::AgentText(_),
                _,
            ) => {}
        }
    }
}
