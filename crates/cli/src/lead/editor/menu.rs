//! The menu of completions. Pure.

/// One completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What it puts into the text.
    pub insert: String,
    /// What it is, in a few words.
    pub about: String,
}

/// Completions of the word before the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Menu {
    /// Where the word begins, in bytes of the text.
    pub from: usize,
    /// Best first; never empty.
    pub choices: Vec<Choice>,
    /// The chosen one.
    pub chosen: usize,
    /// Enter takes the choice and sends the text.
    pub sends: bool,
}

impl Menu {
    /// `None` where there is nothing to choose from.
    pub fn new(from: usize, choices: Vec<Choice>, sends: bool) -> Option<Self> {
        (!choices.is_empty()).then_some(Self { from, choices, chosen: 0, sends })
    }

    pub(super) fn move_by(&mut self, step: isize) {
        let count = isize::try_from(self.choices.len()).unwrap_or(1).max(1);
        let at = isize::try_from(self.chosen).unwrap_or(0);
        self.chosen = usize::try_from((at + step).rem_euclid(count)).unwrap_or(0);
    }

    pub(super) fn choice(&self) -> Option<&Choice> {
        self.choices.get(self.chosen)
    }
}

/// Knows what words can become.
pub trait Completer {
    /// The menu for a text and a cursor in it, where there is one.
    fn complete(&self, text: &str, cursor: usize) -> Option<Menu>;
}
