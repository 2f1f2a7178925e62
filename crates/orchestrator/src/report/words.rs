//! Words that all readers of a run use alike.

use crate::journal::record::{EndState, RunStatus};
use claw_providers::usage::Usage;
use std::time::Duration;

impl EndState {
    /// As it stands in files and lines.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
            Self::Cached => "cached",
            Self::Interrupted => "interrupted",
        }
    }
}

impl RunStatus {
    /// As it stands in files and lines.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Partial => "partial",
            Self::Paused => "paused",
            Self::Stopped => "stopped",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }
}

/// `0.3s`, `12s`, `2m 05s`, `1h 04m`.
pub(super) fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..10 => format!("{:.1}s", time.as_secs_f64()),
        10..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

/// `0.42 USD`, `0.0042 USD`, or `price unknown`.
pub(super) fn money(usage: &Usage) -> String {
    match usage.usd {
        None => "price unknown".to_owned(),
        Some(usd) if usd > 0.0 && usd < 0.01 => format!("{usd:.4} USD"),
        Some(usd) => format!("{usd:.2} USD"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_short_at_every_length() {
        let shown = [0.25, 9.96, 59.9, 125.0, 3840.0].map(|secs| span(Duration::from_secs_f64(secs)));
        assert_eq!(shown, ["0.2s", "10.0s", "59s", "2m 05s", "1h 04m"]);
    }

    #[test]
    fn a_part_of_a_cent_is_money() {
        let shown =
            [None, Some(0.0), Some(0.0042), Some(1.239)].map(|usd| money(&Usage { usd, ..Usage::NOTHING }));
        assert_eq!(shown, ["price unknown", "0.00 USD", "0.0042 USD", "1.24 USD"]);
    }

    #[test]
    fn the_words_of_states_are_those_on_disk() {
        let states = [EndState::Succeeded, EndState::Failed, EndState::Skipped, EndState::Cancelled];
        for state in states.into_iter().chain([EndState::Cached, EndState::Interrupted]) {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
        for status in [RunStatus::Running, RunStatus::Partial, RunStatus::Stopped] {
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
    }
}
