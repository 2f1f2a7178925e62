//! The live board that this process's bars read: the scheduler writes, the screen reads at its own pace.
//!
//! The one concurrent map of the program. Updates overwrite each other: a reader sees the last state, never a queue.

use super::event::{RunEvent, RunEventKind, StepState, ToolPhase, WaitingFor};
use crate::addr::StepAddr;
use crate::journal::record::{EndState, Question};
use claw_kernel::clock::Timestamp;
use claw_providers::usage::Usage;
use dashmap::DashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// All that bars show of one run.
#[derive(Debug)]
pub struct Board {
    rows: DashMap<StepAddr, Row>,
    header: Mutex<Header>,
    version: AtomicU64,
}

/// The run as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// `workflow.name`.
    pub workflow: String,
    /// When this take began.
    pub started: Timestamp,
    /// Nodes in the file.
    pub nodes: usize,
    /// Those that are final.
    pub nodes_done: usize,
    /// Steps on the board.
    pub steps: usize,
    /// Those that are final.
    pub steps_done: usize,
    /// Steps at work.
    pub running: usize,
    /// Steps that wait, for a slot too.
    pub waiting: usize,
    /// Steps that succeeded or were cached.
    pub succeeded: usize,
    /// Steps that failed, were cancelled or interrupted.
    pub failed: usize,
    /// Steps that were skipped.
    pub skipped: usize,
    /// Spent in all takes.
    pub usage: Usage,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its address.
    pub step: StepAddr,
    /// Shown for it.
    pub label: String,
    /// A word for what it is part of.
    pub phase: Option<String>,
    /// How it stands; `None`: not ready yet.
    pub state: Option<StepState>,
    /// From 1; 0: none yet.
    pub attempt: u32,
    /// When it first began to work.
    pub started: Option<Timestamp>,
    /// When it became final.
    pub ended: Option<Timestamp>,
    /// The turn it is in.
    pub turn: u32,
    /// The model of that turn.
    pub model: Option<String>,
    /// Characters of text that came in this turn.
    pub written: usize,
    /// The tool at work and what it works on.
    pub tool: Option<(String, String)>,
    /// Spent in the attempts that ended and in this one so far.
    pub usage: Usage,
    /// Spent in earlier attempts of this take.
    pub(super) before: Usage,
    /// What it asks a person, as long as it waits for the answer.
    pub question: Option<Box<Question>>,
    /// Place on the board: the order of the plan, then of coming.
    pub order: u64,
}

impl Board {
    /// An empty board.
    pub fn new(workflow: String, nodes: usize, started: Timestamp, spent_before: Usage) -> Self {
        let header = Header {
            workflow,
            started,
            nodes,
            nodes_done: 0,
            steps: 0,
            steps_done: 0,
            running: 0,
            waiting: 0,
            succeeded: 0,
            failed: 0,
            skipped: 0,
            usage: spent_before,
        };
        Self { rows: DashMap::new(), header: Mutex::new(header), version: AtomicU64::new(0) }
    }

    /// A board as another process has it: its header and all its rows.
    pub(super) fn of(mut header: Header, rows: Vec<Row>) -> Self {
        header.steps = rows.len();
        for row in &rows {
            header.count(Bucket::Pending, bucket(row.state.as_ref()));
        }
        let version = AtomicU64::new(1);
        let rows = rows.into_iter().map(|row| (row.step.clone(), row)).collect();
        Self { rows, header: Mutex::new(header), version }
    }

    /// Puts a step on the board. One that is there keeps its state.
    pub fn add(&self, step: &StepAddr, label: String, phase: Option<String>, order: u64) {
        let mut is_new = false;
        let mut row = self.rows.entry(step.clone()).or_insert_with(|| {
            is_new = true;
            Row::bare(step.clone())
        });
        (row.label, row.phase, row.order) = (label, phase, order);
        drop(row);
        if is_new {
            self.header().steps += 1;
        }
        self.touch();
    }

    /// A node is final, with all its steps.
    pub fn node_done(&self) {
        self.header().nodes_done += 1;
        self.touch();
    }

    /// So many nodes are final: as another process tells it.
    pub fn nodes_done(&self, nodes: usize) {
        self.header().nodes_done = nodes;
        self.touch();
    }

