//! While a run goes: events to lines, the board to frames, signals to the run, questions to the person.

use super::{detach, lines};
use crate::args::{Format, RunFlags};
use crate::commands::run::end;
use crate::commands::shown::Shown;
use crate::error::ExpectedError;
use crate::signals::{Ending, Signals};
use crate::terminal::{
    GateQuestion, Panel, Pressed, Question, Screen, ScreenTold, Stdout, TerminalSurroundings, Wish, kind,
    stdout_is_broken, stdout_is_terminal,
};
use claw_kernel::cancel::CancelToken;
use claw_kernel::ids::RunId;
use claw_kernel::tasks::TaskHandle;
use claw_orchestrator::addr::StepAddr;
use claw_orchestrator::journal::record::RunStatus;
use claw_orchestrator::report::RunReport;
use claw_orchestrator::report::board::Board;
use claw_orchestrator::report::event::{RunEvent, RunEventKind, StepState, WaitingFor};
use claw_orchestrator::run::{RunHandle, RunOrders};
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, mpsc};
use tokio::time::{MissedTickBehavior, interval};

/// Ten frames a second.
const FRAME: Duration = Duration::from_millis(100);
/// From the second signal to the end of the process: jobs are killed at once, manifests get the rest.
const LAST_MOMENT: Duration = Duration::from_millis(180);
/// A reader of `stream-json` gets so long after the end to take what is queued.
const PATIENCE: Duration = Duration::from_secs(2);
/// Orders from the keyboard that may be on their way.
const MOST_WISHED: usize = 16;

/// How watching ended.
pub(super) enum Watched {
    /// The run is over.
    Ended {
        /// What it came to.
        report: Box<Result<RunReport, ExpectedError>>,
        /// What ended it from outside.
        ending: Option<Ending>,
        /// Where the last line goes.
        out: Option<Arc<Stdout>>,
    },
    /// A second signal.
    Killed(Ending),
    /// It is paused, to go on in the background.
    Leaves(RunId),
}

/// What was wished for the run at the keyboard, and is not over yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    /// Nothing.
    Goes,
    /// It comes to rest.
    Pauses,
    /// It comes to rest, and goes on without this terminal.
    Leaves,
}

/// All that looks at a run.
pub(super) struct Watch {
    screen: Screen,
    panel: Panel,
    shown: Shown,
    out: Option<Arc<Stdout>>,
    partial: bool,
    ending: Option<Ending>,
    questions: Option<mpsc::Receiver<Question>>,
    asking: Option<Asking>,
    /// Gates that wait for their turn at the terminal.
    gates: VecDeque<GateQuestion>,
    course: Course,
    /// Orders from the keyboard that are on their way; each value: what is to be said about it.
    wished: FuturesUnordered<BoxFuture<'static, Option<String>>>,
    /// Why the run cannot go on in the background.
    stays: Option<&'static str>,
}

/// A question that stands on the terminal.
struct Asking {
    /// The step of a gate; `None`: a permission.
    gate: Option<StepAddr>,
    /// Done when it is answered; the value: what is to be said about it.
    put: BoxFuture<'static, Option<String>>,
}

impl Watch {
    /// `danger`: the mode, where it is dangerous.
    pub(super) fn new(
        flags: &RunFlags,
        danger: Option<String>,
        questions: Option<mpsc::Receiver<Question>>,
    ) -> Self {
        // Events on the same terminal would tear the bars.
        let shares = flags.output_format == Format::StreamJson && stdout_is_terminal();
        let seen = TerminalSurroundings::of_process(flags.no_progress || shares);
        Self {
            screen: Screen::new(kind(&seen)).with_keys(),
            panel: Panel::new(danger),
            shown: Shown::default(),
            out: (flags.output_format == Format::StreamJson).then(|| Arc::new(Stdout::start())),
            partial: flags.include_partial_messages,
            ending: None,
            questions,
            asking: None,
            gates: VecDeque::new(),
            course: Course::Goes,
            wished: FuturesUnordered::new(),
            stays: detach::stays(flags),
        }
    }

