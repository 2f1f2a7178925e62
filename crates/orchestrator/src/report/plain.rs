//! Events as plain lines, for logs and where there is no terminal: start and end of each step, retries, notes.
//!
//! No times of day, no escapes, no line twice. Knows nothing of where the lines go.

use super::event::{RunEvent, RunEventKind, StepState, WaitingFor};
use super::words::span;
use crate::addr::StepAddr;
use crate::journal::record::EndState;
use claw_kernel::clock::Timestamp;
use claw_kernel::visible::visible_line;
use std::collections::HashMap;

/// Longest text of an error or a note in one line, in characters.
const LONGEST: usize = 400;

/// Turns events into lines. Remembers what it said of steps that are not over.
#[derive(Debug, Default)]
pub struct PlainLines {
    open: HashMap<StepAddr, Said>,
}

#[derive(Debug)]
struct Said {
    attempt: Option<u32>,
    began: Timestamp,
    waiting: Option<&'static str>,
}

impl PlainLines {
    /// The line of an event, without a line end, where it has one.
    pub fn line(&mut self, event: &RunEvent) -> Option<String> {
        match &event.kind {
            RunEventKind::RunStarted { workflow, nodes, take } => {
                let workflow = one_line(workflow);
                Some(match take {
                    0 | 1 => format!("run {} started: {workflow}, {nodes} nodes", event.run),
                    _ => format!("run {} goes on: {workflow}, {nodes} nodes, take {take}", event.run),
                })
            }
            RunEventKind::RunEnded { status, exit_code } => {
                Some(format!("run {} {}, exit code {exit_code}", event.run, status.as_str()))
            }
            RunEventKind::GateAsked(question) => {
                let step = event.step.as_ref()?;
                let choices = question.choices.join(", ");
                Some(format!("{step}: asks: {} ({choices})", one_line(&question.message)))
            }
            RunEventKind::Note(text) => Some(match &event.step {
                Some(step) => format!("note: {step}: {}", one_line(text)),
                None => format!("note: {}", one_line(text)),
            }),
            RunEventKind::StepState(state) => {
                let step = event.step.as_ref()?;
                let line = self.state(step, event, state)?;
                Some(format!("{step}: {line}"))
            }
            RunEventKind::AgentTurn { .. }
            | RunEventKind::AgentTool { .. }
            | RunEventKind::AgentUsage(_)
            | RunEventKind::AgentText(_) => None,
        }
    }

    fn state(&mut self, step: &StepAddr, event: &RunEvent, state: &StepState) -> Option<String> {
        match state {
            StepState::Ready { .. } => None,
            StepState::Running => self.running(step, event),
            StepState::Waiting(waiting) => self.waiting(step, event, waiting),
            StepState::Ended { state, error } => {
                let said = self.open.remove(step);
                Some(ended(*state, error.as_deref(), said.map(|said| event.at.since(said.began))))
            }
        }
    }

    fn running(&mut self, step: &StepAddr, event: &RunEvent) -> Option<String> {
        if let Some(said) = self.open.get_mut(step) {
            said.waiting = None;
            if said.attempt == event.attempt {
                return None;
            }
            said.attempt = event.attempt;
        } else {
            let said = Said { attempt: event.attempt, began: event.at, waiting: None };
            self.open.insert(step.clone(), said);
        }
        Some(match event.attempt {
            Some(attempt) if attempt > 1 => format!("started, attempt {attempt}"),
            Some(_) | None => "started".to_owned(),
        })
    }

    fn waiting(&mut self, step: &StepAddr, event: &RunEvent, waiting: &WaitingFor) -> Option<String> {
        let (why, line) = match waiting {
            WaitingFor::Retry { delay, error } => {
                return Some(match event.attempt {
                    Some(n) => format!("attempt {n} failed: {}; again in {}", one_line(error), span(*delay)),
                    None => format!("failed: {}; again in {}", one_line(error), span(*delay)),
                });
            }
            WaitingFor::Provider { delay, why } => (*why, format!("{why}, waits {}", span(*delay))),
            WaitingFor::Permission => ("permission", "waits for a permission".to_owned()),
            WaitingFor::Gate => ("gate", "waits for an answer".to_owned()),
            WaitingFor::Lock { name } => ("lock", format!("waits for the lock {name}")),
            WaitingFor::Breaker { why } => ("breaker", format!("waits for the service: {}", one_line(why))),
        };
        if let Some(said) = self.open.get_mut(step) {
            if said.waiting == Some(why) {
                return None;
            }
            said.waiting = Some(why);
        }
        Some(line)
    }
}

