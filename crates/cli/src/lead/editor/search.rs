//! Search backwards through the history (Ctrl-R). Pure.

use super::history::History;

/// A search that goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Search {
    pub(super) words: String,
    found: Option<(usize, String)>,
    /// What stood in the input before.
    pub(super) before: String,
}

impl Search {
    pub(super) fn begin(before: &str) -> Self {
        Self { words: String::new(), found: None, before: before.to_owned() }
    }

    pub(super) fn found(&self) -> Option<&str> {
        self.found.as_ref().map(|(_, text)| text.as_str())
    }

    pub(super) fn add(&mut self, letter: char, history: &History) {
        self.words.push(letter);
        self.again(history);
    }

    pub(super) fn remove(&mut self, history: &History) {
        self.words.pop();
        self.again(history);
    }

    fn again(&mut self, history: &History) {
        self.found = if self.words.is_empty() {
            None
        } else {
            history.find(&self.words, history.len()).map(|(at, text)| (at, text.to_owned()))
        };
    }

    /// The next older one; stays where there is none.
    pub(super) fn older(&mut self, history: &History) {
        let below = self.found.as_ref().map_or(history.len(), |(at, _)| *at);
        if let Some((at, text)) = history.find(&self.words, below) {
            self.found = Some((at, text.to_owned()));
        }
    }
}
