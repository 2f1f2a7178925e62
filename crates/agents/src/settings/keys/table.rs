//! The shape of the table: what a key is.

use crate::trust::ItemKind;

/// Type of a value.
#[derive(Clone, Copy, Debug)]
pub enum Ty {
    /// A text.
    Text,
    /// `true`, `false`.
    Bool,
    /// A whole number, bounds included.
    Int(i64, i64),
    /// A number, above the first and up to the second.
    Float(f64, f64),
    /// A text, a number or a truth value: the value of a variable.
    Scalar,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A permission mode.
    Mode,
    /// A path: relative ones count from the file's folder, `~/` from the home.
    Path,
    /// A list.
    List(&'static Ty),
    /// Names that the user chooses.
    Map(&'static Ty),
    /// An object with keys of its own.
    Table(&'static [Key]),
    /// One of several forms, told apart by their JSON type.
    Either(&'static [Ty]),
    /// An MCP server: one that is wrong is left out, and said, without harm to the rest.
    Server,
    /// Any value; its room reads it.
    Any,
}

/// What several files make together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joins {
    /// The highest counts.
    Replaces,
    /// Elements of all files, lowest first, without doubles.
    AddsUp,
}

/// Whose word counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Everybody's.
    Anyone,
    /// A repository's only after the user's decision on that very item.
    Trusted(ItemKind),
    /// Never a repository's.
    User,
    /// The administrator's alone.
    Managed,
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// As in the file, in camelCase; snake_case is read as well.
    pub name: &'static str,
    /// Type.
    pub ty: Ty,
    /// Whose word counts.
    pub who: Who,
    /// What several files make together.
    pub joins: Joins,
    /// One line.
    pub help: &'static str,
}

impl Key {
    pub(super) const fn new(name: &'static str, ty: Ty, who: Who, help: &'static str) -> Self {
        Self { name, ty, who, joins: Joins::Replaces, help }
    }

    /// The elements of all files count.
    pub(super) const fn adds_up(self) -> Self {
        Self { name: self.name, ty: self.ty, who: self.who, joins: Joins::AddsUp, help: self.help }
    }
}

impl Ty {
    /// In words, for messages and the reference page.
    pub fn words(&self) -> String {
        match self {
            Self::Text => "a text".to_owned(),
            Self::Bool => "true or false".to_owned(),
            Self::Int(from, to) => format!("a whole number from {from} to {to}"),
            Self::Float(above, to) => format!("a number above {above} and up to {to}"),
            Self::Scalar => "a text, a number, true or false".to_owned(),
            Self::Word(words) => {
                let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                quoted.join(", ")
            }
            Self::Mode => "a permission mode".to_owned(),
            Self::Path => "a path".to_owned(),
            Self::List(of) => format!("a list of {}", of.plural()),
            Self::Map(of) => format!("an object: names, each with {}", of.words()),
            Self::Table(_) => "an object".to_owned(),
            Self::Either(forms) => {
                let words: Vec<String> = forms.iter().map(Self::words).collect();
                words.join(", or ")
            }
            Self::Server => "an MCP server".to_owned(),
            Self::Any => "any value".to_owned(),
        }
    }

    fn plural(&self) -> &'static str {
        match self {
            Self::Text => "texts",
            Self::Path => "paths",
            Self::Any
            | Self::Bool
            | Self::Int(..)
            | Self::Float(..)
            | Self::Scalar
            | Self::Word(_)
            | Self::Mode
            | Self::List(_)
            | Self::Map(_)
            | Self::Table(_)
            | Self::Either(_)
            | Self::Server => "values",
        }
    }
}
