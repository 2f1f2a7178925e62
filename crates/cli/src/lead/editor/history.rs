//! What was sent before, newest last. Pure.

/// Entries that are kept.
pub(super) const MOST: usize = 1_000;

/// The history, and where the person stands in it.
#[derive(Clone, Debug, Default)]
pub struct History {
    entries: Vec<String>,
    at: Option<usize>,
    draft: String,
}

impl History {
    /// Of these entries, oldest first.
    pub fn new(entries: Vec<String>) -> Self {
        let surplus = entries.len().saturating_sub(MOST);
        Self { entries: entries.into_iter().skip(surplus).collect(), at: None, draft: String::new() }
    }

    /// Adds what was sent. The same twice in a row is one.
    pub fn add(&mut self, text: &str) {
        self.at = None;
        if text.trim().is_empty() || self.entries.last().is_some_and(|last| last == text) {
            return;
        }
        if self.entries.len() >= MOST {
            self.entries.remove(0);
        }
        self.entries.push(text.to_owned());
    }

    /// The entry before; `current` is what stands in the input.
    pub(super) fn older(&mut self, current: &str) -> Option<&str> {
        let next = match self.at {
            None => {
                current.clone_into(&mut self.draft);
                self.entries.len().checked_sub(1)?
            }
            Some(at) => at.checked_sub(1)?,
        };
        self.at = Some(next);
        self.entries.get(next).map(String::as_str)
    }

    /// The entry behind; at the end what was being written.
    pub(super) fn newer(&mut self) -> Option<&str> {
        let at = self.at?;
        if at + 1 < self.entries.len() {
            self.at = Some(at + 1);
            self.entries.get(at + 1).map(String::as_str)
        } else {
            self.at = None;
            Some(&self.draft)
        }
    }

    /// Somebody writes on: the next step begins at the end.
    pub(super) fn leave(&mut self) {
        self.at = None;
    }

    /// The newest entry before `below` that holds the words.
    pub(super) fn find(&self, words: &str, below: usize) -> Option<(usize, &str)> {
        let wanted = words.to_lowercase();
        let end = below.min(self.entries.len());
        let found = self.entries[..end].iter().enumerate().rev();
        found.map(|(at, text)| (at, text.as_str())).find(|(_, text)| text.to_lowercase().contains(&wanted))
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_draft_comes_back_at_the_end() {
        let mut history = History::new(vec!["a".into(), "b".into()]);
        history.add("b");
        assert_eq!(history.older("draft"), Some("b"));
        assert_eq!(history.older("b"), Some("a"));
        assert_eq!(history.older("a"), None);
        assert_eq!(history.newer(), Some("b"));
        assert_eq!(history.newer(), Some("draft"));
        assert_eq!(history.newer(), None);
    }

    #[test]
    fn it_is_bounded_and_searched_from_the_newest() {
        let mut history = History::new((0..2_000).map(|n| format!("n{n}")).collect());
        assert_eq!((history.len(), history.older("")), (MOST, Some("n1999")));
        assert_eq!(history.find("N19", 1_000).map(|(_, text)| text), Some("n1999"));
        assert_eq!(history.find("n19", 999).map(|(_, text)| text), Some("n1998"));
        assert_eq!(history.find("absent", 1_000), None);
    }
}
