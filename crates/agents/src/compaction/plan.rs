//! What goes and what stays. Pure.

use super::estimate::tokens_of_all;
use super::summary::{self, Earlier};
use claw_providers::message::{Block, Message, Role};
use std::sync::Arc;

/// Below so many tokens nothing is won.
const LEAST: u64 = 100;
/// Bytes of a result that stays, where whole ones would not fit.
const CUT: usize = 6_000;
/// The same at the last try.
const CUT_HARD: usize = 1_500;

/// How hard room is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Squeeze {
    /// As the settings say.
    Usual,
    /// The service said twice that it is too long.
    Hard,
}

/// A decided compaction.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The messages that go.
    pub(crate) gone: Vec<Arc<Message>>,
    /// The summary of an earlier compaction that goes with them.
    pub(crate) earlier: Option<Earlier>,
    /// Messages at the end that stay.
    pub(crate) kept: usize,
    /// Their results are cut to so many bytes.
    pub(crate) cut: Option<usize>,
    /// Tokens of the messages that go, the earlier summary included.
    pub(crate) tokens: u64,
}

/// The summary in a first message.
pub(super) fn earlier(first: &Message) -> Option<Earlier> {
    summary::read(first.content.first().and_then(Block::as_text)?)
}

impl Plan {
    /// `None` where nothing is there to go. `room`: the tokens of the model's window.
    pub(crate) fn of(
        history: &[Arc<Message>],
        preserve: usize,
        room: Option<u64>,
        squeeze: Squeeze,
    ) -> Option<Self> {
        let earlier = history.first().and_then(|first| earlier(first));
        let preserve = match squeeze {
            Squeeze::Usual => preserve.max(1),
            Squeeze::Hard => 1,
        };
        let mut start = history.len().saturating_sub(preserve);
        // A result stays with its call.
        while start > 0 && history.get(start).is_some_and(|message| holds_results(message)) {
            start -= 1;
        }
        let mut gone: Vec<Arc<Message>> = history[..start].to_vec();
        if earlier.is_some()
            && let Some(first) = gone.first_mut()
        {
            // What was said right behind the summary stands in the same message.
            let rest = first.content[1..].to_vec();
            if rest.is_empty() {
                gone.remove(0);
            } else {
                *first = Arc::new(Message { role: Role::User, content: rest });
            }
        }
        let tokens = tokens_of_all(&history[..start]);
        if gone.is_empty() || tokens_of_all(&gone) < LEAST {
            return None;
        }
        let stays = tokens_of_all(&history[start..]);
        let cut = match squeeze {
            Squeeze::Hard => Some(CUT_HARD),
            Squeeze::Usual => room.is_some_and(|room| stays > room / 2).then_some(CUT),
        };
        Some(Self { gone, earlier, kept: history.len() - start, cut, tokens })
    }

    /// The text for the head of the history: `points` from the model, or from the messages themselves. Always smaller
    /// than what goes.
    pub(crate) fn text(&self, points: Option<&str>) -> String {
        summary::write(self, points)
    }
}

fn holds_results(message: &Message) -> bool {
    message.content.iter().any(|block| matches!(block, Block::ToolResult { .. }))
}
