//! The shape of the table: what a key is.

/// Kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NodeKind {
    /// One supervised agent.
    Agent,
    /// A command.
    Command,
    /// A graph inside a node.
    Group,
    /// A question.
    Gate,
    /// Several outputs become one.
    Merge,
    /// An expression.
    Set,
    /// A nested file.
    Workflow,
}

impl NodeKind {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Agent, Self::Command, Self::Group, Self::Gate, Self::Merge, Self::Set, Self::Workflow];

    /// As in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Command => "command",
            Self::Group => "group",
            Self::Gate => "gate",
            Self::Merge => "merge",
            Self::Set => "set",
            Self::Workflow => "workflow",
        }
    }

    /// From the file's word.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// Whether this version honours a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It does.
    Now,
    /// E107.
    Later,
}

/// Type of a value.
#[derive(Clone, Copy, Debug)]
pub enum Ty {
    /// A text.
    Str,
    /// Text with `{{ expr }}`.
    Tmpl,
    /// One expression.
    Expr,
    /// `true`, `false`.
    Bool,
    /// A whole number, bounds included.
    Int(i64, i64),
    /// A number, at least this.
    Float(f64),
    /// A duration.
    Dur,
    /// A size.
    Size,
    /// `[a-z][a-z0-9_-]{0,47}`.
    Slug,
    /// `[a-z][a-z0-9_]{0,47}`, not reserved.
    Ident,
    /// The name of a node; that it exists is looked at later.
    NodeName,
    /// The name of an agent.
    AgentName,
    /// One of these words; of the second list: not yet.
    Enum(&'static [&'static str], &'static [&'static str]),
    /// A list.
    List(&'static Ty),
    /// One, or a list.
    OneOrList(&'static Ty),
    /// Names that the user chooses.
    Map(&'static Ty),
    /// As `Map`, but names are idents.
    Idents(&'static Ty),
    /// As `Map`, but names are agents.
    Agents(&'static Ty),
    /// A table with keys of its own.
    Table(&'static [Key]),
    /// `[node.<id>]` and `body.<id>`.
    Nodes,
    /// Any key that a node may have.
    Defaults,
    /// Any value.
    Json,
    /// `text`, `json` or a schema, and the forms of a command.
    Output,
    /// One of several forms, told apart by their TOML type.
    Either(&'static [Ty]),
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// As in the file.
    pub name: &'static str,
    /// Type.
    pub ty: Ty,
    /// Shown in the reference; empty = none; `required` = must be there.
    pub default: &'static str,
    /// One line.
    pub help: &'static str,
    /// Whether it works.
    pub state: State,
}

impl Key {
    pub(super) const fn new(name: &'static str, ty: Ty, default: &'static str, help: &'static str) -> Self {
        Self { name, ty, default, help, state: State::Now }
    }

    pub(super) const fn later(self) -> Self {
        Self { name: self.name, ty: self.ty, default: self.default, help: self.help, state: State::Later }
    }

    /// Whether its table must have it.
    pub fn required(&self) -> bool {
        self.default == "required"
    }
}
