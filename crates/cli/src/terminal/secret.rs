//! A line that is typed and not shown.

use super::stdio::{say, stdin_is_terminal};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{BufRead, Read, stdin};

/// Bytes of a secret.
const LONGEST: u64 = 16 * 1024;

/// The terminal as it was, given back whatever happens.
struct Quiet(Termios);

impl Quiet {
    fn now() -> Option<Self> {
        let before = tcgetattr(stdin()).ok()?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        quiet.local_modes.insert(LocalModes::ECHONL);
        tcsetattr(stdin(), OptionalActions::Flush, &quiet).ok()?;
        Some(Self(before))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // A terminal that is gone needs no echo.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.0);
    }
}

/// Asks at a terminal; elsewhere takes the first line of standard input. `None`: nothing came.
pub fn hidden_line(question: &str) -> Option<String> {
    let _quiet = if stdin_is_terminal() {
        say(question);
        Quiet::now()
    } else {
        None
    };
    let mut line = String::new();
    stdin().lock().take(LONGEST).read_line(&mut line).ok()?;
    let line = line.trim().to_owned();
    (!line.is_empty()).then_some(line)
}
