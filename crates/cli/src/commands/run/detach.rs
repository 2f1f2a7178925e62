//! `--detach`: the run goes on in a process of its own session; this one tells how to reach it and returns.

use crate::args::{Format, RunFlags};
use crate::error::{ExpectedError, exit};
use crate::terminal::{leave_terminal, say, write_stdout};
use claw_kernel::durable;
use claw_orchestrator::run::RunHandle;
use claw_tools::process::{Detached, detached};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;

/// Where the run in the background writes what it would print.
const LOG: &str = "detached.log";

/// Starts the other process and waits until its run is on record.
///
/// # Errors
/// It cannot be started; what is wrong with the run, it tells itself.
pub(super) async fn start(flags: &RunFlags) -> Result<u8, ExpectedError> {
    let program = std::env::current_exe()
        .map_err(|error| ExpectedError::Fault(format!("cannot find the program itself: {error}")))?;
    let began = detached(&program, &args(), reads_stdin(flags)).await;
    match began.map_err(|error| ExpectedError::Fault(error.to_string()))? {
        Detached::Began { line, said } => {
            // What it says of the file this process has said as well, where it has read it.
            if reads_stdin(flags) {
                say(&said);
            }
            tell(&line, flags.output_format)
        }
        Detached::Ended { code, said } => {
            say(&said);
            Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::FAULT))
        }
    }
}

/// Values for inputs come from standard input: the other process reads them.
pub(super) fn reads_stdin(flags: &RunFlags) -> bool {
    flags.inputs().inputs.as_deref() == Some(Path::new("-"))
}

/// As typed, for the other process.
fn args() -> Vec<OsString> {
    let typed = std::env::args_os().skip(1);
    let word = |arg: OsString| if arg == "--detach" { OsString::from("--detached") } else { arg };
    typed.map(word).collect()
}

fn tell(line: &str, format: Format) -> Result<u8, ExpectedError> {
    let told: Value = serde_json::from_str(line)
        .map_err(|_| ExpectedError::Fault(format!("the process in the background said: {line}")))?;
    let run = told["run_id"].as_str().unwrap_or_default();
    match format {
        Format::Text => write_stdout(format!("{run}\n"))?,
        Format::Json | Format::StreamJson => write_stdout(format!("{told}\n"))?,
    }
    say(&format!(
        "run {run} goes on in the background\n  watch:  claw runs watch {run}\n  answer: claw runs answer {run} STEP CHOICE\n  stop:   claw runs stop {run}\n"
    ));
    Ok(exit::OK)
}

/// In the other process: the run is on record, whoever waits is told, and what is printed from here on goes to a file of
/// the run.
///
/// # Errors
/// That file cannot be made.
pub(super) fn began(handle: &RunHandle) -> Result<(), ExpectedError> {
    let path = handle.folder.join(LOG);
    let log = open(&path).map_err(|source| ExpectedError::CannotWrite { path: path.clone(), source })?;
    let pid = std::process::id();
    let line = json!({ "run_id": handle.id, "folder": handle.folder, "pid": pid, "log": path });
    write_stdout(format!("{line}\n"))?;
    leave_terminal(&log).map_err(|source| ExpectedError::CannotWrite { path, source })
}

fn open(path: &Path) -> io::Result<File> {
    match durable::create_stream(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => File::options().append(true).open(path),
        other => other,
    }
}
