//! The one pass over a command line: lists, groups, compound commands, redirections, here-documents.
//!
//! Compound commands are read flat: their reserved words only say where the next command begins, so nothing that runs
//! is missed and nothing is read twice. What is inside of `(…)`, `$(…)`, `<(…)` and backquotes is read by the same
//! pass, one level deeper.

use super::command::{Analysis, Doubt, SimpleCommand};
use super::word::Word;
use super::wrap;

/// Levels of brackets, substitutions and scripts inside of scripts.
pub(super) const MOST_DEPTH: usize = 24;
/// Bytes that are read as commands.
const MOST_BYTES: usize = 1024 * 1024;

/// Reads a command line.
pub fn analyse(text: &str) -> Analysis {
    let mut found = Analysis::default();
    read(text, 0, &mut found);
    found
}

/// Reads a script that lies `depth` levels deep.
pub(super) fn read(text: &str, depth: usize, found: &mut Analysis) {
    if text.len() > MOST_BYTES {
        found.doubt(Doubt::Long);
        found.is_cut = true;
        return;
    }
    Scanner::new(text, depth, found).list(End::Text);
}

/// The words of a text that cannot be read: whatever stands between blanks and signs, without quotes.
pub fn rough_words(text: &str) -> impl Iterator<Item = String> {
    let is_sign = |c: char| c.is_whitespace() || c.is_control() || ";&|()<>{}`$=,".contains(c);
    text.split(is_sign).filter(|word| !word.is_empty()).map(|word| word.replace(['\'', '"', '\\'], ""))
}

/// Where a list ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Text,
    Bracket,
}

struct Heredoc {
    until: String,
    strips_tabs: bool,
    is_quoted: bool,
}

pub(super) struct Scanner<'t, 'f> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    pub(super) depth: usize,
    pub(super) found: &'f mut Analysis,
    heredocs: Vec<Heredoc>,
}

