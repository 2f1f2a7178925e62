//! Why a tool call did not do what it was asked to do. The text goes to the model: what, where, what to do.

use std::path::PathBuf;
use std::time::Duration;

/// A call that failed. Shown to the model as an error result.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The input is not what the schema asks for.
    #[error("invalid input for {tool}: {path}: {message}")]
    Input {
        /// Canonical name.
        tool: &'static str,
        /// Path within the input, `.` for the root.
        path: String,
        /// What is wrong.
        message: String,
    },
    /// A file operation failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The tool refuses: the words say why and what to do instead.
    #[error("{0}")]
    Refused(String),
    /// The time limit was reached; `output` is what came until then.
    #[error("timed out after {} ms{}", after.as_millis(), if output.is_empty() { String::new() } else { format!("\n{output}") })]
    TimedOut {
        /// The limit.
        after: Duration,
        /// Output so far, bounded.
        output: String,
    },
    /// Cancelled.
    #[error("cancelled")]
    Cancelled,
    /// A process could not be started.
    #[error("cannot start {program}: {source}")]
    Start {
        /// The program.
        program: String,
        /// The cause.
        source: std::io::Error,
    },
    /// A task of the tool died.
    #[error("the tool failed unexpectedly: {0}")]
    Panicked(String),
}
