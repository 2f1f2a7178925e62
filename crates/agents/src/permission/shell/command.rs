//! What the reading of a command line comes to.

use super::word::Word;

/// Commands that are kept of one line; of what lies behind only the words are looked at.
const MOST_COMMANDS: usize = 50_000;

/// Bytes of a line that may be read a second time.
const MOST_AGAIN: usize = 256 * 1024;

/// One simple command: a name and its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimpleCommand {
    /// Name and arguments; empty where there are only assignments and redirections.
    pub words: Vec<Word>,
    /// `NAME=…` in front of it.
    pub assignments: Vec<Word>,
    /// Files that redirections write.
    pub writes: Vec<Word>,
    /// Files that redirections read.
    pub reads: Vec<Word>,
    /// It only runs another command, which is in the list too: nothing is decided by its own name.
    pub is_transparent: bool,
    /// More arguments are added when it runs (`xargs`).
    pub is_open_ended: bool,
    /// Any later word may be the name of a command that it runs.
    pub runs_later_words: bool,
}

impl SimpleCommand {
    pub(super) fn of(words: Vec<Word>) -> Self {
        Self { words, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
            && self.assignments.is_empty()
            && self.writes.is_empty()
            && self.reads.is_empty()
    }

    /// The name, where it is known.
    pub fn name(&self) -> Option<&str> {
        self.words.first().and_then(Word::known)
    }

    /// The name without its folder.
    pub fn base_name(&self) -> Option<&str> {
        self.name().map(|name| name.rsplit('/').next().unwrap_or(name))
    }

    /// As typed, blanks made one; assignments and redirections included.
    pub fn shown(&self) -> String {
        let mut parts: Vec<String> =
            self.assignments.iter().chain(&self.words).map(|word| word.raw.clone()).collect();
        parts.extend(self.reads.iter().map(|word| format!("< {}", word.raw)));
        parts.extend(self.writes.iter().map(|word| format!("> {}", word.raw)));
        parts.join(" ")
    }
}

/// Why a line is not known before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Doubt {
    /// The name of a command comes out of a variable, a substitution, a glob or braces.
    Name,
    /// Text that becomes commands is put together while it runs.
    Script,
    /// A shell reads its commands from elsewhere.
    Input,
    /// An arithmetic expression that could hold commands.
    Arithmetic,
    /// Options of a command that runs another one are not understood.
    Options,
    /// A coprocess.
    Coprocess,
    /// Quotes or brackets that do not close, or an order of signs that is none.
    Syntax,
    /// Nested too deep.
    Deep,
    /// Too long.
    Long,
}

impl std::fmt::Display for Doubt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Name => "the name of a command is not known before it runs",
            Self::Script => "text becomes commands while it runs",
            Self::Input => "a shell reads its commands from a file or a stream",
            Self::Arithmetic => "an arithmetic expression may hold commands",
            Self::Options => "options of a command that runs another one are not understood",
            Self::Coprocess => "it starts a coprocess",
            Self::Syntax => "it cannot be read as a command line",
            Self::Deep => "it is nested too deep",
            Self::Long => "it is too long",
        })
    }
}

/// A command line as read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Analysis {
    /// All simple commands, also those inside of others, in the order in which they are found.
    pub commands: Vec<SimpleCommand>,
    /// What could not be decided, each reason once.
    pub doubts: Vec<Doubt>,
    /// Not all of it was read: only the words of the rest are known.
    pub is_cut: bool,
    /// Bytes that were read a second time, as scripts inside of scripts.
    again: usize,
}

impl Analysis {
    pub(super) fn doubt(&mut self, doubt: Doubt) {
        if !self.doubts.contains(&doubt) {
            self.doubts.push(doubt);
        }
    }

    /// Whether so much may be read again.
    pub(super) fn spend(&mut self, bytes: usize) -> bool {
        self.again += bytes;
        self.again <= MOST_AGAIN
    }

    pub(super) fn push(&mut self, command: SimpleCommand) {
        if self.commands.len() >= MOST_COMMANDS {
            self.doubt(Doubt::Long);
            self.is_cut = true;
            return;
        }
        self.commands.push(command);
    }
}