    /// Until the run is over, or a second signal ends the patience.
    pub(super) async fn run(mut self, handle: RunHandle, signals: &mut Signals) -> Watched {
        let mut events = handle.subscribe();
        let board = Arc::clone(handle.board());
        let writer = self.out.clone().map(|out| lines::write(out, handle.subscribe(), self.partial));
        let orders = handle.orders();
        let never = CancelToken::new();
        let gone = self.out.as_ref().map_or(&never, |out| out.gone()).clone();
        let mut ticks = interval(FRAME);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last: Option<BoxFuture<'static, ()>> = None;
        let report = handle.report();
        tokio::pin!(report);
        let report = loop {
            let first = self.ending;
            let bars = self.screen.has_bars();
            self.ask_gate(&orders);
            tokio::select! {
                biased;
                signal = signals.next() => match (first, &last) {
                    (None, _) => self.stop(signal, &orders),
                    (Some(_), None) => last = Some(Box::pin(kill(&orders))),
                    (Some(first), Some(_)) => return self.killed(first),
                },
                () = expired(&mut last) => return self.killed(first.unwrap_or(Ending::Interrupt)),
                () = gone.cancelled(), if self.ending.is_none() => self.stop(Ending::Pipe, &orders),
                report = &mut report => break report,
                said = answered(&mut self.asking) => self.answered(said),
                Some(question) = next(&mut self.questions), if self.asking.is_none() => self.ask(question),
                told = self.screen.told() => self.told(told, &orders),
                Some(said) = self.wished.next() => self.wish_taken(said),
                event = events.recv() => self.heard(event, &board, &orders),
                _ = ticks.tick(), if bars => self.draw(&board),
            }
        };
        self.drain(&mut events, &board);
        let report = report.map_err(|error| end::failed(&error));
        let leaves = self.course == Course::Leaves && self.ending.is_none();
        let Self { screen, out, ending, .. } = self;
        screen.finish();
        finish_lines(writer).await;
        if let Ok(report) = &report
            && leaves
            && report.status == RunStatus::Paused
        {
            return Watched::Leaves(report.run_id);
        }
        Watched::Ended { report: Box::new(report), ending, out }
    }

    /// What is not printed by now is not waited for.
    fn killed(self, first: Ending) -> Watched {
        self.screen.finish();
        Watched::Killed(first)
    }

    fn stop(&mut self, why: Ending, orders: &RunOrders) {
        self.ending = Some(why);
        // The question is void: whoever asked is being stopped.
        if self.asking.take().is_some() {
            self.screen.resume_below();
        }
        if why != Ending::Pipe {
            self.screen.line("stopping; once more ends it at once");
        }
        orders.cancel(Some(why.signal()));
    }

    fn ask(&mut self, question: Question) {
        if self.ending.is_some() {
            return;
        }
        self.screen.suspend();
        let put = Box::pin(async move {
            question.put().await;
            None
        });
        self.asking = Some(Asking { gate: None, put });
    }

    /// One gate after another.
    fn ask_gate(&mut self, orders: &RunOrders) {
        if self.asking.is_some() || self.ending.is_some() {
            return;
        }
        let Some(gate) = self.gates.pop_front() else { return };
        self.screen.suspend();
        let (step, orders) = (gate.step.clone(), orders.clone());
        let put = Box::pin(async move {
            let (step, answer) = gate.put().await?;
            orders.answer(step, answer).await.err().map(|error| format!("note: {error}"))
        });
        self.asking = Some(Asking { gate: Some(step), put });
    }

    /// Keeps the gates that wait here in step with the run: one may be answered elsewhere. `true`: the question itself
    /// tells of it.
    fn hear_gate(&mut self, event: &RunEvent) -> bool {
        let (Some(step), true) = (&event.step, self.questions.is_some()) else { return false };
        match &event.kind {
            RunEventKind::GateAsked(question) => {
                self.gates.push_back(GateQuestion { step: step.clone(), question: (**question).clone() });
                true
            }
            RunEventKind::StepState(StepState::Waiting(WaitingFor::Gate)) => true,
            RunEventKind::StepState(_) => {
                self.gates.retain(|gate| gate.step != *step);
                if self.asking.as_ref().is_some_and(|asking| asking.gate.as_ref() == Some(step)) {
                    self.asking = None;
                    self.screen.resume_below();
                }
                false
            }
            RunEventKind::RunStarted { .. }
            | RunEventKind::AgentTurn { .. }
            | RunEventKind::AgentTool { .. }
            | RunEventKind::AgentUsage(_)
            | RunEventKind::AgentText(_)
            | RunEventKind::Note(_)
            | RunEventKind::RunEnded { .. } => false,
        }
    }

    fn answered(&mut self, said: Option<String>) {
        self.asking = None;
        self.screen.resume();
        if let Some(said) = said {
            self.screen.line(said);
        }
    }

