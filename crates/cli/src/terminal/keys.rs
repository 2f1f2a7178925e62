//! Keys as the lead knows them, read from the terminal. The only file that reads keys.

use crossterm::event::{Event, EventStream, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use futures_util::StreamExt;
use std::future::poll_fn;
use std::task::Poll;

/// Keys that are given at once.
const BATCH: usize = 512;

/// One press, or what a terminal tells beside keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// Return.
    Enter,
    /// Return with Shift or Alt, Ctrl-J: a new line in the text.
    NewLine,
    /// Tabulator.
    Tab,
    /// Tabulator with Shift.
    BackTab,
    /// Backspace.
    Backspace,
    /// Backspace over a word.
    BackspaceWord,
    /// Delete.
    Delete,
    /// Arrow left.
    Left,
    /// Arrow right.
    Right,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// A word to the left.
    WordLeft,
    /// A word to the right.
    WordRight,
    /// To the start of the line.
    Home,
    /// To the end of the line.
    End,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// Escape.
    Esc,
    /// Control and a letter.
    Ctrl(char),
    /// Alt and a letter.
    Alt(char),
    /// A paste, whole.
    Paste(String),
    /// The terminal has another size.
    Resized,
}

/// The keys of the terminal, one after another.
#[derive(Default)]
pub struct Keys {
    stream: EventStream,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

impl Keys {
    /// The keys that are there, one at least; `None`: the terminal is gone. Cancel-safe: what was read is given.
    pub async fn some(&mut self) -> Option<Vec<Key>> {
        let mut keys = Vec::new();
        while keys.is_empty() {
            keys.extend(key_of(self.stream.next().await?.ok()?));
        }
        // Polled with the waker of this task: the stream keeps the first that it is given.
        while keys.len() < BATCH
            && let Some(event) = poll_fn(|cx| match self.stream.poll_next_unpin(cx) {
                Poll::Ready(event) => Poll::Ready(event),
                Poll::Pending => Poll::Ready(None),
            })
            .await
        {
            keys.extend(key_of(event.ok()?));
        }
        Some(keys)
    }
}

fn key_of(event: Event) -> Option<Key> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => pressed(key),
        Event::Paste(text) => Some(Key::Paste(text)),
        Event::Resize(_, _) => Some(Key::Resized),
        Event::Key(_) | Event::FocusGained | Event::FocusLost | Event::Mouse(_) => None,
    }
}

fn pressed(key: KeyEvent) -> Option<Key> {
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    let shift = key.modifiers.contains(KeyModifiers::SHIFT);
    let word = ctrl || alt;
    Some(match key.code {
        KeyCode::Enter if shift || alt => Key::NewLine,
        KeyCode::Enter => Key::Enter,
        KeyCode::Char('j') if ctrl => Key::NewLine,
        KeyCode::Char('h') if ctrl => Key::BackspaceWord,
        KeyCode::Char(letter) if ctrl => Key::Ctrl(letter.to_ascii_lowercase()),
        KeyCode::Char(letter) if alt => Key::Alt(letter.to_ascii_lowercase()),
        KeyCode::Char(letter) => Key::Char(letter),
        KeyCode::Tab if shift => Key::BackTab,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Backspace if word => Key::BackspaceWord,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Delete => Key::Delete,
        KeyCode::Left if word => Key::WordLeft,
        KeyCode::Right if word => Key::WordRight,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Esc => Key::Esc,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_apart() {
        let of = |code, modifiers| pressed(KeyEvent::new(code, modifiers));
        assert_eq!(of(KeyCode::Enter, KeyModifiers::SHIFT), Some(Key::NewLine));
        assert_eq!(of(KeyCode::Enter, KeyModifiers::NONE), Some(Key::Enter));
        assert_eq!(of(KeyCode::Char('J'), KeyModifiers::CONTROL), Some(Key::Ctrl('j')));
        assert_eq!(of(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::Ctrl('c')));
        assert_eq!(of(KeyCode::Char('Ä'), KeyModifiers::SHIFT), Some(Key::Char('Ä')));
        assert_eq!(of(KeyCode::Backspace, KeyModifiers::ALT), Some(Key::BackspaceWord));
        assert_eq!(of(KeyCode::F(1), KeyModifiers::NONE), None);
    }
}
