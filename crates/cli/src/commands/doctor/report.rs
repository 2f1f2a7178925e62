//! The report: sections, each with a state, facts and what to do.

use super::sections;
use crate::args::{DoctorFlags, Format};
use crate::error::{ExpectedError, exit};
use crate::services::Setup;
use crate::terminal::write_stdout;
use claw_kernel::visible::visible_line;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// How it is with something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// As it should be.
    Ok,
    /// Less than it could be.
    Warning,
    /// Claw cannot work.
    Error,
}

/// One thing that is looked at.
#[derive(Debug, Serialize)]
pub(super) struct Section {
    pub(super) name: &'static str,
    pub(super) state: State,
    /// For programs: all that is known.
    pub(super) data: Map<String, Value>,
    /// For people: a line each.
    #[serde(skip)]
    pub(super) lines: Vec<String>,
    /// What to do about it.
    pub(super) hints: Vec<String>,
}

impl Section {
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, state: State::Ok, data: Map::new(), lines: Vec::new(), hints: Vec::new() }
    }

    pub(super) fn fact(&mut self, name: &str, value: impl Into<Value>) -> &mut Self {
        self.data.insert(name.to_owned(), value.into());
        self
    }

    pub(super) fn line(&mut self, text: impl Into<String>) -> &mut Self {
        self.lines.push(text.into());
        self
    }

    /// Something is wrong; with the worst state it stays.
    pub(super) fn trouble(&mut self, state: State, hint: impl Into<String>) -> &mut Self {
        if self.state != State::Error {
            self.state = state;
        }
        self.hints.push(hint.into());
        self
    }
}

/// Looks, and prints the report. The exit code is 1 where something is an error.
///
/// # Errors
/// Standard output.
pub fn run(flags: &DoctorFlags) -> Result<u8, ExpectedError> {
    let setup = Setup::read_with(flags.cwd.as_deref(), &flags.settings);
    let sections = sections::all(&setup);
    let failed = sections.iter().any(|section| section.state == State::Error);
    match flags.output_format {
        Format::Text => write_stdout(text(&sections))?,
        Format::Json | Format::StreamJson => {
            let report = json!({ "version": env!("CARGO_PKG_VERSION"), "ok": !failed, "sections": sections });
            write_stdout(format!("{report}\n"))?;
        }
    }
    Ok(if failed { exit::FAILED } else { exit::OK })
}

fn text(sections: &[Section]) -> String {
    let mut out = format!("claw {}\n", env!("CARGO_PKG_VERSION"));
    for section in sections {
        let state = match section.state {
            State::Ok => "ok",
            State::Warning => "warning",
            State::Error => "error",
        };
        let _ = writeln!(out, "\n{}: {state}", section.name);
        for line in &section.lines {
            let _ = writeln!(out, "  {}", visible_line(line));
        }
        for hint in &section.hints {
            let _ = writeln!(out, "  → {}", visible_line(hint));
        }
    }
    out
}