fn ended(state: EndState, error: Option<&str>, time: Option<std::time::Duration>) -> String {
    let mut line = state.as_str().to_owned();
    if let Some(time) = time {
        line.push_str(" in ");
        line.push_str(&span(time));
    }
    if let Some(error) = error {
        line.push_str(": ");
        line.push_str(&one_line(error));
    }
    line
}

/// One line without control characters, bounded.
pub(super) fn one_line(text: &str) -> String {
    let shown = visible_line(text.trim());
    match shown.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("{}…", &shown[..cut]),
        None => shown.into_owned(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::journal::record::RunStatus;
    use std::time::Duration;

    pub(crate) fn event(step: Option<&str>, kind: RunEventKind) -> RunEvent {
        RunEvent {
            run: "01KBCDEFGHJKMNPQRSTVWXYZ01".parse().unwrap(),
            seq: 7,
            at: Timestamp::from_millis(1_764_581_022_042),
            step: step.map(|step| step.parse().unwrap()),
            attempt: step.map(|_| 1),
            kind,
        }
    }

    fn state(step: &str, attempt: u32, seconds: i64, state: StepState) -> RunEvent {
        RunEvent {
            attempt: Some(attempt),
            at: Timestamp::from_millis(seconds * 1000),
            ..event(Some(step), RunEventKind::StepState(state))
        }
    }

    fn end(state: EndState, error: Option<&str>) -> StepState {
        StepState::Ended { state, error: error.map(str::to_owned) }
    }

    #[test]
    fn each_start_and_end_retry_and_note_is_one_line_once() {
        let delay = Duration::from_secs(2);
        let limited = || StepState::Waiting(WaitingFor::Provider { delay, why: "rate limited" });
        let retry = StepState::Waiting(WaitingFor::Retry { delay, error: "lost\nconnection".into() });
        let events = [
            event(None, RunEventKind::RunStarted { workflow: "review".into(), nodes: 2, take: 1 }),
            state("a", 1, 0, StepState::Ready { position: 1 }),
            state("a", 1, 1, StepState::Running),
            state("a", 1, 1, limited()),
            state("a", 1, 1, limited()),
            state("a", 1, 3, StepState::Running),
            event(Some("a"), RunEventKind::AgentTurn { turn: 1, model: "m".into() }),
            state("a", 1, 5, retry),
            state("a", 2, 7, StepState::Running),
            state("a", 2, 9, end(EndState::Succeeded, None)),
            state("b", 0, 9, end(EndState::Skipped, Some("needs \u{1b}[2Ja"))),
            event(None, RunEventKind::Note("two\r\nlines".into())),
            event(None, RunEventKind::RunEnded { status: RunStatus::Succeeded, exit_code: 0 }),
        ];
        let mut lines = PlainLines::default();
        let text: Vec<String> = events.iter().filter_map(|event| lines.line(event)).collect();
        insta::assert_snapshot!(text.join("\n"), @r###"
        run 01KBCDEFGHJKMNPQRSTVWXYZ01 started: review, 2 nodes
        a: started
        a: rate limited, waits 2.0s
        a: attempt 1 failed: lost connection; again in 2.0s
        a: started, attempt 2
        a: succeeded in 8.0s
        b: skipped: needs ␛[2Ja
        note: two lines
        run 01KBCDEFGHJKMNPQRSTVWXYZ01 succeeded, exit code 0
        "###);
        assert!(lines.open.is_empty());
    }

    #[test]
    fn a_long_error_stays_one_bounded_line() {
        let line = one_line(&"é".repeat(5000));
        assert_eq!(line.chars().count(), LONGEST + 1);
    }
}
