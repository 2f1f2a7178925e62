//! Text with what surrounds it: byte order mark and line ends are taken off before an edit and put back after it.

use std::ops::Range;

/// A text file, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextFile {
    mark: bool,
    text: String,
}

/// Why bytes are no text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotText {
    /// A NUL byte.
    #[error("it is binary (a zero byte at offset {0})")]
    Binary(usize),
    /// Another encoding of Unicode.
    #[error("it is UTF-16, not UTF-8; convert it first")]
    Utf16,
    /// Not UTF-8.
    #[error(
        "it is not UTF-8 (byte 0x{byte:02X} at offset {at}); convert it first, or edit it with a program of bytes"
    )]
    Encoding {
        /// The first bad byte.
        byte: u8,
        /// Where.
        at: usize,
    },
}

const MARK: &[u8] = b"\xEF\xBB\xBF";

impl TextFile {
    /// Decodes; never guesses an encoding.
    pub fn decode(bytes: &[u8]) -> Result<Self, NotText> {
        if bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF") {
            return Err(NotText::Utf16);
        }
        let mark = bytes.starts_with(MARK);
        let body = if mark { &bytes[MARK.len()..] } else { bytes };
        let text = std::str::from_utf8(body).map_err(|error| {
            let at = bytes.len() - body.len() + error.valid_up_to();
            NotText::Encoding { byte: bytes[at], at }
        })?;
        match text.bytes().position(|byte| byte == 0) {
            Some(at) => Err(NotText::Binary(bytes.len() - body.len() + at)),
            None => Ok(Self { mark, text: text.to_owned() }),
        }
    }

    /// Back to bytes, unchanged where nothing was edited.
    pub fn encode(&self) -> Vec<u8> {
        let mark: &[u8] = if self.mark { MARK } else { b"" };
        [mark, self.text.as_bytes()].concat()
    }

    /// The text without the mark, line ends as they are.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Another text for the same file: the mark stays, and CRLF where most lines end so.
    pub fn with_text(&self, text: &str) -> Self {
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let text = if mostly_crlf(&self.text) { to_crlf(text) } else { text.to_owned() };
        Self { mark: self.mark, text }
    }

    /// Where `old` stands, CRLF and LF counting alike. Not overlapping.
    pub fn find(&self, old: &str) -> Vec<Range<usize>> {
        let flat = Flat::of(&self.text);
        let old = old.strip_prefix('\u{FEFF}').unwrap_or(old).replace("\r\n", "\n");
        if old.is_empty() {
            return Vec::new();
        }
        flat.text.match_indices(&old).map(|(at, found)| flat.back(at)..flat.back(at + found.len())).collect()
    }

    /// Puts `new` in place of some ranges. Its line ends become those of the range that it replaces; where that has
    /// none, those of most of the file.
    pub fn replace(&self, ranges: &[Range<usize>], new: &str) -> Self {
        let mut text = String::with_capacity(self.text.len() + new.len());
        let mut at = 0;
        // Looked at once: a file may hold millions of matches.
        let (whole_is_crlf, has_crlf) = (mostly_crlf(&self.text), self.text.contains("\r\n"));
        let (with_crlf, with_lf) = (to_crlf(new), new.replace("\r\n", "\n"));
        for range in ranges {
            text.push_str(&self.text[at..range.end][..range.start - at]);
            let replaced = &self.text[range.clone()];
            let is_crlf = if replaced.contains('\n') { mostly_crlf(replaced) } else { whole_is_crlf };
            text.push_str(match (is_crlf, has_crlf) {
                (true, _) => &with_crlf,
                (false, true) => &with_lf,
                (false, false) => new,
            });
            at = range.end;
        }
        text.push_str(&self.text[at..]);
        Self { mark: self.mark, text }
    }
}

fn mostly_crlf(text: &str) -> bool {
    let crlf = text.matches("\r\n").count();
    crlf > 0 && 2 * crlf > text.matches('\n').count()
}

fn to_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// The text with LF only, and the way back.
struct Flat {
    text: String,
    /// Places in `text` of the LFs that had a CR before them, ascending.
    had_cr: Vec<usize>,
}

impl Flat {
    fn of(text: &str) -> Self {
        let mut flat = String::with_capacity(text.len());
        let mut had_cr = Vec::new();
        let mut parts = text.split("\r\n").peekable();
        while let Some(part) = parts.next() {
            flat.push_str(part);
            if parts.peek().is_some() {
                had_cr.push(flat.len());
                flat.push('\n');
            }
        }
        Self { text: flat, had_cr }
    }

    fn back(&self, at: usize) -> usize {
        at + self.had_cr.partition_point(|cr| *cr < at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edit(bytes: &[u8], old: &str, new: &str) -> Vec<u8> {
        let file = TextFile::decode(bytes).unwrap();
        let found = file.find(old);
        assert_eq!(found.len(), 1, "{found:?}");
        file.replace(&found, new).encode()
    }

    #[test]
    fn lf_text_is_found_in_a_crlf_file_whose_mark_and_last_line_stay() {
        let before = b"\xEF\xBB\xBFone\r\ntwo\r\nthree\r\nlast without newline";
        let after = b"\xEF\xBB\xBFone\r\nTWO\r\nNEW\r\nthree\r\nlast without newline";
        assert_eq!(edit(before, "two\n", "TWO\nNEW\n"), after);
    }

    #[test]
    fn mixed_line_ends_stay_outside_the_edit() {
        assert_eq!(edit(b"one\r\ntwo\nthree\r\nfour\r", "two", "TWO"), b"one\r\nTWO\nthree\r\nfour\r");
        assert_eq!(edit(b"one\r\ntwo\nx\r\n", "two\nx", "a\nb"), b"one\r\na\nb\r\n");
    }

    #[test]
    fn a_match_that_is_ambiguous_without_carriage_returns_is_seen_as_two() {
        assert_eq!(TextFile::decode(b"a\r\nb\na\nb\n").unwrap().find("a\nb").len(), 2);
    }

    #[test]
    fn other_encodings_are_refused() {
        assert_eq!(TextFile::decode(b"caf\xE9\n"), Err(NotText::Encoding { byte: 0xE9, at: 3 }));
        assert_eq!(TextFile::decode(b"\xFF\xFEa\0"), Err(NotText::Utf16));
        assert_eq!(TextFile::decode(b"a\0"), Err(NotText::Binary(1)));
    }

    proptest! {
        #[test]
        fn what_is_found_is_what_was_asked_for(text in "[ab\r\n]{0,30}", old in "[ab\n]{1,4}") {
            let file = TextFile::decode(text.as_bytes()).unwrap();
            for range in file.find(&old) {
                prop_assert_eq!(file.text()[range].replace("\r\n", "\n"), old.clone());
            }
            prop_assert_eq!(file.encode(), text.as_bytes());
        }
    }
}
