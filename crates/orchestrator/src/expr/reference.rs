//! A name in an expression, with the path behind it.

/// What the first part of a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// `inputs.<id>`.
    Inputs,
    /// `nodes.<node>.…`.
    Nodes,
    /// `run.…`.
    Run,
    /// `loop.…`.
    Loop,
    /// A node, `item`, `index` or another bound name.
    Other,
}

/// A name as it stands in an expression: `plan.steps`, `inputs.base`, `item`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Never empty: the name and the constant attributes behind it.
    pub path: Vec<String>,
    /// Byte in the expression's text where it begins.
    pub offset: usize,
    /// Byte behind its end.
    pub end: usize,
}

impl Reference {
    /// The first part.
    pub fn name(&self) -> &str {
        self.path.first().map_or("", String::as_str)
    }

    /// What the first part stands for.
    pub fn root(&self) -> Root {
        match self.name() {
            "inputs" => Root::Inputs,
            "nodes" => Root::Nodes,
            "run" => Root::Run,
            "loop" => Root::Loop,
            _ => Root::Other,
        }
    }

    /// The name of the node, where it would be one: `plan` of `plan.steps` and of `nodes.plan.status`.
    pub fn node(&self) -> Option<&str> {
        match self.root() {
            Root::Nodes => self.path.get(1).map(String::as_str),
            Root::Other => Some(self.name()),
            Root::Inputs | Root::Run | Root::Loop => None,
        }
    }

    /// As written, with dots.
    pub fn text(&self) -> String {
        self.path.join(".")
    }
}
