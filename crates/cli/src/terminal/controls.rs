//! What keys do while a run is watched: which agent is looked at, what is typed, what is wished. Pure.

use super::press::Press;
use claw_orchestrator::addr::StepAddr;

/// Letters of a message at most.
const LONGEST: usize = 4096;

/// What the person wants of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// End it.
    Stop,
    /// Start nothing new.
    Pause,
    /// Let it go on without this terminal.
    Detach,
    /// Tell an agent something.
    Say {
        /// Which.
        step: StepAddr,
        /// What.
        text: String,
    },
}

/// What the keys are for at the moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    /// The bars.
    #[default]
    Bars,
    /// The run would be stopped: a yes is awaited.
    Sure,
    /// One agent's output.
    Open(StepAddr),
    /// A message is typed.
    Typing {
        step: StepAddr,
        text: String,
        /// Its output is open.
        open: bool,
    },
}

/// The state of the keys.
#[derive(Debug, Default)]
pub(super) struct Controls {
    mode: Mode,
    chosen: Option<StepAddr>,
}

impl Controls {
    /// What the keys are for.
    pub(super) fn mode(&self) -> &Mode {
        &self.mode
    }

    /// The agent that was chosen with the arrows.
    pub(super) fn chosen(&self) -> Option<&StepAddr> {
        match &self.mode {
            Mode::Open(step) | Mode::Typing { step, .. } => Some(step),
            Mode::Bars | Mode::Sure => self.chosen.as_ref(),
        }
    }

    /// The agent whose output is open.
    pub(super) fn open(&self) -> Option<&StepAddr> {
        match &self.mode {
            Mode::Open(step) | Mode::Typing { step, open: true, .. } => Some(step),
            Mode::Bars | Mode::Sure | Mode::Typing { open: false, .. } => None,
        }
    }

    /// A press; `rows`: the agents as they stand on the screen.
    pub(super) fn press(&mut self, press: Press, rows: &[StepAddr]) -> Option<Wish> {
        match std::mem::take(&mut self.mode) {
            Mode::Bars => self.at_bars(press, rows),
            Mode::Sure => matches!(press, Press::Letter('y' | 'Y')).then_some(Wish::Stop),
            Mode::Open(step) => self.at_output(press, step, rows),
            Mode::Typing { step, text, open } => self.at_message(press, step, text, open),
        }
    }

    fn at_bars(&mut self, press: Press, rows: &[StepAddr]) -> Option<Wish> {
        match press {
            Press::Letter('q') => self.mode = Mode::Sure,
            Press::Letter('p') => return Some(Wish::Pause),
            Press::Letter('d') => return Some(Wish::Detach),
            Press::Letter('s') => {
                if let Some(step) = self.near(rows) {
                    self.mode = Mode::Typing { step, text: String::new(), open: false };
                }
            }
            Press::Enter | Press::Right => {
                if let Some(step) = self.near(rows) {
                    self.chosen = Some(step.clone());
                    self.mode = Mode::Open(step);
                }
            }
            Press::Down => self.step(rows, 1),
            Press::Up => self.step(rows, -1),
            Press::Esc => self.chosen = None,
            Press::Letter(_) | Press::Backspace | Press::ClearLine | Press::Left => {}
        }
        None
    }

    fn at_output(&mut self, press: Press, step: StepAddr, rows: &[StepAddr]) -> Option<Wish> {
        self.chosen = Some(step.clone());
        match press {
            Press::Esc | Press::Left | Press::Enter | Press::Letter('q') => return None,
            Press::Letter('s') => {
                self.mode = Mode::Typing { step, text: String::new(), open: true };
                return None;
            }
            Press::Up => self.step(rows, -1),
            Press::Down => self.step(rows, 1),
            Press::Letter('p') => {
                self.mode = Mode::Open(step);
                return Some(Wish::Pause);
            }
            Press::Letter('d') => {
                self.mode = Mode::Open(step);
                return Some(Wish::Detach);
            }
            Press::Letter(_) | Press::Backspace | Press::ClearLine | Press::Right => {}
        }
        self.mode = Mode::Open(self.chosen.clone().unwrap_or(step));
        None
    }