    /// Takes an event in. Steps that were not added appear at the end.
    pub fn on(&self, event: &RunEvent) {
        let Some(step) = &event.step else { return };
        let mut is_new = false;
        let (before, after, spent_before, spent) = {
            let mut row = self.rows.entry(step.clone()).or_insert_with(|| {
                is_new = true;
                Row { label: step.to_string(), order: u64::MAX, ..Row::bare(step.clone()) }
            });
            let (before, spent_before) = (bucket(row.state.as_ref()), row.usage);
            row.apply(event);
            (before, bucket(row.state.as_ref()), spent_before, row.usage)
        };
        {
            let mut header = self.header();
            header.steps += usize::from(is_new);
            header.count(before, after);
            header.usage = exchange(&header.usage, &spent_before, &spent);
        }
        self.touch();
    }

    /// Counts up with every change: a screen that saw this number has nothing to draw.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The run as a whole, now.
    pub fn head(&self) -> Header {
        self.header().clone()
    }

    /// One step, now.
    pub fn row(&self, step: &StepAddr) -> Option<Row> {
        self.rows.get(step).map(|row| row.clone())
    }

    /// The steps that `wanted` picks, in the order of the board. Copies only those.
    pub fn rows(&self, wanted: impl Fn(&Row) -> bool) -> Vec<Row> {
        let mut rows: Vec<Row> = self.rows.iter().filter(|row| wanted(row)).map(|row| row.clone()).collect();
        rows.sort_by(|a, b| a.order.cmp(&b.order).then_with(|| a.step.cmp(&b.step)));
        rows
    }

    /// The steps at work or waiting for something but a slot, in the order of the board.
    pub fn live(&self) -> Vec<Row> {
        self.rows(|row| matches!(row.state, Some(StepState::Running | StepState::Waiting(_))))
    }

    fn header(&self) -> MutexGuard<'_, Header> {
        // Every change of the header is whole: a panic elsewhere leaves it usable.
        self.header.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn touch(&self) {
        self.version.fetch_add(1, Ordering::Release);
    }
}

impl Row {
    pub(super) fn bare(step: StepAddr) -> Self {
        Self {
            step,
            label: String::new(),
            phase: None,
            state: None,
            attempt: 0,
            started: None,
            ended: None,
            turn: 0,
            model: None,
            written: 0,
            tool: None,
            usage: Usage::NOTHING,
            before: Usage::NOTHING,
            question: None,
            order: 0,
        }
    }

    fn apply(&mut self, event: &RunEvent) {
        if let Some(attempt) = event.attempt.filter(|attempt| *attempt > self.attempt) {
            self.attempt = attempt;
            self.before = self.usage;
        }
        match &event.kind {
            RunEventKind::StepState(state) => self.enter(state, event.at),
            RunEventKind::AgentTurn { turn, model } => {
                self.turn = *turn;
                self.model = Some(model.clone());
                self.tool = None;
                self.written = 0;
            }
            RunEventKind::AgentTool { name, subject, phase } => match phase {
                ToolPhase::Started => self.tool = Some((name.clone(), subject.clone())),
                ToolPhase::Succeeded | ToolPhase::Failed => self.tool = None,
            },
            RunEventKind::AgentUsage(usage) => self.usage = self.before.plus(usage),
            RunEventKind::AgentText(text) => self.written += text.chars().count(),
            RunEventKind::GateAsked(question) => self.question = Some(question.clone()),
            RunEventKind::Note(_) | RunEventKind::RunStarted { .. } | RunEventKind::RunEnded { .. } => {}
        }
    }

