//! Watches the lead from its first word to its last: asks, shows, prints, hears signals.

use super::input::Incoming;
use super::shapes::{self, Answered};
use super::talk::Questions;
use super::tell::{exit_code, print_text, show};
use crate::args::Format;
use crate::error::{ExpectedError, exit};
use crate::signals::{Ending, Signals};
use crate::terminal::{Stdout, say, stderr_is_terminal, write_stdout};
use claw_agents::lead::{Lead, LeadCommand, LeadEvent, LeadOrders, LeadView, Reckoning};
use claw_agents::outcome::{AgentEnd, AgentOutcome, FailureClass};
use claw_kernel::cancel::CancelToken;
use claw_kernel::ids::SessionId;
use claw_kernel::visible::visible_line;
use claw_providers::message::Block;
use claw_providers::usage::Usage;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::Instant as Timer;

/// From the second signal to the end of the process: commands are killed at once, the session gets the rest.
const LAST_MOMENT: Duration = Duration::from_millis(180);
/// From the first signal to the same: what does not obey until then holds nobody up.
const PATIENCE: Duration = Duration::from_secs(2);

/// Questions that wait for their turn.
const MOST_HELD: usize = 16;

/// Whether it goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    On,
    Over,
}

pub(super) struct Watch {
    format: Format,
    out: Option<Arc<Stdout>>,
    orders: LeadOrders,
    questions: Questions,
    /// Questions come in: each has its answer printed.
    is_stream: bool,
    held: VecDeque<Vec<Block>>,
    shows: bool,
    session: Option<SessionId>,
    asked_at: Instant,
    /// The lead waits for a question.
    idle: bool,
    ending: Option<Ending>,
    told: Option<Timer>,
    reckoning: Reckoning,
    last: Option<AgentOutcome>,
    is_printed: bool,
    /// Said, but not begun yet.
    open: bool,
    failed: Option<ExpectedError>,
    compactions: usize,
}

impl Watch {
    pub(super) fn new(
        format: Format,
        out: Option<Arc<Stdout>>,
        orders: LeadOrders,
        questions: Questions,
    ) -> Self {
        Self {
            format,
            out,
            orders,
            is_stream: matches!(questions, Questions::Stream(_)),
            questions,
            held: VecDeque::new(),
            shows: stderr_is_terminal(),
            session: None,
            asked_at: Instant::now(),
            idle: false,
            ending: None,
            told: None,
            reckoning: Reckoning { turn: Usage::NOTHING, session: Usage::NOTHING },
            last: None,
            is_printed: false,
            open: false,
            failed: None,
            compactions: 0,
        }
    }

    /// The exit code.
    pub(super) async fn until_the_end(
        &mut self,
        mut news: mpsc::Receiver<LeadEvent>,
        signals: &mut Signals,
        lead: Lead,
    ) -> Result<u8, ExpectedError> {
        let never = CancelToken::new();
        let out = self.out.clone();
        let gone = out.as_deref().map_or(&never, Stdout::gone);
        loop {
            tokio::select! {
                event = news.recv() => match event {
                    Some(event) => {
                        if self.hear(event).await? == Step::Over {
                            break;
                        }
                    }
                    None => break,
                },
                question = next(&mut self.questions, self.held.len()) => self.take(question),
                signal = signals.next() => {
                    if self.ending.is_some() {
                        self.last_moment(&mut news).await?;
                        break;
                    }
                    self.stop(signal, "the user stopped it");
                }
                () = gone.cancelled(), if self.ending.is_none() => {
                    self.stop(Ending::Pipe, "nobody reads the answer");
                }
                () = patience(self.told) => {
                    self.last_moment(&mut news).await?;
                    break;
                }
            }
        }
        if self.told.is_none() {
            lead.ended().await;
        }
        self.finish().await
    }

    fn stop(&mut self, ending: Ending, cause: &str) {
        self.ending = Some(ending);
        self.told = Some(Timer::now());
        self.orders.stop_because(cause);
    }