    fn at_message(&mut self, press: Press, step: StepAddr, mut text: String, open: bool) -> Option<Wish> {
        let back = if open { Mode::Open(step.clone()) } else { Mode::Bars };
        match press {
            Press::Esc => {
                self.mode = back;
                return None;
            }
            Press::Enter => {
                self.mode = back;
                let text = text.trim().to_owned();
                return (!text.is_empty()).then_some(Wish::Say { step, text });
            }
            Press::Letter(letter) if text.chars().count() < LONGEST => text.push(letter),
            Press::Backspace => {
                text.pop();
            }
            Press::ClearLine => text.clear(),
            Press::Letter(_) | Press::Up | Press::Down | Press::Left | Press::Right => {}
        }
        self.mode = Mode::Typing { step, text, open };
        None
    }

    /// The chosen one while it stands there, else the first.
    fn near(&self, rows: &[StepAddr]) -> Option<StepAddr> {
        self.chosen.as_ref().filter(|step| rows.contains(step)).or_else(|| rows.first()).cloned()
    }

    fn step(&mut self, rows: &[StepAddr], by: isize) {
        let at = self.chosen.as_ref().and_then(|step| rows.iter().position(|row| row == step));
        let next = match at {
            None if by < 0 => rows.len().checked_sub(1),
            None => Some(0),
            Some(at) => Some(at.saturating_add_signed(by).min(rows.len().saturating_sub(1))),
        };
        if let Some(step) = next.and_then(|next| rows.get(next)) {
            self.chosen = Some(step.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<StepAddr> {
        ["a", "b", "c"].map(|step| step.parse().unwrap()).into()
    }

    fn typed(controls: &mut Controls, text: &str) -> Vec<Wish> {
        text.chars().filter_map(|letter| controls.press(Press::Letter(letter), &rows())).collect()
    }

    #[test]
    fn to_stop_takes_a_yes_and_anything_else_is_a_no() {
        let mut controls = Controls::default();
        assert_eq!(typed(&mut controls, "qn"), []);
        assert_eq!(controls.press(Press::Letter('q'), &rows()), None);
        assert_eq!(controls.press(Press::Enter, &rows()), None);
        assert_eq!(controls.mode(), &Mode::Bars);
        assert_eq!(typed(&mut controls, "qy"), [Wish::Stop]);
        assert_eq!(typed(&mut controls, "pd"), [Wish::Pause, Wish::Detach]);
    }

    #[test]
    fn arrows_choose_and_a_row_that_is_gone_is_left() {
        let mut controls = Controls::default();
        for (press, chosen) in [(Press::Down, "a"), (Press::Down, "b"), (Press::Up, "a"), (Press::Up, "a")] {
            controls.press(press, &rows());
            assert_eq!(controls.chosen().unwrap().to_string(), chosen);
        }
        controls.press(Press::Enter, &rows()[1..]);
        assert_eq!(controls.open().unwrap().to_string(), "b");
        controls.press(Press::Down, &rows());
        assert_eq!(controls.open().unwrap().to_string(), "c");
        controls.press(Press::Esc, &rows());
        assert_eq!((controls.open(), controls.mode()), (None, &Mode::Bars));
        assert_eq!(controls.press(Press::Enter, &[]), None);
        assert_eq!(controls.mode(), &Mode::Bars);
    }

    #[test]
    fn a_message_goes_to_the_agent_that_is_looked_at_and_an_empty_one_nowhere() {
        let mut controls = Controls::default();
        controls.press(Press::Down, &rows());
        controls.press(Press::Down, &rows());
        assert_eq!(typed(&mut controls, "sdo not pqx"), []);
        controls.press(Press::Backspace, &rows());
        let step: StepAddr = "b".parse().unwrap();
        let said = Wish::Say { step, text: "do not pq".into() };
        assert_eq!(controls.press(Press::Enter, &rows()), Some(said));
        assert_eq!(controls.mode(), &Mode::Bars);
        typed(&mut controls, "s  ");
        assert_eq!(controls.press(Press::Enter, &rows()), None);
        typed(&mut controls, "sno");
        assert_eq!(controls.press(Press::Esc, &rows()), None);
        assert_eq!(typed(&mut controls, "p"), [Wish::Pause]);
    }
}
