//! Words: quotes, variables, substitutions, arithmetic.

use super::command::Doubt;
use super::quote::{ansi_c, backquoted};
use super::scan::{Scanner, read};
use super::word::Word;

impl Scanner<'_, '_> {
    /// The next word; `None`: a sign stands here.
    pub(super) fn word(&mut self) -> Option<Word> {
        let start = self.at;
        let mut word = Word::default();
        let mut braces = Braces::default();
        while let Some(sign) = self.peek() {
            match sign {
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b')' => break,
                b'(' if word.is_assignment && self.text[start..self.at].ends_with('=') => {
                    self.array(&mut word)
                }
                b'(' => break,
                b'<' | b'>' if self.peek_at(1) == Some(b'(') => {
                    self.at += 2;
                    self.bracket();
                    word.is_open = true;
                }
                b'<' | b'>' => break,
                b'=' if word.text.is_empty() || word.is_assignment => self.take(&mut word),
                b'=' => {
                    word.raw = self.text[start..self.at].to_owned();
                    word.is_assignment = word.names_a_variable();
                    self.take(&mut word);
                }
                b'*' | b'?' | b'[' => {
                    braces.has_glob = true;
                    self.take(&mut word);
                }
                b'{' | b',' | b'.' | b'}' => {
                    braces.saw(sign);
                    self.take(&mut word);
                }
                _ => self.part(&mut word),
            }
        }
        if self.at == start {
            return None;
        }
        word.raw = self.text[start..self.at].to_owned();
        if braces.expand() {
            word.is_trick = true;
            word.is_open = true;
        }
        // `[` alone is the command.
        word.is_open |= braces.has_glob && !matches!(word.text.as_str(), "[" | "[[");
        word.is_trick |= word.text.chars().any(|c| c.is_control() && c != '\n' && c != '\t');
        Some(word)
    }

    /// One quote, escape, expansion or sign of a word.
    fn part(&mut self, word: &mut Word) {
        match self.peek() {
            Some(b'\\') => {
                self.at += 1;
                if !self.eat("\n") {
                    word.is_quoted = true;
                    self.take(word);
                }
            }
            Some(b'\'') => {
                word.is_quoted = true;
                self.at += 1;
                let rest = self.rest();
                let length = rest.find('\'').unwrap_or_else(|| {
                    self.found.doubt(Doubt::Syntax);
                    rest.len()
                });
                word.text.push_str(&rest[..length]);
                self.at = (self.at + length + 1).min(self.text.len());
            }
            Some(b'"') => {
                self.at += 1;
                self.double(word);
            }
            Some(b'$') => self.dollar(word, false),
            Some(b'`') => self.backquote(word, false),
            Some(_) | None => self.take(word),
        }
    }

    /// One character as it stands.
    fn take(&mut self, word: &mut Word) {
        if let Some(c) = self.rest().chars().next() {
            word.text.push(c);
            self.at += c.len_utf8();
        }
    }

    /// `NAME=(…)`, at its bracket.
    fn array(&mut self, word: &mut Word) {
        word.is_open = true;
        self.at += 1;
        if self.is_too_deep() {
            return;
        }
        self.depth += 1;
        self.elements();
        self.depth -= 1;
    }

    fn elements(&mut self) {
        loop {
            match self.peek() {
                None => return self.found.doubt(Doubt::Syntax),
                Some(b')') => {
                    self.at += 1;
                    return;
                }
                Some(b' ' | b'\t' | b'\n') => self.at += 1,
                Some(b'(') => {
                    // No part of the grammar; what is in it is read as commands.
                    self.found.doubt(Doubt::Syntax);
                    self.at += 1;
                    self.bracket();
                }
                Some(_) => {
                    let before = self.at;
                    let part = self.word();
                    if part.is_some_and(|part| part.is_latent()) {
                        self.found.doubt(Doubt::Script);
                    }
                    if self.at == before {
                        self.found.doubt(Doubt::Syntax);
                        self.at += 1;
                    }
                }
            }
        }
    }

