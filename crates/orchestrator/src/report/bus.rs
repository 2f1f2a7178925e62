//! The one stream of a run's events: numbered, sent to whoever listens, and kept on the board.

use super::board::Board;
use super::event::{RunEvent, RunEventKind};
use super::snapshot::Snapshot;
use crate::addr::StepAddr;
use claw_kernel::clock;
use claw_kernel::ids::RunId;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::broadcast;

/// Events that a slow listener may be behind; one that is further behind is told how many it missed.
const BEHIND: usize = 8192;

/// Numbers events and hands them on.
#[derive(Debug)]
pub struct EventBus {
    run: RunId,
    /// Held over number and hand-over, so that listeners see the numbers in order.
    seq: Mutex<u64>,
    listeners: broadcast::Sender<RunEvent>,
    board: Arc<Board>,
}

impl EventBus {
    /// A bus without listeners.
    pub fn new(run: RunId, board: Arc<Board>) -> Self {
        let (listeners, _) = broadcast::channel(BEHIND);
        Self { run, seq: Mutex::new(0), listeners, board }
    }

    /// From now on.
    pub fn subscribe(&self) -> broadcast::Receiver<RunEvent> {
        self.listeners.subscribe()
    }

    /// What the board shows at this moment, and all events from then on: none twice, none left out.
    pub fn watch(&self) -> (Snapshot, broadcast::Receiver<RunEvent>) {
        let seq = self.seq.lock().unwrap_or_else(PoisonError::into_inner);
        (Snapshot::of(self.run, *seq, &self.board), self.listeners.subscribe())
    }

    /// The board that it keeps.
    pub fn board(&self) -> &Arc<Board> {
        &self.board
    }

    /// Says that something happened.
    pub fn tell(&self, step: Option<StepAddr>, attempt: Option<u32>, kind: RunEventKind) {
        let mut seq = self.seq.lock().unwrap_or_else(PoisonError::into_inner);
        *seq += 1;
        let event = RunEvent { run: self.run, seq: *seq, at: clock::now(), step, attempt, kind };
        self.board.on(&event);
        // Nobody may be listening.
        let _ = self.listeners.send(event);
    }

    /// A word for people.
    pub fn note(&self, step: Option<&StepAddr>, text: String) {
        self.tell(step.cloned(), None, RunEventKind::Note(text));
    }
}
