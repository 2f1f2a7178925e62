//! Ceilings in words.

use super::core::{Ceiling, Held};
use std::time::Duration;

impl Ceiling {
    /// Its key in a budget.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Usd => "usd",
            Self::Tokens => "tokens",
            Self::OutputTokens => "output_tokens",
            Self::Turns => "turns",
            Self::Wall => "wall",
        }
    }
}

/// `10,250 of 10,000 tokens are spent`.
pub(super) fn spent(held: &Held) -> String {
    let (spent, limit) = (held.spent, held.limit);
    #[expect(clippy::cast_precision_loss, reason = "shown with four digits")]
    let dollars = |nanos: u64| nanos as f64 / 1e9;
    let mut text = match held.ceiling {
        Ceiling::Usd => format!("{:.4} of {:.4} USD are spent", dollars(spent), dollars(limit)),
        Ceiling::Tokens => format!("{spent} of {limit} tokens are spent"),
        Ceiling::OutputTokens => format!("{spent} of {limit} output tokens are spent"),
        Ceiling::Turns => format!("{spent} of {limit} requests are made"),
        Ceiling::Wall => {
            let seconds = |millis| Duration::from_millis(millis).as_secs_f64();
            format!("{:.1} of {:.1} s of work are over", seconds(spent), seconds(limit))
        }
    };
    if held.kept {
        text.push_str(", and the rest is kept for final nodes");
    }
    text
}