    /// Kills what runs; the session gets what time is left.
    async fn last_moment(&mut self, news: &mut mpsc::Receiver<LeadEvent>) -> Result<(), ExpectedError> {
        claw_tools::process::no_more_grace();
        let rest = async {
            while let Some(event) = news.recv().await {
                if self.hear(event).await? == Step::Over {
                    break;
                }
            }
            Ok(())
        };
        tokio::time::timeout(LAST_MOMENT, rest).await.unwrap_or(Ok(()))
    }

    fn take(&mut self, question: Option<Result<Incoming, ExpectedError>>) {
        match question {
            Some(Ok(Incoming::Message(blocks))) => self.held.push_back(blocks),
            Some(Ok(Incoming::Interrupt)) => return self.order(LeadCommand::Interrupt),
            Some(Err(error)) => {
                self.failed = Some(error);
                self.held.clear();
                self.questions = Questions::One(None);
            }
            None => self.questions = Questions::One(None),
        }
        if self.idle {
            self.next_question();
        }
    }

    /// The lead waits: it gets what is there, or the end.
    fn next_question(&mut self) {
        if let Some(blocks) = self.held.pop_front() {
            return self.ask(blocks);
        }
        match &mut self.questions {
            Questions::One(question) => match question.take() {
                Some(question) => self.ask(question),
                None => self.order(LeadCommand::Shutdown),
            },
            Questions::Stream(_) => {}
        }
    }

    fn ask(&mut self, blocks: Vec<Block>) {
        (self.idle, self.open) = (false, true);
        self.asked_at = Instant::now();
        self.order(LeadCommand::Say { blocks });
    }

    fn order(&mut self, command: LeadCommand) {
        if matches!(command, LeadCommand::Shutdown) {
            self.idle = false;
        }
        // A lead that has ended says so by its last word.
        let _ = self.orders.order(command);
    }

    async fn hear(&mut self, event: LeadEvent) -> Result<Step, ExpectedError> {
        match event {
            LeadEvent::Opened(view) => self.opened(&view),
            LeadEvent::Agent(event) => show(&event, self.shows),
            LeadEvent::TurnStarted { .. } => self.open = false,
            LeadEvent::Reckoning(reckoning) => {
                self.reckoning = reckoning;
                self.answered().await?;
            }
            LeadEvent::TurnEnded { outcome, .. } => {
                (self.last, self.is_printed) = (Some(*outcome), false);
            }
            LeadEvent::Compacted { removed, before, after, without_model } => {
                self.compacted(removed, (before, after), without_model).await;
            }
            LeadEvent::Refused { what, why } => self.refused(what, why).await?,
            LeadEvent::Note(text) => {
                say(&format!("note: {}\n", visible_line(&text)));
            }
            LeadEvent::Idle => {
                self.idle = true;
                self.next_question();
            }
            LeadEvent::Closed => return Ok(Step::Over),
            LeadEvent::Context { .. }
            | LeadEvent::Unheard { .. }
            | LeadEvent::Told { .. }
            | LeadEvent::ModelSet { .. }
            | LeadEvent::PermissionSet { .. }
            | LeadEvent::DirAdded { .. }
            | LeadEvent::Rewound { .. }
            | LeadEvent::Renamed { .. } => {}
        }
        Ok(Step::On)
    }

    fn opened(&mut self, view: &LeadView) {
        self.session = Some(view.session);
        for repair in &view.repairs {
            say(&format!("warning: {}: {}\n", view.path.display(), visible_line(repair)));
        }
    }

    async fn compacted(
        &mut self,
        removed: usize,
        (before, after): (u64, u64),
        without_model: Option<String>,
    ) {
        self.compactions += 1;
        let why = without_model.map(|why| format!("; no model wrote the summary: {}", visible_line(&why)));
        say(&format!(
            "note: compacted: {removed} messages gave way to a summary (about {before} tokens, now {after}){}\n",
            why.unwrap_or_default()
        ));
        if let (Some(out), Some(session)) = (&self.out, self.session) {
            let _ = out.line(shapes::compacted(session, removed, before, after).to_string()).await;
        }
    }

