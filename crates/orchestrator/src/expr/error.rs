//! What is wrong with an expression or a template: when it is read, and when it is evaluated.

use crate::workflow::problem::Code;

/// A text that is no expression or no template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParseError {
    /// E162 or E163.
    pub code: Code,
    /// Byte in the text where it goes wrong.
    pub offset: usize,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

impl ParseError {
    pub(super) fn new(code: Code, offset: usize, message: impl Into<String>) -> Self {
        Self { code, offset, message: message.into(), help: None }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// An evaluation that failed. Its failure class is `expr`.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    /// A template printed null.
    #[error("`{expr}` is null, and null cannot be printed (write `{expr} | default('…')` if that is meant)")]
    Null {
        /// The expression as written.
        expr: String,
    },
    /// A whole prompt is too long.
    #[error(
        "the prompt has {bytes} bytes, more than {limit}; pass long texts through `head`, `tail`, `lines` or `path`"
    )]
    TooLong {
        /// Of the whole prompt.
        bytes: usize,
        /// The bound.
        limit: usize,
    },
    /// A filter, an operator or the fuel said no.
    #[error("`{expr}` cannot be evaluated: {message}")]
    Failed {
        /// The expression as written.
        expr: String,
        /// What the engine says.
        message: String,
        /// The engine's own error.
        #[source]
        source: Option<Box<minijinja::Error>>,
    },
}

impl EvalError {
    /// E164, E182 or E183.
    pub fn code(&self) -> Code {
        match self {
            Self::Null { .. } => Code::E182,
            Self::TooLong { .. } => Code::E183,
            Self::Failed { .. } => Code::E164,
        }
    }

    pub(super) fn failed(expr: &str, source: minijinja::Error) -> Self {
        let message = match source.detail() {
            Some(detail) => format!("{}: {detail}", source.kind()),
            None => source.kind().to_string(),
        };
        Self::Failed { expr: expr.to_owned(), message, source: Some(Box::new(source)) }
    }
}
