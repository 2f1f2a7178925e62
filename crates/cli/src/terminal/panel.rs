//! The board of a run under somebody's hands: bars, the agent that is looked at, the line at the foot.

use super::board::BoardReader;
use super::controls::{Controls, Mode, Wish};
use super::press::Press;
use super::screen::Screen;
use super::tail::Tails;
use super::view::{FootView, PaneView};
use claw_orchestrator::addr::StepAddr;
use claw_orchestrator::report::board::Board;
use claw_orchestrator::report::event::RunEvent;

/// Lines of an agent's output that are handed to the screen.
const MOST_OUTPUT: usize = 60;

/// Draws one board and hears the keys.
#[derive(Debug)]
pub struct Panel {
    reader: BoardReader,
    controls: Controls,
    tails: Tails,
    rows: Vec<StepAddr>,
}

impl Panel {
    /// `danger`: the mode, where it is dangerous.
    pub fn new(danger: Option<String>) -> Self {
        Self {
            reader: BoardReader::new(danger),
            controls: Controls::default(),
            tails: Tails::default(),
            rows: Vec::new(),
        }
    }

    /// Keeps what agents say.
    pub fn hear(&mut self, event: &RunEvent) {
        self.tails.hear(event);
    }

    /// A key was pressed.
    pub fn press(&mut self, press: Press) -> Option<Wish> {
        let wish = self.controls.press(press, &self.rows);
        if let Some(Wish::Say { step, text }) = &wish {
            self.tails.tell(step, format!("you: {text}"));
        }
        wish
    }

    /// One frame. `notice` says what goes on with the run itself.
    pub fn draw(&mut self, board: &Board, notice: Option<&str>, screen: &mut Screen) {
        let (mut view, mut rows) = self.reader.view(board, notice, self.controls.chosen());
        if screen.has_keys() {
            let (width, height) = screen.size();
            view.chosen = self.controls.chosen().and_then(|step| rows.iter().position(|row| row == step));
            view.foot = self.foot();
            view.pane = self.controls.open().map(|step| PaneView {
                lines: self.tails.last(step, width.saturating_sub(3), height.min(MOST_OUTPUT)),
            });
        }
        std::mem::swap(&mut self.rows, &mut rows);
        screen.draw(&view);
    }

    fn foot(&self) -> FootView {
        match self.controls.mode() {
            Mode::Bars => FootView::Hint("q stop · p pause · d detach · ↑↓ choose · Enter open · s say"),
            Mode::Open(_) => FootView::Hint("Esc close · ↑↓ another · s say · p pause · d detach"),
            Mode::Sure => FootView::Ask(
                "Stop the run? What is done is kept, --resume goes on from it. [y/N]".to_owned(),
            ),
            Mode::Typing { step, text, .. } => {
                FootView::Typed { to: format!("to {step} (Enter sends, Esc does not):"), text: text.clone() }
            }
        }
    }
}