impl<'t, 'f> Scanner<'t, 'f> {
    pub(super) fn new(text: &'t str, depth: usize, found: &'f mut Analysis) -> Self {
        Self { text, at: 0, depth, found, heredocs: Vec::new() }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn eat(&mut self, sign: &str) -> bool {
        let is_there = self.text.as_bytes()[self.at.min(self.text.len())..].starts_with(sign.as_bytes());
        if is_there {
            self.at += sign.len();
        }
        is_there
    }

    /// Blanks, line ends behind a backslash, comments.
    fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.peek_at(1) == Some(b'\n') => self.at += 2,
                Some(b'#') => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                Some(_) | None => return,
            }
        }
    }

    fn blanks_and_lines(&mut self) {
        self.blanks();
        while self.eat("\n") {
            self.bodies();
            self.blanks();
        }
    }

    /// What is nested too deep is not read.
    pub(super) fn is_too_deep(&mut self) -> bool {
        let is_too_deep = self.depth >= MOST_DEPTH;
        if is_too_deep {
            self.found.doubt(Doubt::Deep);
            self.found.is_cut = true;
            self.at = self.text.len();
        }
        is_too_deep
    }

    /// A level deeper; what is nested too deep is not read.
    pub(super) fn bracket(&mut self) {
        if self.is_too_deep() {
            return;
        }
        self.depth += 1;
        self.list(End::Bracket);
        self.depth -= 1;
    }

    /// Commands up to the end.
    pub(super) fn list(&mut self, end: End) {
        let mut cases = 0;
        loop {
            self.blanks();
            let Some(sign) = self.peek() else {
                if end == End::Bracket {
                    self.found.doubt(Doubt::Syntax);
                }
                return;
            };
            match sign {
                b'\n' => {
                    self.at += 1;
                    self.bodies();
                }
                b';' => self.separator(&mut cases),
                b'&' if self.peek_at(1) != Some(b'>') => self.at += 1,
                b'|' => self.at += 1,
                b')' => {
                    self.at += 1;
                    if end == End::Bracket {
                        if !self.heredocs.is_empty() || cases > 0 {
                            self.found.doubt(Doubt::Syntax);
                        }
                        return;
                    }
                    self.found.doubt(Doubt::Syntax);
                }
                b'(' if self.peek_at(1) == Some(b'(') && self.arithmetic(2) => {}
                b'(' => {
                    self.at += 1;
                    self.bracket();
                }
                _ => self.command(&mut cases),
            }
        }
    }

    fn separator(&mut self, cases: &mut usize) {
        if self.eat(";;&") || self.eat(";;") || self.eat(";&") {
            if *cases > 0 {
                self.patterns(cases);
            } else {
                self.found.doubt(Doubt::Syntax);
            }
        } else {
            self.at += 1;
        }
    }

    /// The patterns of a branch of `case`, up to its bracket; or the end of all.
    fn patterns(&mut self, cases: &mut usize) {
        self.blanks_and_lines();
        self.eat("(");
        let mut is_first = true;
        loop {
            self.blanks_and_lines();
            match self.peek() {
                Some(b')') => {
                    self.at += 1;
                    return;
                }
                Some(b'|') => self.at += 1,
                None => return self.found.doubt(Doubt::Syntax),
                Some(_) => match self.word() {
                    Some(word) if is_first && word.is_bare("esac") => {
                        *cases = cases.saturating_sub(1);
                        return;
                    }
                    Some(_) => {}
                    None => {
                        self.found.doubt(Doubt::Syntax);
                        self.at += 1;
                    }
                },
            }
            is_first = false;
        }
    }

    /// One simple command, or the reserved word in front of the next.
    fn command(&mut self, cases: &mut usize) {
        let mut command = SimpleCommand::default();
        loop {
            self.blanks();
            match self.peek() {
                None | Some(b'\n' | b';' | b'|' | b')') => break,
                Some(b'&') if self.peek_at(1) != Some(b'>') => break,
                Some(b'(') => {
                    self.at += 1;
                    if command.words.len() == 1 && self.closes_at_once() {
                        // A function: its body is the next command.
                        return;
                    }
                    self.found.doubt(Doubt::Syntax);
                    self.bracket();
                    continue;
                }
                Some(b'&') => {
                    self.redirection(&mut command);
                    continue;
                }
                Some(b'<' | b'>') if self.peek_at(1) != Some(b'(') => {
                    self.redirection(&mut command);
                    continue;
                }
                Some(_) => {}
            }
            let Some(word) = self.word() else {
                self.found.doubt(Doubt::Syntax);
                self.at += 1;
                continue;
            };
            if self.is_descriptor(&word) {
                continue;
            }
            if command.is_empty() && self.reserved(&word, cases) {
                return;
            }
            if command.words.is_empty() && word.is_assignment {
                command.assignments.push(word);
            } else {
                command.words.push(word);
            }
        }
        self.emit(command);
    }

    fn closes_at_once(&mut self) -> bool {
        let before = self.at;
        self.blanks();
        let closes = self.eat(")");
        if !closes {
            self.at = before;
        }
        closes
    }

    /// `2` of `2>…`, `{name}` of `{name}>…`.
    fn is_descriptor(&self, word: &Word) -> bool {
        let is_number = !word.raw.is_empty() && word.raw.bytes().all(|byte| byte.is_ascii_digit());
        let is_name = word.raw.len() > 2 && word.raw.starts_with('{') && word.raw.ends_with('}');
        (is_number || is_name) && matches!(self.peek(), Some(b'<' | b'>')) && self.peek_at(1) != Some(b'(')
    }

    /// Whether the word is one of the grammar's; then what belongs to it is read.
    fn reserved(&mut self, word: &Word, cases: &mut usize) -> bool {
        if word.is_open || word.is_quoted {
            return false;
        }
        match word.text.as_str() {
            "if" | "then" | "elif" | "else" | "fi" | "while" | "until" | "do" | "done" | "!" | "{" | "}" => {}
            "time" => {
                self.blanks();
                let _ = self.eat("-p ") || self.eat("-p\t");
            }
            "coproc" => self.found.doubt(Doubt::Coprocess),
            "for" | "select" => self.loop_words(),
            "case" => {
                self.blanks_and_lines();
                let value = self.word();
                self.blanks_and_lines();
                if value.is_none() || !self.word().is_some_and(|word| word.is_bare("in")) {
                    self.found.doubt(Doubt::Syntax);
                }
                *cases += 1;
                self.patterns(cases);
            }
            "esac" if *cases > 0 => *cases -= 1,
            "function" => {
                self.blanks();
                let _name = self.word();
                self.blanks();
                if self.eat("(") && !self.closes_at_once() {
                    self.found.doubt(Doubt::Syntax);
                }
            }
            "[[" => self.test(),
            _ => return false,
        }
        true
    }

    /// `for NAME in WORDS`, `for ((…))`.
    fn loop_words(&mut self) {
        self.blanks();
        if self.peek() == Some(b'(') && self.peek_at(1) == Some(b'(') {
            if !self.arithmetic(2) {
                self.found.doubt(Doubt::Syntax);
            }
            return;
        }
        let _name = self.word();
        self.blanks_and_lines();
        let before = self.at;
        if !self.word().is_some_and(|word| word.is_bare("in")) {
            self.at = before;
            return;
        }
        loop {
            self.blanks();
            if self.word().is_none() {
                return;
            }
        }
    }

    /// `[[ … ]]`.
    fn test(&mut self) {
        loop {
            self.blanks_and_lines();
            if self.peek().is_none() {
                return self.found.doubt(Doubt::Syntax);
            }
            match self.word() {
                Some(word) if word.is_bare("]]") => return,
                Some(word) if word.is_latent() => self.found.doubt(Doubt::Script),
                Some(_) => {}
                None => self.at += 1,
            }
        }
    }

    fn redirection(&mut self, command: &mut SimpleCommand) {
        const SIGNS: [&str; 12] = ["&>>", "&>", "<<<", "<<-", "<<", "<>", "<&", ">&", ">>", ">|", "<", ">"];
        let Some(sign) = SIGNS.into_iter().find(|sign| self.eat(sign)) else {
            self.found.doubt(Doubt::Syntax);
            self.at += 1;
            return;
        };
        self.blanks();
        let Some(target) = self.word() else { return self.found.doubt(Doubt::Syntax) };
        match sign {
            "<<" | "<<-" => {
                if target.is_open {
                    self.found.doubt(Doubt::Syntax);
                }
                self.heredocs.push(Heredoc {
                    until: target.text,
                    strips_tabs: sign == "<<-",
                    is_quoted: target.is_quoted,
                });
            }
            "<<<" => {}
            "<" => command.reads.push(target),
            "<&" | ">&" if is_copy(&target) => {}
            _ => {
                let is_nowhere = matches!(target.known(), Some("/dev/null" | "/dev/stdout" | "/dev/stderr"));
                if !is_nowhere {
                    command.writes.push(target);
                }
            }
        }
    }

    /// The here-documents of the line that ended.
    fn bodies(&mut self) {
        for heredoc in std::mem::take(&mut self.heredocs) {
            let start = self.at;
            let mut end = self.text.len();
            while self.at < self.text.len() {
                let line_start = self.at;
                let line = self.rest().split('\n').next().unwrap_or_default();
                self.at = (self.at + line.len() + 1).min(self.text.len());
                let line = if heredoc.strips_tabs { line.trim_start_matches('\t') } else { line };
                if line == heredoc.until {
                    end = line_start;
                    break;
                }
            }
            if !heredoc.is_quoted {
                let body = self.text.get(start..end).unwrap_or_default();
                Scanner::new(body, self.depth, self.found).expansions();
            }
        }
    }

    /// A command is whole: it is listed, and so is what it runs.
    fn emit(&mut self, command: SimpleCommand) {
        if !command.is_empty() {
            wrap::list(command, self.depth, self.found);
        }
    }
}

/// `1`, `-`, `1-`.
fn is_copy(target: &Word) -> bool {
    let text = target.text.strip_suffix('-').unwrap_or(&target.text);
    !target.is_open && text.bytes().all(|byte| byte.is_ascii_digit())
}
