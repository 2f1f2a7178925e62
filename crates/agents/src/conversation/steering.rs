//! What a person says into a running conversation: bounded from the moment it is said until the history holds it.

use claw_providers::message::Block;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

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
    blocks: Vec<Block>,
    room: Room,
    heard: Heard,
}

/// Whether a message has reached the history.
#[derive(Clone, Debug, Default)]
pub struct Heard(Arc<AtomicBool>);

impl Heard {
    /// It is part of the history: the next request tells it.
    pub fn is_heard(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Room {
    /// Whether a place is free.
    pub(crate) fn is_free(&self) -> bool {
        self.taken.load(Ordering::Acquire) < MOST_STEERING
    }

    /// `None` where all places are taken.
    pub(crate) fn place(&self, blocks: Vec<Block>) -> Option<Steering> {
        let free = |taken: usize| (taken < MOST_STEERING).then_some(taken + 1);
        self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, free).ok()?;
        Some(Steering { blocks, room: self.clone(), heard: Heard::default() })
    }
}

impl Steering {
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.iter().all(|block| block.as_text().is_some_and(|text| text.trim().is_empty()))
    }

    /// Tells when it is heard.
    pub(crate) fn heard(&self) -> Heard {
        self.heard.clone()
    }

    /// As the history holds it.
    pub(crate) fn blocks(mut self) -> Vec<Block> {
        self.heard.0.store(true, Ordering::Release);
        std::mem::take(&mut self.blocks)
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

    fn text(text: &str) -> Block {
        Block::Text { text: text.to_owned() }
    }

    #[test]
    fn a_place_is_free_again_when_its_message_is_gone() {
        let room = Room::default();
        let mut waiting: Vec<Steering> =
            (0..MOST_STEERING).filter_map(|n| room.place(vec![text(&n.to_string())])).collect();
        assert_eq!(waiting.len(), MOST_STEERING);
        assert!(room.place(vec![text("one too many")]).is_none());
        let first = waiting.remove(0);
        let heard = first.heard();
        assert!(!heard.is_heard());
        assert_eq!(first.blocks(), [text("0")]);
        assert!(heard.is_heard());
        assert!(room.place(vec![text("one more")]).is_some());
    }
}
