//! A list that a person chooses from, narrowed by typing. Pure.

use super::deed::{Deed, Pick, PickItem};
use crate::terminal::Key;
use crate::terminal::paint::{Line, Theme};

/// Rows of the list that are shown at once.
const MOST_ROWS: usize = 10;

/// An open list.
#[derive(Clone, Debug)]
pub(super) struct Picker {
    pick: Pick,
    words: String,
    chosen: usize,
}

/// What a key did.
pub(super) enum Picked {
    /// Nothing is decided.
    Open,
    /// Nothing is wanted.
    Closed,
    /// This is wanted.
    Chosen(Deed),
}

impl Picker {
    pub(super) fn new(pick: Pick) -> Self {
        Self { pick, words: String::new(), chosen: 0 }
    }

    fn fitting(&self) -> Vec<&PickItem> {
        let wanted = self.words.to_lowercase();
        let fits = |item: &&PickItem| {
            item.text.to_lowercase().contains(&wanted) || item.about.to_lowercase().contains(&wanted)
        };
        self.pick.items.iter().filter(fits).collect()
    }

    pub(super) fn on(&mut self, key: &Key) -> Picked {
        let count = self.fitting().len();
        match key {
            Key::Esc | Key::Ctrl('c') => return Picked::Closed,
            Key::Enter => {
                return self
                    .fitting()
                    .get(self.chosen)
                    .map_or(Picked::Open, |item| Picked::Chosen(item.deed.clone()));
            }
            Key::Up | Key::Ctrl('p') => self.chosen = self.chosen.saturating_sub(1),
            Key::Down | Key::Ctrl('n') => self.chosen = (self.chosen + 1).min(count.saturating_sub(1)),
            Key::PageUp => self.chosen = self.chosen.saturating_sub(MOST_ROWS),
            Key::PageDown => self.chosen = (self.chosen + MOST_ROWS).min(count.saturating_sub(1)),
            Key::Char(letter) => {
                self.words.push(*letter);
                self.chosen = 0;
            }
            Key::Backspace => {
                self.words.pop();
                self.chosen = 0;
            }
            _ => {}
        }
        Picked::Open
    }

    pub(super) fn lines(&self, theme: &Theme, width: usize, height: usize) -> Vec<Line> {
        let mut head = Line::styled(&self.pick.title, theme.strong);
        head.push(format!("  {}", self.words), theme.accent);
        let mut lines = vec![head.cut(width)];
        let fitting = self.fitting();
        let rows = MOST_ROWS.min(height.saturating_sub(4)).max(1);
        let from = self.chosen.saturating_sub(rows - 1);
        for (at, item) in fitting.iter().enumerate().skip(from).take(rows) {
            let chosen = at == self.chosen;
            let style = if chosen { theme.chosen } else { Default::default() };
            let mut line = Line::styled(if chosen { "❯ " } else { "  " }, theme.accent);
            line.push(&item.text, style);
            line.push(format!("  {}", item.about), theme.quiet);
            lines.push(line.cut(width));
        }
        let hint = match fitting.len() {
            0 => "nothing fits · Esc closes".to_owned(),
            n => format!("{n} · ↑↓ choose · Enter takes · type to narrow · Esc closes"),
        };
        lines.push(Line::styled(hint, theme.quiet).cut(width));
        lines
    }
}
