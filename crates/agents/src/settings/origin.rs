//! Where a setting comes from.

use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Whose word a setting is. Ordered from low to high: the higher one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Comes with claw.
    Builtin,
    /// The user's own files.
    User,
    /// Files that the repository brings.
    Project,
    /// The user's own files in this repository, kept out of it.
    Local,
    /// A variable.
    Environment,
    /// A flag of this command.
    Flag,
    /// The administrator's policy.
    Managed,
}

impl Scope {
    /// Whether a repository may have written it: such a word counts only after a decision of the user.
    ///
    /// The local files are told apart from the project's by their name alone, and a repository can bring a file of
    /// that name: they are no more trusted.
    pub fn is_of_repository(self) -> bool {
        match self {
            Self::Project | Self::Local => true,
            Self::Builtin | Self::User | Self::Environment | Self::Flag | Self::Managed => false,
        }
    }
}

/// The place where something is said.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Origin {
    /// Whose word it is.
    pub scope: Scope,
    /// The file, absolute, where it stands in one.
    pub file: Option<PathBuf>,
    /// Line in the file, from 1; 0 where there is no file.
    pub line: u32,
    /// Column in the line, in characters, from 1; 0 where there is no file.
    pub column: u32,
    /// The key in the file, such as `permissions.allow[2]`; the flag or the variable elsewhere.
    pub key: String,
}

impl Origin {
    /// A flag of this command, such as `--allowedTools`.
    pub fn flag(name: &str) -> Self {
        Self { scope: Scope::Flag, file: None, line: 0, column: 0, key: name.to_owned() }
    }
}

/// `FILE:LINE:COLUMN`, else the flag or the variable.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{}:{}:{}", file.display(), self.line, self.column),
            None => f.write_str(&self.key),
        }
    }
}

/// A value and where it was said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// Where it was said.
    pub origin: Origin,
}
