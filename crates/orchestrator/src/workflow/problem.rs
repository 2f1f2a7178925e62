//! What is wrong with a workflow, said with code, place, key path and help.

use serde::{Serialize, Serializer};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

macro_rules! codes {
    ($($name:ident = $meaning:literal),+ $(,)?) => {
        /// The closed list of what can be wrong. E10x file and keys, E11x graph, E12x inputs, E13x budgets, E14x
        /// isolation, E15x schemas, E16x commands and templates, E17x each, E18x names; W… are warnings.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $(#[doc = $meaning] $name),+
        }

        impl Code {
            /// All of them, in order.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// As shown: `E111`.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),+ }
            }

            /// One line for the reference page.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning),+ }
            }
        }
    };
}

codes! {
    E100 = "The file is not TOML.",
    E101 = "The file needs another version of the schema.",
    E102 = "Unknown key.",
    E103 = "A value of the wrong type, or out of its range.",
    E104 = "A key that belongs to another kind of node.",
    E105 = "A reserved name.",
    E106 = "A name that hides a visible one.",
    E107 = "Not in this version yet.",
    E108 = "A required key is missing.",
    E109 = "A file cannot be read.",
    E110 = "The graph has a cycle.",
    E111 = "Unknown node.",
    E112 = "A workflow that calls itself.",
    E120 = "A required input is missing.",
    E121 = "An input with a wrong value.",
    E122 = "Unknown input.",
    E123 = "A secret where none may stand.",
    E124 = "A declaration of an input that contradicts itself.",
    E130 = "A budget that makes no sense.",
    E131 = "A model without a known price where a ceiling in dollars holds.",
    E132 = "The plan needs more agents than its limit.",
    E140 = "Steps that may write at the same time, where that is forbidden.",
    E141 = "An isolation of a step that works in no folder, or a base without one.",
    E142 = "A git merge of what has no branch of its own.",
    E143 = "Locks inside a group that could wait for each other for ever.",
    E150 = "Not a usable JSON Schema.",
    E160 = "A template in text that a shell or an interpreter would run.",
    E161 = "An argument that an expansion makes an option.",
    E162 = "A template with statements or comments.",
    E163 = "An expression that does not parse.",
    E164 = "An expression that fails.",
    E170 = "`each` without exactly one source.",
    E171 = "Two items with one key.",
    E172 = "A dynamic source without `max`.",
    E173 = "More items than `max`.",
    E174 = "More successes wanted than there are items.",
    E180 = "A name that is not visible here.",
    E181 = "A field that the producer's schema does not have.",
    E182 = "A template prints null.",
    E183 = "A prompt that is too long.",
    E184 = "Unknown agent.",
    E185 = "Unknown tool.",
    E186 = "A model that cannot be used.",
    E187 = "A mode, a tool or a command that the permission rules refuse.",
    W140 = "Steps that may write in one folder at the same time.",
    W201 = "An agent in the file hides a built-in one.",
    W202 = "The file asks for full access, which only a flag or the user's settings give.",
}

impl Code {
    /// A warning does not stop anything.
    pub fn is_warning(self) -> bool {
        self.as_str().starts_with('W')
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Where in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// As the user named it.
    pub file: PathBuf,
    /// From 1; 0 = the file as a whole, or no file (a flag).
    pub line: usize,
    /// From 1, in characters; 0 as above.
    pub column: usize,
    /// Bytes of the file.
    pub span: Range<usize>,
}

impl Place {
    /// A file as a whole.
    pub fn whole(file: &Path) -> Self {
        Self { file: file.to_owned(), line: 0, column: 0, span: 0..0 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        Ok(())
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Which kind.
    pub code: Code,
    /// Where.
    pub place: Place,
    /// The key's path (`node.plan.needs`); empty for the file as a whole.
    pub path: String,
    /// What is wrong; a fragment.
    pub message: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code, self.place)?;
        if !self.path.is_empty() {
            write!(f, " {}", self.path)?;
        }
        write!(f, ": {}", self.message)?;
        if let Some(help) = &self.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problem {}
