//! What a key press means, free of the terminal it comes from: bytes in, presses out.

use std::collections::VecDeque;

/// One press.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Press {
    /// A letter, a digit, anything that is printed.
    Letter(char),
    /// Return.
    Enter,
    /// Escape.
    Esc,
    /// Takes the last letter back.
    Backspace,
    /// Takes the whole line back.
    ClearLine,
    /// An arrow.
    Up,
    /// An arrow.
    Down,
    /// An arrow.
    Left,
    /// An arrow.
    Right,
}

/// Presses that may wait; what is typed beyond is dropped.
const MOST: usize = 256;

/// Puts bytes together, however they are cut.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    open: Vec<u8>,
    done: VecDeque<Press>,
}

impl Decoder {
    /// Takes bytes in.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.byte(*byte);
        }
    }

    /// The next press.
    pub(super) fn next(&mut self) -> Option<Press> {
        self.done.pop_front()
    }

    /// A lone Escape, or the beginning of an arrow: time tells.
    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Nothing more belongs to what is open.
    pub(super) fn settle(&mut self) {
        if std::mem::take(&mut self.open) == [0x1b] {
            self.put(Press::Esc);
        }
    }

    /// What was begun is forgotten.
    pub(super) fn clear(&mut self) {
        self.open.clear();
        self.done.clear();
    }

    fn put(&mut self, press: Press) {
        if self.done.len() < MOST {
            self.done.push_back(press);
        }
    }

    fn byte(&mut self, byte: u8) {
        match (self.open.as_slice(), byte) {
            ([], 0x1b) => self.open.push(byte),
            ([0x1b], 0x1b) => self.put(Press::Esc),
            ([0x1b], b'[' | b'O') => self.open.push(byte),
            ([0x1b], _) => {
                self.settle();
                self.byte(byte);
            }
            ([0x1b, ..], 0x40..=0x7e) => {
                self.open.clear();
                match byte {
                    b'A' => self.put(Press::Up),
                    b'B' => self.put(Press::Down),
                    b'C' => self.put(Press::Right),
                    b'D' => self.put(Press::Left),
                    _ => {}
                }
            }
            // A sequence that never ends says nothing.
            ([0x1b, rest @ ..], _) if rest.len() < 16 => self.open.push(byte),
            ([0x1b, ..], _) => self.open.clear(),
            (_, 0x80..) => self.letter(byte),
            (_, _) => {
                self.open.clear();
                self.plain(byte);
            }
        }
    }

    fn plain(&mut self, byte: u8) {
        match byte {
            b'\r' | b'\n' => self.put(Press::Enter),
            0x7f | 0x08 => self.put(Press::Backspace),
            0x15 => self.put(Press::ClearLine),
            0..0x20 => {}
            _ => self.put(Press::Letter(char::from(byte))),
        }
    }

    /// A letter of several bytes.
    fn letter(&mut self, byte: u8) {
        self.open.push(byte);
        match std::str::from_utf8(&self.open) {
            Ok(text) => {
                let letter = text.chars().next();
                self.open.clear();
                if let Some(letter) = letter {
                    self.put(Press::Letter(letter));
                }
            }
            Err(error) if error.error_len().is_some() || self.open.len() > 3 => self.open.clear(),
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressed(pieces: &[&[u8]]) -> Vec<Press> {
        let mut decoder = Decoder::default();
        for piece in pieces {
            decoder.feed(piece);
        }
        decoder.settle();
        std::iter::from_fn(|| decoder.next()).collect()
    }

    #[test]
    fn letters_and_arrows_are_read_however_they_are_cut() {
        use Press::{Backspace, Down, Enter, Esc, Letter, Right, Up};
        assert_eq!(pressed(&[b"q\r\x7f"]), [Letter('q'), Enter, Backspace]);
        assert_eq!(pressed(&[b"\x1b[A\x1bOB"]), [Up, Down]);
        assert_eq!(pressed(&[b"\x1b", b"[", b"1;5", b"C"]), [Right]);
        assert_eq!(pressed(&["ä漢".as_bytes()]), [Letter('ä'), Letter('漢')]);
        assert_eq!(pressed(&[&"漢".as_bytes()[..2], &"漢".as_bytes()[2..]]), [Letter('漢')]);
        assert_eq!(pressed(&[b"\x1b"]), [Esc]);
        assert_eq!(pressed(&[b"\x1b\x1bq"]), [Esc, Esc, Letter('q')]);
    }

    #[test]
    fn what_is_no_key_is_dropped_and_what_comes_next_is_read() {
        assert_eq!(pressed(&[b"\x1b[15~", b"\xff\xfe", b"\x00p"]), [Press::Letter('p')]);
        assert_eq!(pressed(&[b"\x1b[1111111111111111111111", b"q"]).last(), Some(&Press::Letter('q')));
    }

    #[test]
    fn a_pasted_book_does_not_fill_the_memory() {
        assert_eq!(pressed(&[&[b'x'; 100_000]]).len(), MOST);
    }
}
