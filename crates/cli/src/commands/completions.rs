//! `claw completions SHELL`.

use crate::args::{Shell, completions};
use crate::error::{ExpectedError, exit};
use crate::terminal::write_stdout;

/// Prints the script.
///
/// # Errors
/// Standard output.
pub fn run(shell: Shell) -> Result<u8, ExpectedError> {
    write_stdout(completions(shell))?;
    Ok(exit::OK)
}
