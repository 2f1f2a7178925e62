//! Reads the live board of a run into what the screen shows.

use super::frame::MOST;
use super::view::{Doing, HeaderView, ManyView, RowView, View};
use claw_kernel::clock::{self, Timestamp};
use claw_orchestrator::addr::{AddrPart, StepAddr};
use claw_orchestrator::journal::record::EndState;
use claw_orchestrator::report::board::{Board, Row};
use claw_orchestrator::report::event::{StepState, WaitingFor};
use indexmap::IndexMap;
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// Counting all items is for the eye: so often is enough.
const RECOUNT: Duration = Duration::from_millis(500);

/// Draws frames of one board.
#[derive(Debug)]
pub struct BoardReader {
    danger: Option<String>,
    many: Vec<ManyView>,
    counted: Option<(Instant, u64)>,
}

impl BoardReader {
    /// `danger`: the mode, where it is dangerous.
    pub fn new(danger: Option<String>) -> Self {
        Self { danger, many: Vec::new(), counted: None }
    }

    /// The lines of agents at work, within so many columns and rows; none where nobody works.
    pub fn lines(&mut self, board: &Board, width: usize, rows: usize) -> Vec<String> {
        let (view, _) = self.view(board, None, None);
        if view.rows.is_empty() || rows == 0 {
            return Vec::new();
        }
        let shown = if view.rows.len() + view.more > rows { rows - 1 } else { rows };
        let elapsed = view.header.elapsed;
        let width = width.saturating_sub(1);
        let mut lines: Vec<String> =
            view.rows.iter().take(shown).map(|row| super::line::row(row, width, elapsed)).collect();
        let hidden = view.rows.len() + view.more - lines.len();
        if hidden > 0 {
            lines.push(super::line::more(hidden, width));
        }
        lines
    }

    /// All of it now, and which steps the rows are. `notice` says what goes on with the run itself; `kept` stays a row
    /// when it has ended.
    pub(super) fn view(
        &mut self,
        board: &Board,
        notice: Option<&str>,
        kept: Option<&StepAddr>,
    ) -> (View, Vec<StepAddr>) {
        self.recount(board);
        let now = clock::now();
        let head = board.head();
        let mut live = board.live();
        // Stable otherwise: lines that jump cannot be read.
        live.sort_by_key(|row| !matches!(row.state, Some(StepState::Waiting(WaitingFor::Permission))));
        if live.len() < MOST {
            live.extend(
                board
                    .rows(|row| matches!(row.state, Some(StepState::Ready { position }) if position <= MOST)),
            );
        }
        live.truncate(MOST);
        let ended = kept.filter(|step| !live.iter().any(|row| row.step == **step));
        live.extend(ended.and_then(|step| board.row(step)));
        let rows: Vec<RowView> = live.iter().map(|row| row_view(row, now)).collect();
        let header = HeaderView {
            workflow: head.workflow,
            elapsed: now.since(head.started),
            nodes_done: head.nodes_done,
            nodes: head.nodes,
            steps_done: head.steps_done,
            steps: head.steps,
            running: head.running,
            waiting: head.waiting,
            done: head.succeeded,
            failed: head.failed,
            tokens: head.usage.total(),
            usd: head.usage.usd,
            danger: self.danger.clone(),
            notice: notice.map(str::to_owned),
        };
        let more = (head.running + head.waiting).saturating_sub(rows.len());
        let steps = live.into_iter().map(|row| row.step).collect();
        (View { header, many: self.many.clone(), rows, more, ..View::default() }, steps)
    }

    fn recount(&mut self, board: &Board) {
        let version = board.version();
        if self.counted.is_some_and(|(at, seen)| seen == version || at.elapsed() < RECOUNT) {
            return;
        }
        self.counted = Some((Instant::now(), version));
        let counts: RefCell<IndexMap<String, (u64, ManyView)>> = RefCell::default();
        board.rows(|row| {
            count(row, &mut counts.borrow_mut());
            false
        });
        let mut counts: Vec<(u64, ManyView)> = counts.into_inner().into_values().collect();
        counts.retain(|(_, view)| view.total > 1);
        counts.sort_by_key(|(order, _)| *order);
        self.many = counts.into_iter().map(|(_, view)| view).filter(|view| view.done < view.total).collect();
    }
}

fn count(row: &Row, counts: &mut IndexMap<String, (u64, ManyView)>) {
    let [AddrPart::Node { node, item: Some(_), .. }] = row.step.parts() else { return };
    if !counts.contains_key(node.as_str()) {
        let view = ManyView { label: node.to_string(), total: 0, done: 0, failed: 0, running: 0 };
        counts.insert(node.to_string(), (row.order, view));
    }
    let Some((order, view)) = counts.get_mut(node.as_str()) else { return };
    *order = (*order).min(row.order);
    view.total += 1;
    match &row.state {
        Some(StepState::Ended { state, .. }) => {
            view.done += 1;
            view.failed += usize::from(*state == EndState::Failed);
        }
        Some(StepState::Running | StepState::Waiting(_)) => view.running += 1,
        Some(StepState::Ready { .. }) | None => {}
    }
}

/// A row as the screen shows it.
pub(super) fn row_view(row: &Row, now: Timestamp) -> RowView {
    let doing = match &row.state {
        Some(StepState::Ended { state, .. }) => Doing::Over { state: state.as_str() },
        None => Doing::Working { tool: None },
        Some(StepState::Ready { position }) => Doing::Queued { position: *position },
        Some(StepState::Running) if row.tool.is_none() && row.written > 0 => {
            Doing::Writing { chars: row.written }
        }
        Some(StepState::Running) => Doing::Working { tool: row.tool.clone() },
        Some(StepState::Waiting(WaitingFor::Permission)) => Doing::Asking,
        Some(StepState::Waiting(WaitingFor::Gate)) => Doing::Asking,
        Some(StepState::Waiting(WaitingFor::Lock { name })) => Doing::Waiting { on: format!("lock {name}") },
        Some(StepState::Waiting(WaitingFor::Breaker { why })) => Doing::Waiting { on: why.clone() },
        Some(StepState::Waiting(WaitingFor::Provider { delay, why })) => {
            Doing::Waiting { on: format!("{why}, {} s", delay.as_secs().max(1)) }
        }
        Some(StepState::Waiting(WaitingFor::Retry { delay, error })) => {
            Doing::Waiting { on: format!("again in {} s: {error}", delay.as_secs().max(1)) }
        }
    };
    RowView {
        label: row.label.clone(),
        phase: row.phase.clone(),
        attempt: row.attempt,
        elapsed: row.started.map_or(Duration::ZERO, |started| row.ended.unwrap_or(now).since(started)),
        turn: row.turn,
        doing,
        up: row.usage.input + row.usage.cache_read + row.usage.cache_write,
        down: row.usage.output,
        usd: row.usage.usd,
    }
}