    /// Behind an opening double quote.
    fn double(&mut self, word: &mut Word) {
        word.is_quoted = true;
        loop {
            match self.peek() {
                None => return self.found.doubt(Doubt::Syntax),
                Some(b'"') => {
                    self.at += 1;
                    return;
                }
                Some(b'\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some(b'\n') => self.at += 1,
                        Some(b'$' | b'`' | b'"' | b'\\') => self.take(word),
                        Some(_) | None => word.text.push('\\'),
                    }
                }
                Some(b'$') => self.dollar(word, true),
                Some(b'`') => self.backquote(word, true),
                Some(_) => self.take(word),
            }
        }
    }

    /// A text that is expanded as between double quotes, to its end.
    pub(super) fn expansions(&mut self) {
        let mut word = Word::default();
        while let Some(sign) = self.peek() {
            match sign {
                b'\\' => {
                    self.at += 1;
                    self.take(&mut word);
                }
                b'$' => self.dollar(&mut word, true),
                b'`' => self.backquote(&mut word, true),
                _ => self.take(&mut word),
            }
        }
    }

    /// At a `$`.
    fn dollar(&mut self, word: &mut Word, in_double: bool) {
        match self.peek_at(1) {
            Some(b'(') => {
                word.is_open = true;
                if self.peek_at(2) == Some(b'(') && self.arithmetic(3) {
                    return;
                }
                self.at += 2;
                self.bracket();
            }
            Some(b'{') => {
                word.is_open = true;
                self.at += 2;
                self.parameter(in_double);
            }
            Some(b'[') => {
                word.is_open = true;
                self.found.doubt(Doubt::Arithmetic);
                self.at += 2;
            }
            Some(b'\'') if !in_double => {
                word.is_trick = true;
                word.is_quoted = true;
                self.at += 2;
                match ansi_c(self.rest()) {
                    Some((text, length)) => {
                        word.text.push_str(&text);
                        self.at += length;
                    }
                    None => {
                        self.found.doubt(Doubt::Syntax);
                        self.at = self.text.len();
                    }
                }
            }
            Some(b'"') if !in_double => {
                word.is_trick = true;
                self.at += 2;
                self.double(word);
            }
            Some(first) if first.is_ascii_alphabetic() || first == b'_' => {
                word.is_open = true;
                let rest = &self.text.as_bytes()[self.at + 1..];
                self.at += 1 + rest.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
            }
            Some(first) if first.is_ascii_digit() || b"?$!#@*-".contains(&first) => {
                word.is_open = true;
                self.at += 2;
            }
            Some(_) | None => self.take(word),
        }
    }

    /// Behind `${`, up to its bracket.
    fn parameter(&mut self, in_double: bool) {
        if self.is_too_deep() {
            return;
        }
        self.depth += 1;
        let mut inner = Word::default();
        loop {
            match self.peek() {
                None => {
                    self.found.doubt(Doubt::Syntax);
                    break;
                }
                Some(b'}') => {
                    self.at += 1;
                    break;
                }
                // Between double quotes it depends on the operator what a quote means.
                Some(b'\'') if in_double => {
                    self.found.doubt(Doubt::Syntax);
                    self.at += 1;
                }
                // The value is expanded once more, as a prompt is.
                Some(b'@') if self.peek_at(1) == Some(b'P') => {
                    self.found.doubt(Doubt::Script);
                    self.at += 2;
                }
                Some(_) if in_double => match self.peek() {
                    Some(b'"') => {
                        self.at += 1;
                        self.double(&mut inner);
                    }
                    Some(b'\\') => {
                        self.at += 1;
                        self.take(&mut inner);
                    }
                    Some(b'$') => self.dollar(&mut inner, true),
                    Some(b'`') => self.backquote(&mut inner, true),
                    Some(_) | None => self.take(&mut inner),
                },
                Some(b'<' | b'>') if self.peek_at(1) == Some(b'(') => {
                    self.at += 2;
                    self.bracket();
                }
                Some(_) => self.part(&mut inner),
            }
        }
        if inner.is_latent() {
            self.found.doubt(Doubt::Script);
        }
        self.depth -= 1;
    }

    /// At a backquote.
    fn backquote(&mut self, word: &mut Word, in_double: bool) {
        word.is_open = true;
        self.at += 1;
        let (script, length) = backquoted(self.rest(), in_double).unwrap_or_else(|| {
            self.found.doubt(Doubt::Syntax);
            (self.rest().to_owned(), self.rest().len())
        });
        self.at += length;
        if self.is_too_deep() {
            return;
        }
        read(&script, self.depth + 1, self.found);
    }

    /// At `((…))` or `$((…))`, whose opening signs have `open` bytes: reads it, if it is one.
    pub(super) fn arithmetic(&mut self, open: usize) -> bool {
        let start = self.at + open;
        let bytes = self.text.as_bytes();
        let mut depth = 0usize;
        let mut end = start;
        loop {
            match bytes.get(end) {
                None => return false,
                Some(b'(') => depth += 1,
                Some(b')') if depth > 0 => depth -= 1,
                Some(b')') => break,
                Some(_) => {}
            }
            end += 1;
        }
        if bytes.get(end + 1) != Some(&b')') {
            return false;
        }
        let inner = &self.text[start..end];
        let is_plain = |c: char| c.is_ascii_alphanumeric() || " \t\n_+-*/%<>=!&|^~?:,;()".contains(c);
        let is_variable = |c: char| c == '$';
        if !inner.chars().all(|c| is_plain(c) || is_variable(c)) || inner.contains("$(") {
            self.found.doubt(Doubt::Arithmetic);
            Scanner::new(inner, self.depth + 1, self.found).expansions_or_deep();
        }
        self.at = end + 2;
        true
    }

    fn expansions_or_deep(&mut self) {
        if !self.is_too_deep() {
            self.expansions();
        }
    }
}

/// Whether unquoted braces make several words of one.
#[derive(Default)]
struct Braces {
    is_open: bool,
    has_list: bool,
    last_was_dot: bool,
    is_closed: bool,
    has_glob: bool,
}

impl Braces {
    fn saw(&mut self, sign: u8) {
        match sign {
            b'{' => self.is_open = true,
            b',' => self.has_list |= self.is_open,
            b'.' => self.has_list |= self.is_open && self.last_was_dot,
            _ => self.is_closed |= self.has_list,
        }
        self.last_was_dot = sign == b'.';
    }

    fn expand(&self) -> bool {
        self.is_closed
    }
}
