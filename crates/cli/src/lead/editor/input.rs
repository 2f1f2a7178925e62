//! The editor: keys in, a text out. Pure.

use super::history::History;
use super::layout::Layout;
use super::menu::{Completer, Menu};
use super::paste::{Pastes, with_line_feeds};
use super::search::Search;
use super::text::Text;
use crate::terminal::Key;

/// What a key did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Something is to be drawn, perhaps.
    Done,
    /// The text is sent.
    Send {
        /// With all pastes whole.
        text: String,
        /// As it stood in the input.
        shown: String,
    },
    /// The editor does nothing with this key.
    Unused(Key),
}

/// The line editor.
#[derive(Debug)]
pub struct Editor {
    text: Text,
    history: History,
    pastes: Pastes,
    menu: Option<Menu>,
    /// The menu was closed for this text.
    closed: bool,
    search: Option<Search>,
    width: usize,
}

impl Editor {
    /// Empty, with this history.
    pub fn new(history: History) -> Self {
        Self {
            text: Text::default(),
            history,
            pastes: Pastes::default(),
            menu: None,
            closed: false,
            search: None,
            width: 80,
        }
    }

    /// The text as it is shown.
    pub fn text(&self) -> &str {
        self.search.as_ref().and_then(Search::found).unwrap_or(self.text.as_str())
    }

    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.text.as_str().is_empty() && self.search.is_none()
    }

    /// The open menu.
    pub fn menu(&self) -> Option<&Menu> {
        self.menu.as_ref()
    }

    /// The words that are searched for.
    pub fn searching(&self) -> Option<&str> {
        self.search.as_ref().map(|search| search.words.as_str())
    }

    /// Its rows at a width; moves up and down go by them.
    pub fn layout(&mut self, width: usize) -> Layout {
        self.width = width;
        let cursor = match self.search.as_ref().and_then(Search::found) {
            Some(found) => found.len(),
            None => self.text.cursor(),
        };
        Layout::of(self.text(), cursor, width)
    }

    /// Writes this text instead of what stands there.
    pub fn set(&mut self, text: &str) {
        self.search = None;
        self.text.set(text);
        self.menu = None;
        self.closed = true;
    }

    /// Throws away what is written.
    pub fn clear(&mut self) {
        self.set("");
        self.pastes.clear();
        self.history.leave();
    }

    /// One key.
    pub fn on(&mut self, key: Key, completer: &dyn Completer) -> Edit {
        if self.search.is_some() {
            return self.on_search(key, completer);
        }
        if self.menu.is_some() {
            match self.on_menu(&key, completer) {
                Some(edit) => return edit,
                None => self.closed = false,
            }
        }
        let before = self.text.as_str().len();
        let cursor = self.text.cursor();
        let edit = self.edit(key);
        if before != self.text.as_str().len() || cursor != self.text.cursor() {
            self.closed = false;
        }
        if edit == Edit::Done {
            self.complete(completer);
        }
        edit
    }

    fn complete(&mut self, completer: &dyn Completer) {
        let wanted = !self.closed && self.text.as_str().len() < 10_000;
        self.menu = wanted.then(|| completer.complete(self.text.as_str(), self.text.cursor())).flatten();
    }

    /// `None`: the key is none of the menu's.
    fn on_menu(&mut self, key: &Key, completer: &dyn Completer) -> Option<Edit> {
        let menu = self.menu.as_mut()?;
        match key {
            Key::Up | Key::Ctrl('p') => menu.move_by(-1),
            Key::Down | Key::Ctrl('n') => menu.move_by(1),
            Key::BackTab => menu.move_by(-1),
            Key::Esc => {
                self.menu = None;
                self.closed = true;
            }
            Key::Tab => {
                self.take_choice();
                self.complete(completer);
            }
            Key::Enter => {
                let sends = menu.sends;
                let is_whole =
                    menu.choice().is_some_and(|choice| self.text.as_str()[menu.from..] == choice.insert);
                if sends || is_whole {
                    self.take_choice();
                    self.menu = None;
                    return Some(self.send());
                }
                self.take_choice();
                self.menu = None;
                self.closed = true;
            }
            _ => return None,
        }
        Some(Edit::Done)
    }

    fn take_choice(&mut self) {
        if let Some(menu) = self.menu.take()
            && let Some(choice) = menu.choice()
        {
            self.text.replace(menu.from, self.text.cursor(), &choice.insert);
        }
    }

    fn edit(&mut self, key: Key) -> Edit {
        match key {
            Key::Char(letter) => self.text.insert(letter.encode_utf8(&mut [0; 4])),
            Key::NewLine => self.text.insert("\n"),
            Key::Paste(paste) => {
                let paste = with_line_feeds(&paste);
                let shown = self.pastes.fold(paste);
                self.text.insert(&shown);
            }
            Key::Enter => return self.enter(),
            Key::Backspace => self.backspace(),
            Key::Delete => self.text.delete(),
            Key::BackspaceWord => self.text.kill_word_left(),
            Key::Left | Key::Ctrl('b') => self.text.left(),
            Key::Right | Key::Ctrl('f') => self.text.right(),
            Key::WordLeft | Key::Alt('b') => self.text.word_left(),
            Key::WordRight | Key::Alt('f') => self.text.word_right(),
            Key::Home | Key::Ctrl('a') => self.text.home(),
            Key::End | Key::Ctrl('e') => self.text.end(),
            Key::Up => self.up(),
            Key::Down => self.down(),
            Key::Ctrl('p') => self.older(),
            Key::Ctrl('n') => self.newer(),
            Key::Ctrl('d') if !self.text.as_str().is_empty() => self.text.delete(),
            Key::Ctrl('k') => self.text.kill_to_end(),
            Key::Ctrl('u') => self.text.kill_to_start(),
            Key::Ctrl('w') => self.text.kill_to_blank(),
            Key::Alt('d') => self.text.kill_word_right(),
            Key::Ctrl('y') => self.text.yank(),
            Key::Ctrl('t') => self.text.transpose(),
            Key::Ctrl('r') => self.search = Some(Search::begin(self.text.as_str())),
            other @ (Key::Tab
            | Key::BackTab
            | Key::PageUp
            | Key::PageDown
            | Key::Esc
            | Key::Ctrl(_)
            | Key::Alt(_)
            | Key::Resized) => return Edit::Unused(other),
        }
        Edit::Done
    }

    fn enter(&mut self) -> Edit {
        let head = &self.text.as_str()[..self.text.cursor()];
        if head.ends_with('\\') {
            self.text.backspace();
            self.text.insert("\n");
            return Edit::Done;
        }
        if self.text.as_str().trim().is_empty() {
            return Edit::Done;
        }
        self.send()
    }

    fn send(&mut self) -> Edit {
        let shown = self.text.take();
        let text = self.pastes.unfold(&shown);
        self.pastes.clear();
        self.history.add(&text);
        Edit::Send { text, shown }
    }

    fn backspace(&mut self) {
        match self.pastes.sign_before(self.text.as_str(), self.text.cursor()) {
            Some(length) => self.text.replace(self.text.cursor() - length, self.text.cursor(), ""),
            None => self.text.backspace(),
        }
    }

    fn up(&mut self) {
        let layout = self.layout(self.width);
        let (row, column) = layout.cursor;
        match row.checked_sub(1).and_then(|row| layout.offset(self.text.as_str(), row, column)) {
            Some(at) => self.text.put_cursor(at),
            None => self.older(),
        }
    }

    fn down(&mut self) {
        let layout = self.layout(self.width);
        let (row, column) = layout.cursor;
        match layout.offset(self.text.as_str(), row + 1, column) {
            Some(at) => self.text.put_cursor(at),
            None => self.newer(),
        }
    }

    fn older(&mut self) {
        if let Some(text) = self.history.older(self.text.as_str()).map(str::to_owned) {
            self.text.set(&text);
            self.closed = true;
        }
    }

    fn newer(&mut self) {
        if let Some(text) = self.history.newer().map(str::to_owned) {
            self.text.set(&text);
            self.closed = true;
        }
    }

    fn on_search(&mut self, key: Key, completer: &dyn Completer) -> Edit {
        let Some(search) = &mut self.search else { return Edit::Done };
        match key {
            Key::Char(letter) => search.add(letter, &self.history),
            Key::Backspace => search.remove(&self.history),
            Key::Ctrl('r') | Key::Up => search.older(&self.history),
            Key::Esc | Key::Ctrl('c' | 'g') => {
                let before = search.before.clone();
                self.set(&before);
            }
            Key::Resized => return Edit::Unused(key),
            other => {
                let text = search.found().unwrap_or(&search.before).to_owned();
                self.set(&text);
                // Enter takes what was found; it is not sent yet.
                if other != Key::Enter && other != Key::Tab {
                    return self.on(other, completer);
                }
            }
        }
        Edit::Done
    }
}

