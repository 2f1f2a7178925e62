//! A process that goes on without this one: it says one line when it stands on its own feet, or ends with what is wrong.
//!
//! It leaves session and terminal by itself, before it does anything else.

use crate::error::ToolError;
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{ChildStderr, ChildStdout, Command};

/// Bytes of its first line, and of what it says before.
const MOST: u64 = 1 << 20;

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Detached {
    /// It goes on.
    Began {
        /// Its first line, without the line end.
        line: String,
        /// What it wrote to standard error before.
        said: String,
    },
    /// It ended without that line.
    Ended {
        /// Its exit code; `None`: a signal ended it.
        code: Option<i32>,
        /// What it wrote to standard error.
        said: String,
    },
}

/// Starts it, with the whole environment and in the folder of this process, and waits for its first line.
///
/// # Errors
/// It cannot be started.
#[expect(clippy::disallowed_methods, reason = "this is the room that starts processes")]
pub async fn detached(program: &Path, args: &[OsString], keep_stdin: bool) -> Result<Detached, ToolError> {
    let failed = |source| ToolError::Start { program: program.display().to_string(), source };
    let mut command = Command::new(program);
    command.args(args).stdin(if keep_stdin { Stdio::inherit() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(false);
    let mut child = command.spawn().map_err(failed)?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (line, said) = tokio::join!(first_line(stdout), all(stderr));
    if let Some(line) = line {
        return Ok(Detached::Began { line, said });
    }
    let status = child.wait().await.map_err(failed)?;
    Ok(Detached::Ended { code: status.code(), said })
}

async fn first_line(stdout: Option<ChildStdout>) -> Option<String> {
    let mut line = String::new();
    BufReader::new(stdout?.take(MOST)).read_line(&mut line).await.ok()?;
    line.strip_suffix('\n').map(str::to_owned)
}

/// Until it closes: one that goes on does so with its first line.
async fn all(stderr: Option<ChildStderr>) -> String {
    let mut bytes = Vec::new();
    if let Some(stderr) = stderr {
        // What could be read counts.
        let _ = stderr.take(MOST).read_to_end(&mut bytes).await;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