    /// A refused question is an answer like any other: it failed.
    async fn refused(&mut self, what: &'static str, why: String) -> Result<(), ExpectedError> {
        if what == "session" && !self.open && self.last.is_some() {
            say(&format!("error: {}\n", visible_line(&why)));
            return Ok(());
        }
        let class = if what == "say" { FailureClass::Denied } else { FailureClass::Tool };
        self.last = Some(AgentOutcome {
            end: AgentEnd::Failed { class, message: why, partial: None, retry_at: None },
            usage: Usage::NOTHING,
            turns: 0,
            tool_calls: BTreeMap::new(),
            denials: Vec::new(),
            model: None,
        });
        self.is_printed = false;
        self.answered().await
    }

    /// Prints an answer once what it cost is known.
    async fn answered(&mut self) -> Result<(), ExpectedError> {
        let Some(outcome) = self.last.as_ref().filter(|_| !self.is_printed) else { return Ok(()) };
        match (self.format, &self.out) {
            (Format::StreamJson, Some(out)) => {
                // The error that counts comes from the flush.
                let _ = out.line(self.result(outcome).to_string()).await;
            }
            (Format::Text, _) if self.is_stream => print_text(outcome)?,
            (Format::Text | Format::Json | Format::StreamJson, _) => return Ok(()),
        }
        self.is_printed = true;
        Ok(())
    }

    fn result(&self, outcome: &AgentOutcome) -> serde_json::Value {
        let answered = Answered {
            session: self.session.unwrap_or_else(SessionId::fresh),
            outcome,
            took: self.asked_at.elapsed(),
            spent: self.reckoning.session,
            compactions: self.compactions,
        };
        shapes::result(&answered)
    }

    async fn finish(&mut self) -> Result<u8, ExpectedError> {
        if let Some(error) = self.failed.take() {
            if let Some(out) = &self.out {
                out.flush().await?;
            }
            return Err(error);
        }
        let Some(outcome) = &self.last else {
            if let Some(out) = &self.out {
                out.flush().await?;
            }
            let without = if self.is_stream { exit::OK } else { exit::FAULT };
            return Ok(self.ending.map_or(without, Ending::exit_code));
        };
        let code = exit_code(&outcome.end, self.ending);
        if !self.is_printed {
            match self.format {
                Format::Json => write_stdout(format!("{}\n", self.result(outcome)))?,
                Format::Text => print_text(outcome)?,
                Format::StreamJson => {
                    if let Some(out) = &self.out {
                        // The error that counts comes from the flush.
                        let _ = out.line(self.result(outcome).to_string()).await;
                    }
                }
            }
        }
        if let Some(out) = &self.out {
            out.flush().await?;
        }
        Ok(code)
    }
}

/// What comes in next, while there is room for it.
async fn next(questions: &mut Questions, held: usize) -> Option<Result<Incoming, ExpectedError>> {
    match questions {
        Questions::Stream(inbox) if held < MOST_HELD => inbox.recv().await,
        Questions::Stream(_) | Questions::One(_) => std::future::pending().await,
    }
}

/// How long a lead that was told to end may take.
async fn patience(told: Option<Timer>) {
    match told {
        Some(told) => tokio::time::sleep_until(told + PATIENCE).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_does_not_obey_holds_the_end_up_for_two_seconds() {
        let told = Timer::now();
        tokio::time::advance(Duration::from_secs(1)).await;
        patience(Some(told)).await;
        assert!(told.elapsed() < PATIENCE + Duration::from_millis(5), "counted from the signal");
        assert!(tokio::time::timeout(PATIENCE * 100, patience(None)).await.is_err());
    }
}
