//! One word of a command line, as far as it is known before the line runs.

/// One word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// As typed, quotes and all.
    pub raw: String,
    /// Without its quotes; where `is_open`, what is known of it.
    pub text: String,
    /// Holds variables, substitutions, globs or braces: it may become anything, also several words or none.
    pub is_open: bool,
    /// Spelt so that people read something else: `$'…'`, `$"…"`, braces, control characters.
    pub is_trick: bool,
    /// Some of it is quoted: no reserved word, no assignment.
    pub is_quoted: bool,
    /// `NAME=…` where a command may begin.
    pub is_assignment: bool,
}

impl Word {
    /// A word that means what it says.
    pub fn plain(text: &str) -> Self {
        Self { raw: text.to_owned(), text: text.to_owned(), ..Self::default() }
    }

    /// Its whole text, where that is known.
    pub fn known(&self) -> Option<&str> {
        (!self.is_open).then_some(self.text.as_str())
    }

    /// It is this word, without quotes.
    pub(super) fn is_bare(&self, word: &str) -> bool {
        !self.is_open && !self.is_quoted && self.text == word
    }

    /// Its text would be a substitution if it were read again, as `test -v`, `let` and `$((…))` do.
    pub(super) fn is_latent(&self) -> bool {
        self.text.contains("$(") || self.text.contains('`')
    }

    /// Whether what was read so far, up to a `=`, is a variable's name: `a`, `a+`, `a[i]`.
    pub(super) fn names_a_variable(&self) -> bool {
        if self.is_quoted && !self.raw.contains('[') {
            return false;
        }
        let name = self.raw.strip_suffix('+').unwrap_or(&self.raw);
        let name = match name.split_once('[') {
            Some((name, index)) if index.ends_with(']') => name,
            Some(_) => return false,
            None => name,
        };
        let mut chars = name.chars();
        chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
    }
}