    fn enter(&mut self, state: &StepState, at: Timestamp) {
        if !matches!(state, StepState::Waiting(WaitingFor::Gate)) {
            self.question = None;
        }
        match state {
            StepState::Running => self.started = self.started.or(Some(at)),
            StepState::Ended { .. } => {
                self.ended = Some(at);
                self.tool = None;
            }
            StepState::Ready { .. } | StepState::Waiting(_) => {}
        }
        self.state = Some(state.clone());
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bucket {
    Pending,
    Waiting,
    Running,
    Succeeded,
    Failed,
    Skipped,
}

fn bucket(state: Option<&StepState>) -> Bucket {
    match state {
        None => Bucket::Pending,
        Some(StepState::Ready { .. } | StepState::Waiting(_)) => Bucket::Waiting,
        Some(StepState::Running) => Bucket::Running,
        Some(StepState::Ended { state, .. }) => match state {
            EndState::Succeeded | EndState::Cached => Bucket::Succeeded,
            EndState::Failed | EndState::Cancelled | EndState::Interrupted => Bucket::Failed,
            EndState::Skipped => Bucket::Skipped,
        },
    }
}

impl Header {
    fn count(&mut self, before: Bucket, after: Bucket) {
        if before == after {
            return;
        }
        if let Some(count) = self.counter(before) {
            *count = count.saturating_sub(1);
        }
        if let Some(count) = self.counter(after) {
            *count += 1;
        }
        self.steps_done = self.succeeded + self.failed + self.skipped;
    }

    fn counter(&mut self, bucket: Bucket) -> Option<&mut usize> {
        match bucket {
            Bucket::Pending => None,
            Bucket::Waiting => Some(&mut self.waiting),
            Bucket::Running => Some(&mut self.running),
            Bucket::Succeeded => Some(&mut self.succeeded),
            Bucket::Failed => Some(&mut self.failed),
            Bucket::Skipped => Some(&mut self.skipped),
        }
    }
}

/// A sum in which one part is replaced. Money that became unknown stays unknown.
fn exchange(sum: &Usage, old: &Usage, new: &Usage) -> Usage {
    let swap = |sum: u64, old: u64, new: u64| (sum + new).saturating_sub(old);
    let usd = match (sum.usd, old.usd, new.usd) {
        (Some(sum), Some(old), Some(new)) => Some(sum + new - old),
        _ => None,
    };
    Usage {
        input: swap(sum.input, old.input, new.input),
        output: swap(sum.output, old.output, new.output),
        cache_read: swap(sum.cache_read, old.cache_read, new.cache_read),
        cache_write: swap(sum.cache_write, old.cache_write, new.cache_write),
        usd,
        unknown: swap(sum.unknown, old.unknown, new.unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::event::WaitingFor;
    use crate::report::plain::tests::event;

    fn board() -> Board {
        Board::new("w".into(), 2, Timestamp::from_millis(0), Usage { input: 5, ..Usage::NOTHING })
    }

    fn addr(step: &str) -> StepAddr {
        step.parse().unwrap()
    }

    fn said(board: &Board, step: &str, attempt: u32, kind: RunEventKind) {
        board.on(&RunEvent { attempt: Some(attempt), ..event(Some(step), kind) });
    }

    fn state(board: &Board, step: &str, state: StepState) {
        said(board, step, 1, RunEventKind::StepState(state));
    }

    #[test]
    fn the_header_counts_each_step_in_one_place() {
        let board = board();
        for (order, step) in ["a", "b", "c"].into_iter().enumerate() {
            board.add(&addr(step), step.to_uppercase(), None, order as u64);
        }
        state(&board, "a", StepState::Ready { position: 1 });
        state(&board, "b", StepState::Running);
        state(&board, "b", StepState::Waiting(WaitingFor::Permission));
        state(&board, "c", StepState::Running);
        let head = board.head();
        assert_eq!((head.steps, head.waiting, head.running, head.steps_done), (3, 2, 1, 0));
        state(&board, "c", StepState::Ended { state: EndState::Failed, error: None });
        state(&board, "b", StepState::Running);
        state(&board, "b", StepState::Ended { state: EndState::Succeeded, error: None });
        let head = board.head();
        assert_eq!(
            (head.waiting, head.running, head.succeeded, head.failed, head.steps_done),
            (1, 0, 1, 1, 2)
        );
    }

    #[test]
    fn usage_is_told_so_far_and_never_counted_twice() {
        let board = board();
        let spent = |input| RunEventKind::AgentUsage(Usage { input, usd: Some(0.1), ..Usage::NOTHING });
        said(&board, "a", 1, spent(10));
        said(&board, "a", 1, spent(30));
        said(&board, "a", 2, spent(4));
        said(&board, "b", 1, spent(1));
        assert_eq!(board.row(&addr("a")).unwrap().usage.input, 34);
        assert_eq!(board.head().usage.input, 40);
    }

    #[test]
    fn live_rows_stand_in_the_order_of_the_plan_with_tool_and_turn() {
        let board = board();
        board.add(&addr("late"), "late".into(), None, 2);
        board.add(&addr("early"), "early".into(), None, 1);
        state(&board, "late", StepState::Running);
        state(&board, "early", StepState::Running);
        state(&board, "early/+1", StepState::Running);
        let seen = board.version();
        said(&board, "late", 1, RunEventKind::AgentTurn { turn: 2, model: "m".into() });
        let (name, subject) = ("bash".to_owned(), "ls".to_owned());
        said(&board, "late", 1, RunEventKind::AgentTool { name, subject, phase: ToolPhase::Started });
        assert!(board.version() > seen);
        let rows = board.live();
        let names: Vec<String> = rows.iter().map(|row| row.step.to_string()).collect();
        assert_eq!(names, ["early", "late", "early/+1"]);
        assert_eq!((rows[1].turn, rows[1].tool.clone()), (2, Some(("bash".into(), "ls".into()))));
    }
}
