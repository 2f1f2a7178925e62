//! What a person says into a running conversation: bounded from the moment it is said until the history holds it.

use claw_providers::message::Block;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Messages that may wait for the next step.
pub(crate) const MOST_STEERING: usize = 16;

/// The places of one conversation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Room {
    taken: Arc<AtomicUsize>,
}

/// A message in its place; the place is free again when the message is gone.
#[derive(Debug)]
pub(crate) struct Steering {
    text: String,
    room: Room,
}

impl Room {
    /// Whether a place is free.
    pub(crate) fn is_free(&self) -> bool {
        self.taken.load(Ordering::Acquire) < MOST_STEERING
    }

    /// `None` where all places are taken.
    pub(crate) fn place(&self, text: String) -> Option<Steering> {
        let free = |taken: usize| (taken < MOST_STEERING).then_some(taken + 1);
        self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, free).ok()?;
        Some(Steering { text, room: self.clone() })
    }
}

impl Steering {
    pub(crate) fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// As the history holds it.
    pub(crate) fn block(mut self) -> Block {
        Block::Text { text: std::mem::take(&mut self.text) }
    }
}

impl Drop for Steering {
    fn drop(&mut self) {
        self.room.taken.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_again_when_its_message_is_gone() {
        let room = Room::default();
        let mut waiting: Vec<Steering> =
            (0..MOST_STEERING).filter_map(|n| room.place(n.to_string())).collect();
        assert_eq!(waiting.len(), MOST_STEERING);
        assert!(room.place("one too many".into()).is_none());
        assert_eq!(waiting.remove(0).block().as_text(), Some("0"));
        assert!(room.place("one more".into()).is_some());
    }
}
