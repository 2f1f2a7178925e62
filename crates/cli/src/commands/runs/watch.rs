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
    Panel, Pressed, Screen, ScreenTold, Stdout, TerminalSurroundings, Wish, kind, say, write_answer,
    write_stdout,
};
use claw_orchestrator::control::{ControlError, Order, Told, Watching};
use claw_orchestrator::report::board::Board;
use claw_orchestrator::report::event::RunEventKind;
use claw_orchestrator::rundir::{RunDetail, RunDir, until_free};
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// Ten frames a second.
const FRAME: Duration = Duration::from_millis(100);
/// From the end of a run to its last files.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Orders from the keyboard that may be on their way.
const MOST_WISHED: usize = 16;

/// How watching ended.
enum Watched {
    /// The run is over.
    Ended(u8),
    /// Its process is gone without a word.
    Lost,
    /// This process is to end.
    Left(Ending),
    /// Whoever watched has seen enough.
    Detached,
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
        if stream { pass_on(watching, signals).await? } else { draw(flags, &found, watching, signals).await };
    match watched {
        Err(error) => Err(failed(&error, id)),
        Ok(Watched::Left(ending)) => {
            say(&format!("run {id} goes on\n"));
            Ok(ending.exit_code())
        }
        Ok(Watched::Detached) => {
            say(&format!("run {id} goes on\n"));
            Ok(exit::OK)
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
    found: &Found,
    mut watching: Watching,
    mut signals: Signals,
) -> Result<Watched, ControlError> {
    let seen = TerminalSurroundings::of_process(flags.no_progress);
    let mut look = Look {
        screen: Screen::new(kind(&seen)).with_keys(),
        panel: Panel::new(None),
        shown: Shown::default(),
        board: None,
        wished: FuturesUnordered::new(),
        notice: None,
    };
    let mut ticks = interval(FRAME);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let ended = loop {
        let bars = look.screen.has_bars();
        let ended = tokio::select! {
            biased;
            signal = signals.next() => Some(Ok(Watched::Left(signal))),
            told = look.screen.told() => look.told(told, found),
            Some(said) = look.wished.next() => {
                look.screen.line(said);
                None
            }
            told = watching.next() => look.heard(told),
            _ = ticks.tick(), if bars => {
                look.draw();
                None
            }
        };
        if let Some(ended) = ended {
            break ended;
        }
    };
    look.screen.finish();
    ended
}

/// All that looks at a run from here.
struct Look {
    screen: Screen,
    panel: Panel,
    shown: Shown,
    board: Option<Box<Board>>,
    /// Orders from the keyboard on their way; each value: what is to be said about it.
    wished: FuturesUnordered<BoxFuture<'static, String>>,
    notice: Option<&'static str>,
}

impl Look {
    fn draw(&mut self) {
        if let Some(board) = &self.board {
            self.panel.draw(board, self.notice, &mut self.screen);
        }
    }

    /// From the run.
    fn heard(&mut self, told: Result<Option<Told>, ControlError>) -> Option<Result<Watched, ControlError>> {
        match (told, &self.board) {
            (Err(error), _) => return Some(Err(error)),
            (Ok(None), _) => return Some(Ok(Watched::Lost)),
            (Ok(Some(Told::Board(fresh))), _) => {
                if self.board.is_none() {
                    begin(&fresh, &mut self.screen);
                }
                self.board = Some(fresh);
            }
            (Ok(Some(Told::Event(event))), Some(board)) => {
                board.on(&event);
                self.panel.hear(&event);
                self.shown.show(&event, board, &mut self.screen);
                if let RunEventKind::RunEnded { exit_code, .. } = event.kind {
                    return Some(Ok(Watched::Ended(exit_code)));
                }
            }
            (Ok(Some(Told::Nodes(done))), Some(board)) => board.nodes_done(done),
            (Ok(Some(Told::Missed(events))), _) => {
                self.screen.line(format!("note: {events} events are not shown"));
            }
            (Ok(Some(Told::Event(_) | Told::Nodes(_))), None) => {}
        }
        None
    }

    /// From the screen.
    fn told(&mut self, told: ScreenTold, found: &Found) -> Option<Result<Watched, ControlError>> {
        let wish = match told {
            ScreenTold::Fault(fault) => {
                self.screen.line(fault);
                return None;
            }
            ScreenTold::Pressed(Pressed::Halt) => {
                self.screen.halt();
                return None;
            }
            ScreenTold::Pressed(Pressed::GoesOn) => {
                self.screen.go_on();
                return None;
            }
            ScreenTold::Pressed(Pressed::Key(press)) => self.panel.press(press)?,
        };
        let (order, done) = match wish {
            Wish::Detach => return Some(Ok(Watched::Detached)),
            Wish::Stop => {
                self.notice = Some("stopping");
                (Order::Stop, "the run is stopped".to_owned())
            }
            Wish::Pause => {
                self.notice = Some("pausing");
                let reason = Some("paused at a terminal".to_owned());
                (Order::Pause { reason }, "the run pauses: what runs may finish".to_owned())
            }
            Wish::Say { step, text } => {
                let done = format!("{step} hears it at its next step");
                (Order::Message { step, text }, done)
            }
        };
        if self.wished.len() < MOST_WISHED {
            self.wished.push(give(found.run.clone(), order, done));
        }
        None
    }
}

/// Gives an order; the value: what became of it.
fn give(run: RunDir, order: Order, done: String) -> BoxFuture<'static, String> {
    Box::pin(async move {
        let refused = |error: &dyn std::fmt::Display| format!("note: not delivered: {error}");
        match reach(&run).await {
            Ok(Some(owner)) => match owner.order(&order).await {
                Ok(()) => done,
                Err(error) => refused(&error),
            },
            Ok(None) => refused(&"no process works on the run"),
            Err(error) => refused(&error),
        }
    })
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
