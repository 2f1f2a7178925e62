//! How full the window is: the service's last real count, and an estimate of what came since. Pure.

use super::estimate::{tokens_of, tokens_of_all};
use super::settings::CompactionSettings;
use claw_providers::message::Message;
use claw_providers::usage::Usage;
use std::sync::Arc;

/// What is known of a history's size.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fullness {
    /// The last real count, and the messages that it covers.
    counted: Option<(u64, usize)>,
    /// Tokens of system prompt and tools, estimated.
    pub(crate) fixed: u64,
}

impl Fullness {
    /// An answer came in the first try: its usage covers `messages` messages, the answer included.
    pub(crate) fn count(&mut self, usage: &Usage, messages: usize) {
        let total = usage.total();
        if total > 0 && usage.unknown == 0 {
            self.counted = Some((total, messages));
        }
    }

    /// The history is another one: its size is estimated until the service counts it.
    pub(crate) fn forget(&mut self) {
        self.counted = None;
    }

    /// Tokens of a request with this history.
    pub(crate) fn used(&self, history: &[Arc<Message>]) -> u64 {
        match self.counted {
            Some((tokens, covered)) if covered <= history.len() => {
                tokens + tokens_of_all(&history[covered..])
            }
            Some(_) | None => self.fixed + tokens_of_all(history),
        }
    }

    /// Whether it should be compacted before the next request. A summary that is there does not count.
    pub(crate) fn is_too_full(
        &self,
        history: &[Arc<Message>],
        window: Option<u64>,
        settings: &CompactionSettings,
    ) -> bool {
        let Some(threshold) = settings.threshold.tokens(window).filter(|_| settings.auto) else {
            return false;
        };
        let summary = match history.first() {
            Some(first) if super::plan::earlier(first).is_some() => tokens_of(first),
            Some(_) | None => 0,
        };
        self.used(history).saturating_sub(summary) >= threshold
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compaction::Threshold;

    #[test]
    fn the_real_count_goes_before_the_estimate_and_what_came_since_is_added() {
        let history: Vec<Arc<Message>> = (0..3).map(|_| Arc::new(Message::user("x".repeat(400)))).collect();
        let mut fullness = Fullness { fixed: 1_000, ..Fullness::default() };
        assert_eq!(fullness.used(&history), 1_000 + 3 * 104);
        fullness.count(&Usage { input: 50, cache_read: 5_000, output: 10, ..Usage::NOTHING }, 2);
        assert_eq!(fullness.used(&history), 5_060 + 104);
        let settings = CompactionSettings::default();
        assert!(fullness.is_too_full(&history, Some(6_000), &settings));
        assert!(!fullness.is_too_full(&history, Some(10_000), &settings));
        assert!(
            !fullness.is_too_full(&history, None, &settings),
            "an unknown window is told by an error only"
        );
        assert!(!fullness.is_too_full(
            &history,
            Some(6_000),
            &CompactionSettings { auto: false, ..settings }
        ));
        let tokens = CompactionSettings { threshold: Threshold::Tokens(5_000), ..settings };
        assert!(fullness.is_too_full(&history, None, &tokens));
    }
}
