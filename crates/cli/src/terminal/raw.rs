//! The terminal while the lead owns it: keys come one by one, pastes come whole. Left as it was, whatever happens.

use std::io::{self, Write};

/// Pastes come whole; keys that a terminal of old cannot tell apart come apart, where it knows how.
const BEGIN: &str = "\x1b[?2004h\x1b[>1u";
/// The same back, the cursor shown, plain text.
const END: &str = "\x1b[<u\x1b[?2004l\x1b[?25h\x1b[0m";
/// For terminals that take the keyboard's sequence for text.
const BEGIN_OLD: &str = "\x1b[?2004h";
const END_OLD: &str = "\x1b[?2004l\x1b[?25h\x1b[0m";

/// Held as long as the terminal is ours. Dropping it gives the terminal back.
#[derive(Debug)]
pub struct RawMode {
    old: bool,
}

impl RawMode {
    /// Takes the terminal.
    ///
    /// # Errors
    /// It is none, or it is gone.
    pub fn enter() -> io::Result<Self> {
        let old = std::env::var("TERM").is_ok_and(|term| term == "linux" || term.starts_with("vt"));
        crossterm::terminal::enable_raw_mode()?;
        let held = Self { old };
        write(if old { BEGIN_OLD } else { BEGIN })?;
        Ok(held)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // Where the terminal is gone there is nothing to restore.
        let _ = write(if self.old { END_OLD } else { END });
        let _ = crossterm::terminal::disable_raw_mode();
    }
}

/// Writes to the terminal at once.
///
/// # Errors
/// It is gone.
pub fn write(bytes: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes.as_bytes())?;
    out.flush()
}

/// Columns and rows at this moment; 80 × 24 where nobody tells.
pub fn size() -> (usize, usize) {
    match crossterm::terminal::size() {
        Ok((columns, rows)) if columns > 0 && rows > 0 => (usize::from(columns), usize::from(rows)),
        Ok(_) | Err(_) => (80, 24),
    }
}
