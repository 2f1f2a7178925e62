//! While a run goes: events to lines, the board to frames, signals to the run, questions to the person.

use super::lines;
use crate::args::{Format, RunFlags};
use crate::commands::run::end;
use crate::commands::shown::Shown;
use crate::error::ExpectedError;
use crate::signals::{Ending, Signals};
use crate::terminal::{
    BoardReader, GateQuestion, Question, Screen, Stdout, TerminalSurroundings, kind, stdout_is_broken,
    stdout_is_terminal,
};
use claw_kernel::cancel::CancelToken;
use claw_kernel::tasks::TaskHandle;
use claw_orchestrator::addr::StepAddr;
use claw_orchestrator::report::RunReport;
use claw_orchestrator::report::board::Board;
use claw_orchestrator::report::event::{RunEvent, RunEventKind, StepState, WaitingFor};
use claw_orchestrator::run::{RunHandle, RunOrders};
use futures_util::future::BoxFuture;
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
}

/// All that looks at a run.
pub(super) struct Watch {
    screen: Screen,
    reader: BoardReader,
    shown: Shown,
    out: Option<Arc<Stdout>>,
    partial: bool,
    ending: Option<Ending>,
    questions: Option<mpsc::Receiver<Question>>,
    asking: Option<Asking>,
    /// Gates that wait for their turn at the terminal.
    gates: VecDeque<GateQuestion>,
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
            screen: Screen::new(kind(&seen)),
            reader: BoardReader::new(danger),
            shown: Shown::default(),
            out: (flags.output_format == Format::StreamJson).then(|| Arc::new(Stdout::start())),
            partial: flags.include_partial_messages,
            ending: None,
            questions,
            asking: None,
            gates: VecDeque::new(),
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
                fault = self.screen.fault() => self.screen.line(fault),
                event = events.recv() => self.heard(event, &board, &orders),
                _ = ticks.tick(), if bars => self.draw(&board),
            }
        };
        self.drain(&mut events, &board);
        let report = report.map_err(|error| end::failed(&error));
        let Self { screen, out, ending, .. } = self;
        screen.finish();
        finish_lines(writer).await;
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

    fn draw(&mut self, board: &Board) {
        let notice = self.ending.map(|_| "stopping");
        self.reader.draw(board, notice, &mut self.screen);
    }

    fn heard(&mut self, event: Result<RunEvent, RecvError>, board: &Board, orders: &RunOrders) {
        match event {
            Ok(event) => {
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