    fn told(&mut self, told: ScreenTold, orders: &RunOrders) {
        match told {
            ScreenTold::Fault(fault) => self.screen.line(fault),
            ScreenTold::Pressed(Pressed::Halt) => self.screen.halt(),
            ScreenTold::Pressed(Pressed::GoesOn) => self.screen.go_on(),
            ScreenTold::Pressed(Pressed::Key(press)) => {
                if let Some(wish) = self.panel.press(press).filter(|_| self.ending.is_none()) {
                    self.wish(wish, orders);
                }
            }
        }
    }

    fn wish(&mut self, wish: Wish, orders: &RunOrders) {
        if self.wished.len() >= MOST_WISHED {
            return;
        }
        let orders = orders.clone();
        match wish {
            Wish::Stop => self.stop(Ending::Interrupt, &orders),
            Wish::Pause if self.course == Course::Goes => {
                self.course = Course::Pauses;
                self.wished.push(pause(orders, "paused at the terminal"));
            }
            Wish::Detach if self.stays.is_some() => {
                let why = self.stays.unwrap_or_default();
                self.screen.line(format!("note: it cannot go on in the background: {why}"));
            }
            Wish::Detach if self.course != Course::Leaves => {
                let paused = self.course == Course::Pauses;
                self.course = Course::Leaves;
                self.screen.line("it goes on in the background as soon as what runs has finished");
                if !paused {
                    self.wished.push(pause(orders, "goes on in the background"));
                }
            }
            Wish::Pause | Wish::Detach => {}
            Wish::Say { step, text } => self.wished.push(Box::pin(async move {
                let refused = orders.message(step.clone(), text).await.err();
                Some(match refused {
                    Some(error) => format!("note: not delivered: {error}"),
                    None => format!("{step} hears it at its next step"),
                })
            })),
        }
    }

    fn wish_taken(&mut self, said: Option<String>) {
        if let Some(said) = said {
            self.screen.line(said);
        }
    }

    fn draw(&mut self, board: &Board) {
        let notice = match (self.ending, self.course) {
            (Some(_), _) => Some("stopping"),
            (None, Course::Goes) => None,
            (None, Course::Pauses) => Some("pausing"),
            (None, Course::Leaves) => Some("detaching"),
        };
        self.panel.draw(board, notice, &mut self.screen);
    }

    fn heard(&mut self, event: Result<RunEvent, RecvError>, board: &Board, orders: &RunOrders) {
        match event {
            Ok(event) => {
                self.panel.hear(&event);
                if !self.hear_gate(&event) {
                    self.shown.show(&event, board, &mut self.screen);
                }
            }
            Err(RecvError::Lagged(missed)) => {
                self.screen.line(format!("note: {missed} events are not shown"))
            }
            Err(RecvError::Closed) => {}
        }
        if self.screen.is_unread() && self.ending.is_none() && stdout_is_broken() {
            self.stop(Ending::Pipe, orders);
        }
    }

    fn drain(&mut self, events: &mut broadcast::Receiver<RunEvent>, board: &Board) {
        if self.asking.take().is_some() {
            self.screen.resume_below();
        }
        loop {
            match events.try_recv() {
                Ok(event) => self.shown.show(&event, board, &mut self.screen),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }
}

/// The value: why it does not pause.
fn pause(orders: RunOrders, why: &'static str) -> BoxFuture<'static, Option<String>> {
    Box::pin(
        async move { orders.pause(why.to_owned(), None).await.err().map(|error| format!("note: {error}")) },
    )
}

/// Kills what runs; the future is done when there is no more time.
fn kill(orders: &RunOrders) -> impl Future<Output = ()> + Send + use<> {
    claw_tools::process::no_more_grace();
    orders.token().cancel();
    tokio::time::sleep(LAST_MOMENT)
}

async fn expired(last: &mut Option<BoxFuture<'static, ()>>) {
    match last {
        Some(last) => last.await,
        None => std::future::pending().await,
    }
}

async fn answered(asking: &mut Option<Asking>) -> Option<String> {
    match asking {
        Some(asking) => asking.put.as_mut().await,
        None => std::future::pending().await,
    }
}

async fn next(questions: &mut Option<mpsc::Receiver<Question>>) -> Option<Question> {
    match questions {
        Some(questions) => questions.recv().await,
        None => std::future::pending().await,
    }
}

/// The writer ends with the run; one that waits for a stuck reader is left.
async fn finish_lines(writer: Option<TaskHandle<()>>) {
    if let Some(writer) = writer {
        let abort = writer.abort_handle();
        if tokio::time::timeout(PATIENCE, writer).await.is_err() {
            abort.abort();
        }
    }
}