#[cfg(test)]
mod tests {
    use super::super::menu::Choice;
    use super::*;

    struct Commands;

    impl Completer for Commands {
        fn complete(&self, text: &str, cursor: usize) -> Option<Menu> {
            let word = text.get(..cursor)?.strip_prefix('/')?;
            let all = ["/cost", "/compact", "/help"].iter().filter(|name| name[1..].starts_with(word));
            let choices =
                all.map(|name| Choice { insert: (*name).to_owned(), about: String::new() }).collect();
            Menu::new(0, choices, true)
        }
    }

    fn typed(editor: &mut Editor, text: &str) {
        for letter in text.chars() {
            editor.on(Key::Char(letter), &Commands);
        }
    }

    fn sent(edit: Edit) -> String {
        match edit {
            Edit::Send { text, .. } => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn enter_sends_and_a_backslash_before_it_begins_a_line() {
        let mut editor = Editor::new(History::default());
        assert_eq!(editor.on(Key::Enter, &Commands), Edit::Done);
        typed(&mut editor, "one\\");
        assert_eq!(editor.on(Key::Enter, &Commands), Edit::Done);
        typed(&mut editor, "two");
        editor.on(Key::NewLine, &Commands);
        typed(&mut editor, "three");
        assert_eq!(sent(editor.on(Key::Enter, &Commands)), "one\ntwo\nthree");
        assert!(editor.is_empty());
        editor.on(Key::Up, &Commands);
        assert_eq!(editor.text(), "one\ntwo\nthree");
    }

    #[test]
    fn a_menu_is_chosen_from() {
        let mut editor = Editor::new(History::default());
        typed(&mut editor, "/co");
        assert_eq!(editor.menu().unwrap().choices.len(), 2);
        editor.on(Key::Down, &Commands);
        assert_eq!(sent(editor.on(Key::Enter, &Commands)), "/compact");
        typed(&mut editor, "/h");
        editor.on(Key::Tab, &Commands);
        assert_eq!(editor.text(), "/help");
        editor.on(Key::Esc, &Commands);
        assert!(editor.menu().is_none() && editor.text() == "/help");
    }

    #[test]
    fn the_history_is_searched() {
        let mut editor = Editor::new(History::new(vec!["fix the parser".into(), "run the tests".into()]));
        typed(&mut editor, "dra");
        editor.on(Key::Ctrl('r'), &Commands);
        typed(&mut editor, "the");
        assert_eq!((editor.text(), editor.searching()), ("run the tests", Some("the")));
        editor.on(Key::Ctrl('r'), &Commands);
        assert_eq!(editor.text(), "fix the parser");
        editor.on(Key::Esc, &Commands);
        assert_eq!(editor.text(), "dra");
        editor.on(Key::Ctrl('r'), &Commands);
        typed(&mut editor, "fix");
        assert_eq!(editor.on(Key::Enter, &Commands), Edit::Done);
        assert_eq!(sent(editor.on(Key::Enter, &Commands)), "fix the parser");
    }

    #[test]
    fn a_paste_of_any_size_is_folded_and_sent_whole() {
        let mut editor = Editor::new(History::default());
        let paste: String = (0..50_000).map(|n| format!("line {n}\r")).collect();
        editor.on(Key::Paste(paste.clone()), &Commands);
        assert_eq!(editor.text(), "[pasted 50000 lines]");
        assert_eq!(sent(editor.on(Key::Enter, &Commands)), paste.replace('\r', "\n"));
        editor.on(Key::Paste(paste), &Commands);
        editor.on(Key::Backspace, &Commands);
        assert!(editor.is_empty());
    }

    #[test]
    fn up_and_down_go_through_rows_before_the_history() {
        let mut editor = Editor::new(History::new(vec!["old".into()]));
        editor.layout(10);
        typed(&mut editor, "abcdefghijklm");
        editor.on(Key::Up, &Commands);
        typed(&mut editor, "X");
        assert_eq!(editor.text(), "abcXdefghijklm");
        editor.on(Key::Up, &Commands);
        assert_eq!(editor.text(), "old");
        editor.on(Key::Down, &Commands);
        assert_eq!(editor.text(), "abcXdefghijklm");
    }
}
