//! What is wrong with settings, said with its place and what to do.

use super::origin::Origin;
use serde::Serialize;
use std::fmt;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Of interest to whoever looks at the settings; said nowhere else.
    Note,
    /// What stands there does not count.
    Warning,
    /// Nothing starts.
    Error,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// How bad.
    pub severity: Severity,
    /// Where.
    pub origin: Origin,
    /// What; a fragment.
    pub message: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl Diagnostic {
    /// Without help.
    pub fn new(severity: Severity, origin: Origin, message: impl Into<String>) -> Self {
        Self { severity, origin, message: message.into(), help: None }
    }

    /// With a line of help.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// `FILE:LINE:COLUMN: KEY: what` and, in a second line, what to do.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.origin)?;
        if self.origin.file.is_some() && !self.origin.key.is_empty() {
            write!(f, "{}: ", self.origin.key)?;
        }
        f.write_str(&self.message)?;
        if let Some(help) = &self.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}
