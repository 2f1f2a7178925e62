//! `claw runs watch`: a run from another terminal, drawn as the one that started it draws it.

use super::found::{Found, find};
use super::owner::{failed, reach};
use super::show::{run_json, run_text};
use crate::args::{Format, WatchFlags};
use crate::commands::run::folder_error;
use crate::commands::shown::Shown;
use crate::error::{ExpectedError, exit};
use crate::signals::{Ending, Signals};
use crate::terminal::{
    BoardReader, Screen, Stdout, TerminalSurroundings, kind, say, write_answer, write_stdout,
};
use claw_orchestrator::control::{ControlError, Told, Watching};
use claw_orchestrator::report::board::Board;
use claw_orchestrator::report::event::RunEventKind;
use claw_orchestrator::rundir::{RunDetail, until_free};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// Ten frames a second.
const FRAME: Duration = Duration::from_millis(100);
/// From the end of a run to its last files.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// How watching ended.
enum Watched {
    /// The run is over.
    Ended(u8),
    /// Its process is gone without a word.
    Lost,
    /// This process is to end.
    Left(Ending),
}

/// Watches until the run ends. The exit code is the run's.
///
/// # Errors
/// The owner cannot be talked to, state cannot be read, standard output.
pub(super) async fn run(flags: &WatchFlags) -> Result<u8, ExpectedError> {
    let found = find(flags.rest(), &flags.run)?;
    let id = found.run.id();
    let Some(owner) = reach(&found.run).await? else {
        let code = present(flags, found)?;
        return Ok(code.unwrap_or(exit::FAILED));
    };
    let signals = Signals::listen()?;
    let stream = flags.rest().output_format == Format::StreamJson;
    let watching = owner.watch(flags.include_partial_messages || !stream).await;
    let watching = watching.map_err(|error| failed(&error, id))?;
    let watched =
        if stream { pass_on(watching, signals).await? } else { draw(flags, watching, signals).await };
    match watched {
        Err(error) => Err(failed(&error, id)),
        Ok(Watched::Left(ending)) => {
            say(&format!("run {id} goes on\n"));
            Ok(ending.exit_code())
        }
        Ok(Watched::Ended(code)) if stream => Ok(code),
        Ok(Watched::Ended(code)) => {
            until_free(&found.run, LAST_WORDS).await;
            present(flags, found)?;
            Ok(code)
        }
        Ok(Watched::Lost) => {
            say(&format!("the process that worked on run {id} is gone\n"));
            until_free(&found.run, LAST_WORDS).await;
            let code = if stream { None } else { present(flags, found)? };
            Ok(code.unwrap_or(exit::FAILED))
        }
    }
}

/// How it stands on disk; the value: the exit code of its last take.
fn present(flags: &WatchFlags, found: Found) -> Result<Option<u8>, ExpectedError> {
    let detail = RunDetail::of(found.run, found.file).map_err(|error| folder_error(&error))?;
    match flags.rest().output_format {
        Format::Text => write_answer(&run_text(&detail))?,
        Format::Json | Format::StreamJson => write_stdout(format!("{}\n", run_json(&detail)))?,
    }
    Ok(detail.summary.exit_code)
}

/// Lines as they come.
async fn pass_on(
    mut watching: Watching,
    mut signals: Signals,
) -> Result<Result<Watched, ControlError>, ExpectedError> {
    let out = Stdout::start();
    let gone = out.gone().clone();
    let mut end = Ok(Watched::Lost);
    loop {
        let line = tokio::select! {
            biased;
            signal = signals.next() => return Ok(Ok(Watched::Left(signal))),
            () = gone.cancelled() => break,
            line = watching.line() => line,
        };
        let line = match line {
            Ok(Some(line)) => line,
            Ok(None) => break,
            Err(error) => return Ok(Err(error)),
        };
        match watching.take(&line) {
            Ok(Some(Told::Event(event))) => {
                if let RunEventKind::RunEnded { exit_code, .. } = event.kind {
                    end = Ok(Watched::Ended(exit_code));
                }
            }
            Ok(Some(Told::Board(_) | Told::Nodes(_) | Told::Missed(_)) | None) => {}
            Err(error) => return Ok(Err(error)),
        }
        // The error that counts comes from the flush.
        let _ = out.line(line).await;
    }
    out.flush().await?;
    Ok(end)
}

/// Bars, or plain lines.
async fn draw(
    flags: &WatchFlags,
    mut watching: Watching,
    mut signals: Signals,
) -> Result<Watched, ControlError> {
    let seen = TerminalSurroundings::of_process(flags.no_progress);
    let mut screen = Screen::new(kind(&seen));
    let (mut reader, mut shown) = (BoardReader::new(None), Shown::default());
    let mut board: Option<Box<Board>> = None;
    let mut ticks = interval(FRAME);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let ended = loop {
        let bars = screen.has_bars();
        let told = tokio::select! {
            biased;
            signal = signals.next() => break Ok(Watched::Left(signal)),
            fault = screen.fault() => {
                screen.line(fault);
                continue;
            }
            told = watching.next() => told,
            _ = ticks.tick(), if bars => {
                if let Some(board) = &board {
                    reader.draw(board, None, &mut screen);
                }
                continue;
            }
        };
        match (told, &board) {
            (Err(error), _) => break Err(error),
            (Ok(None), _) => break Ok(Watched::Lost),
            (Ok(Some(Told::Board(fresh))), _) => {
                if board.is_none() {
                    begin(&fresh, &mut screen);
                }
                board = Some(fresh);
            }
            (Ok(Some(Told::Event(event))), Some(board)) => {
                board.on(&event);
                shown.show(&event, board, &mut screen);
                if let RunEventKind::RunEnded { exit_code, .. } = event.kind {
                    break Ok(Watched::Ended(exit_code));
                }
            }
            (Ok(Some(Told::Nodes(done))), Some(board)) => board.nodes_done(done),
            (Ok(Some(Told::Missed(events))), _) => {
                screen.line(format!("note: {events} events are not shown"));
            }
            (Ok(Some(Told::Event(_) | Told::Nodes(_))), None) => {}
        }
    };
    screen.finish();
    ended
}

/// Where there are no bars: how the run stands as the watching begins.
fn begin(board: &Board, screen: &mut Screen) {
    let head = board.head();
    if !screen.has_bars() {
        screen.line(format!(
            "{}: {} of {} nodes done, {} running, {} waiting",
            head.workflow, head.nodes_done, head.nodes, head.running, head.waiting
        ));
    }
    for row in board.rows(|row| row.question.is_some()) {
        if let Some(question) = &row.question {
            let message = claw_kernel::visible::visible_line(&question.message).into_owned();
            screen.line(format!("{}: asks: {message} ({})", row.step, question.choices.join(", ")));
        }
    }
}
