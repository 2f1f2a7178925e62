//! The board of a run at one moment, as lines for another process: one for the run, one for each step.

use super::board::{Board, Header, Row};
use super::reading::{self, NotAnEvent};
use super::{json, run_report};
use crate::addr::StepAddr;
use crate::journal::record::Question;
use claw_kernel::clock::Timestamp;
use claw_kernel::ids::RunId;
use claw_providers::usage::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the first line calls itself.
pub const RUN: &str = "run.snapshot";
/// What the lines of steps call themselves.
pub const STEP: &str = "step.snapshot";

/// A board at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    run: RunLine,
    steps: Vec<Row>,
}

/// The run as a whole.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct RunLine {
    v: u32,
    #[serde(rename = "type")]
    kind: String,
    run: RunId,
    /// Of the last event before.
    seq: u64,
    workflow: String,
    started: Timestamp,
    nodes: usize,
    nodes_done: usize,
    usage: Usage,
    /// Lines that follow.
    steps: usize,
}

#[derive(Serialize, Deserialize)]
struct StepLine {
    v: u32,
    #[serde(rename = "type")]
    kind: String,
    step: StepAddr,
    label: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    phase: Option<String>,
    attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    started: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended: Option<Timestamp>,
    turn: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    written: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool: Option<(String, String)>,
    usage: Usage,
    before: Usage,
    order: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    question: Option<Box<Question>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<Value>,
}

impl Snapshot {
    /// Of a board, after the event of that number.
    pub(super) fn of(run: RunId, seq: u64, board: &Board) -> Self {
        let Header { workflow, started, nodes, nodes_done, usage, .. } = board.head();
        let steps = board.rows(|_| true);
        let run = RunLine {
            v: run_report::SCHEMA,
            kind: RUN.to_owned(),
            run,
            seq,
            workflow,
            started,
            nodes,
            nodes_done,
            usage,
            steps: steps.len(),
        };
        Self { run, steps }
    }

    /// As lines, without line ends.
    ///
    /// # Errors
    /// Never, with these shapes.
    pub fn lines(self) -> serde_json::Result<Vec<String>> {
        let mut lines = Vec::with_capacity(self.steps.len() + 1);
        lines.push(serde_json::to_string(&self.run)?);
        for row in self.steps {
            lines.push(serde_json::to_string(&StepLine::of(row)?)?);
        }
        Ok(lines)
    }
}

impl StepLine {
    fn of(row: Row) -> serde_json::Result<Self> {
        Ok(Self {
            v: run_report::SCHEMA,
            kind: STEP.to_owned(),
            state: row.state.as_ref().map(json::state).transpose()?,
            step: row.step,
            label: row.label,
            phase: row.phase,
            attempt: row.attempt,
            started: row.started,
            ended: row.ended,
            turn: row.turn,
            model: row.model,
            written: row.written,
            tool: row.tool,
            usage: row.usage,
            before: row.before,
            order: row.order,
            question: row.question,
        })
    }

    fn row(self) -> Result<Row, NotAnEvent> {
        Ok(Row {
            state: self.state.map(reading::state).transpose()?,
            label: self.label,
            phase: self.phase,
            attempt: self.attempt,
            started: self.started,
            ended: self.ended,
            turn: self.turn,
            model: self.model,
            written: self.written,
            tool: self.tool,
            usage: self.usage,
            before: self.before,
            order: self.order,
            question: self.question,
            ..Row::bare(self.step)
        })
    }
}

/// Puts a board together again from the lines of a snapshot.
#[derive(Debug)]
pub struct BoardLines {
    run: RunLine,
    rows: Vec<Row>,
}

impl BoardLines {
    /// From the first line.
    ///
    /// # Errors
    /// It is none.
    pub fn begin(line: &str) -> Result<Self, NotAnEvent> {
        let run: RunLine = serde_json::from_str(line)?;
        if run.kind == RUN { Ok(Self { run, rows: Vec::new() }) } else { Err(NotAnEvent::Unknown(run.kind)) }
    }

    /// Whether lines are missing.
    pub fn wants_more(&self) -> bool {
        self.rows.len() < self.run.steps
    }

    /// The next line.
    ///
    /// # Errors
    /// It is no step's.
    pub fn add(&mut self, line: &str) -> Result<(), NotAnEvent> {
        let step: StepLine = serde_json::from_str(line)?;
        self.rows.push(step.row()?);
        Ok(())
    }

    /// The board.
    pub fn board(self) -> Board {
        let RunLine { workflow, started, nodes, nodes_done, usage, .. } = self.run;
        let header = Header {
            workflow,
            started,
            nodes,
            nodes_done,
            steps: 0,
            steps_done: 0,
            running: 0,
            waiting: 0,
            succeeded: 0,
            failed: 0,
            skipped: 0,
            usage,
        };
        Board::of(header, self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::record::EndState;
    use crate::report::bus::EventBus;
    use crate::report::event::{RunEventKind, StepState, WaitingFor};
    use claw_kernel::clock;
    use std::sync::Arc;

    #[test]
    fn a_board_is_the_same_in_another_process() {
        let board = Arc::new(Board::new("w".into(), 3, clock::now(), Usage::NOTHING));
        let bus = EventBus::new(RunId::fresh(), Arc::clone(&board));
        let step = |name: &str| -> Option<StepAddr> { Some(name.parse().unwrap()) };
        board.add(&step("a").unwrap(), "look at a".into(), Some("explore".into()), 1);
        let ended = StepState::Ended { state: EndState::Failed, error: Some("no".into()) };
        bus.tell(step("a"), Some(1), RunEventKind::StepState(ended));
        let spent = Usage { input: 7, usd: Some(0.5), ..Usage::NOTHING };
        bus.tell(step("b"), Some(2), RunEventKind::AgentUsage(spent));
        bus.tell(step("b"), Some(2), RunEventKind::StepState(StepState::Waiting(WaitingFor::Gate)));
        board.node_done();
        let lines = bus.watch().0.lines().unwrap();
        let mut read = BoardLines::begin(&lines[0]).unwrap();
        for line in &lines[1..] {
            assert!(read.wants_more());
            read.add(line).unwrap();
        }
        assert!(!read.wants_more());
        let read = read.board();
        assert_eq!(read.head(), board.head());
        assert_eq!(read.rows(|_| true), board.rows(|_| true));
    }
}
