//! `--detach`: the run goes on in a process of its own session; this one tells how to reach it and returns.

use crate::args::{Format, RunFlags};
use crate::error::{ExpectedError, exit};
use crate::terminal::{leave_terminal, say, write_stdout};
use claw_kernel::durable;
use claw_kernel::ids::RunId;
use claw_orchestrator::run::RunHandle;
use claw_orchestrator::rundir::{RunDir, until_free};
use claw_tools::process::{Detached, detached};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

/// Where the run in the background writes what it would print.
const LOG: &str = "detached.log";
/// From the end of a run to its last files.
const LAST_WORDS: Duration = Duration::from_secs(5);

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

/// Why a run that was started so cannot be handed over while it goes.
pub(super) fn stays(flags: &RunFlags) -> Option<&'static str> {
    if reads_stdin(flags) {
        return Some("its inputs came from standard input");
    }
    let again = flags.from.is_some() || flags.only.is_some() || flags.rerun.is_some();
    again.then_some("only part of it runs")
}

/// Goes on in the background with a run that has come to rest here.
///
/// # Errors
/// The other process cannot be started; the run is paused then.
pub(super) async fn hand_over(run: RunId, folder: &RunDir, flags: &RunFlags) -> Result<u8, ExpectedError> {
    // The last files are written after the last record.
    until_free(folder, LAST_WORDS).await;
    let program = std::env::current_exe()
        .map_err(|error| ExpectedError::Fault(format!("cannot find the program itself: {error}")))?;
    let began = detached(&program, &args_to_go_on(std::env::args_os().skip(1), run), false).await;
    match began.map_err(|error| ExpectedError::Fault(error.to_string()))? {
        Detached::Began { line, .. } => tell(&line, flags.output_format),
        Detached::Ended { code, said } => {
            say(&said);
            say(&format!("run {run} is paused; it goes on with --resume={run}\n"));
            Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::FAULT))
        }
    }
}

/// As typed, to go on with this run.
fn args_to_go_on(typed: impl Iterator<Item = OsString>, run: RunId) -> Vec<OsString> {
    let is_resume =
        |arg: &OsString| arg.to_str().is_some_and(|arg| arg == "--resume" || arg.starts_with("--resume="));
    // What was given up once stays so, and is no wish for lines to come.
    let typed = typed.filter(|arg| !is_resume(arg) && arg != "--accept-damage");
    typed.chain(["--detached".into(), format!("--resume={run}").into()]).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_process_gets_what_was_typed_and_goes_on_with_this_run() {
        let run: RunId = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
        for resume in [&[][..], &["--resume"], &["--resume=01A"]] {
            let typed = ["run", "wf.toml", "--input", "a=b"].into_iter().chain(resume.iter().copied());
            assert_eq!(
                args_to_go_on(typed.map(OsString::from), run),
                ["run", "wf.toml", "--input", "a=b", "--detached", "--resume=01ARZ3NDEKTSV4RRFFQ69G5FAV"]
            );
        }
    }
}
