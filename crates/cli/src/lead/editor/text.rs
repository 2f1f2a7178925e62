//! A text and a cursor in it. Moves by characters as people see them, and by words. Pure.

use unicode_segmentation::UnicodeSegmentation;

/// The text being written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Text {
    text: String,
    /// A byte offset between two characters as people see them.
    cursor: usize,
    /// What was cut last.
    killed: String,
}

impl Text {
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(super) fn set(&mut self, text: &str) {
        text.clone_into(&mut self.text);
        self.cursor = self.text.len();
    }

    pub(super) fn take(&mut self) -> String {
        self.cursor = 0;
        std::mem::take(&mut self.text)
    }

    pub(super) fn insert(&mut self, piece: &str) {
        self.text.insert_str(self.cursor, piece);
        self.cursor += piece.len();
    }

    /// Puts a piece in the place of a range; the cursor stands behind it.
    pub(super) fn replace(&mut self, from: usize, to: usize, piece: &str) {
        self.text.replace_range(from..to, piece);
        self.cursor = from + piece.len();
    }

    pub(super) fn put_cursor(&mut self, at: usize) {
        self.cursor = self.text.floor_char_boundary(at.min(self.text.len()));
    }

    fn before(&self) -> usize {
        self.text[..self.cursor].grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn behind(&self) -> usize {
        self.text[self.cursor..].graphemes(true).next().map_or(self.cursor, |g| self.cursor + g.len())
    }

    pub(super) fn left(&mut self) {
        self.cursor = self.before();
    }

    pub(super) fn right(&mut self) {
        self.cursor = self.behind();
    }

    /// The start of the line that the cursor stands in.
    pub(super) fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    /// Its end.
    pub(super) fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    pub(super) fn home(&mut self) {
        self.cursor = self.line_start();
    }

    pub(super) fn end(&mut self) {
        self.cursor = self.line_end();
    }

    /// Where the word to the left begins.
    fn word_start(&self) -> usize {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let head = &self.text[..self.cursor];
        let word = head.trim_end_matches(|c| !is_word(c));
        word.trim_end_matches(is_word).len()
    }

    /// Where the word to the right ends.
    fn word_end(&self) -> usize {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let rest = &self.text[self.cursor..];
        let word = rest.trim_start_matches(|c| !is_word(c));
        self.text.len() - word.trim_start_matches(is_word).len()
    }

    pub(super) fn word_left(&mut self) {
        self.cursor = self.word_start();
    }

    pub(super) fn word_right(&mut self) {
        self.cursor = self.word_end();
    }

    pub(super) fn backspace(&mut self) {
        let from = self.before();
        self.text.replace_range(from..self.cursor, "");
        self.cursor = from;
    }

    pub(super) fn delete(&mut self) {
        let to = self.behind();
        self.text.replace_range(self.cursor..to, "");
    }

    fn kill(&mut self, from: usize, to: usize) {
        if from < to {
            self.text[from..to].clone_into(&mut self.killed);
            self.text.replace_range(from..to, "");
            self.cursor = from;
        }
    }

    pub(super) fn kill_word_left(&mut self) {
        self.kill(self.word_start(), self.cursor);
    }

    /// Back to the blank before the word, whatever the word consists of.
    pub(super) fn kill_to_blank(&mut self) {
        let head = self.text[..self.cursor].trim_end();
        let from = head
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + head[at..].chars().next().map_or(1, char::len_utf8));
        self.kill(from, self.cursor);
    }

    pub(super) fn kill_word_right(&mut self) {
        self.kill(self.cursor, self.word_end());
    }

    pub(super) fn kill_to_end(&mut self) {
        let end = self.line_end();
        // At the end of a line its line feed goes.
        let to = if end == self.cursor { self.behind() } else { end };
        self.kill(self.cursor, to);
    }

    pub(super) fn kill_to_start(&mut self) {
        self.kill(self.line_start(), self.cursor);
    }

    pub(super) fn yank(&mut self) {
        let piece = self.killed.clone();
        self.insert(&piece);
    }

    /// Exchanges the two characters around the cursor.
    pub(super) fn transpose(&mut self) {
        if self.cursor == self.line_end() {
            self.left();
        }
        let (before, behind) = (self.before(), self.behind());
        if before < self.cursor && self.cursor < behind {
            let swapped = format!("{}{}", &self.text[self.cursor..behind], &self.text[before..self.cursor]);
            self.replace(before, behind, &swapped);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(content: &str) -> Text {
        let mut text = Text::default();
        text.insert(content);
        text
    }

    #[test]
    fn a_character_is_what_people_see() {
        let mut family = text("a👨‍👩‍👧e\u{301}");
        family.left();
        assert_eq!(&family.as_str()[family.cursor()..], "e\u{301}");
        family.backspace();
        assert_eq!(family.as_str(), "ae\u{301}");
        family.delete();
        assert_eq!(family.as_str(), "a");
    }

    #[test]
    fn words_are_passed_and_cut() {
        let mut words = text("cargo test --lib foo_bar");
        words.word_left();
        assert_eq!(&words.as_str()[words.cursor()..], "foo_bar");
        words.word_left();
        words.word_right();
        assert_eq!(&words.as_str()[..words.cursor()], "cargo test --lib");
        words.kill_to_blank();
        assert_eq!(words.as_str(), "cargo test  foo_bar");
        words.yank();
        assert_eq!(words.as_str(), "cargo test --lib foo_bar");
        words.kill_to_start();
        assert_eq!(words.as_str(), " foo_bar");
    }

    #[test]
    fn lines_have_ends_of_their_own() {
        let mut lines = text("one\ntwo");
        lines.home();
        assert_eq!(lines.cursor(), 4);
        lines.left();
        lines.kill_to_end();
        assert_eq!(lines.as_str(), "onetwo");
        lines.transpose();
        assert_eq!(lines.as_str(), "ontewo");
    }
}
