//! Reads the rate limits that an answer's headers tell.
//!
//! Owns the header names of the services. Pure.

use claw_kernel::clock::Timestamp;
use std::time::Duration;

/// No header makes anybody wait longer than this.
const CAP: Duration = Duration::from_secs(60);

const ANTHROPIC: [&str; 4] = ["requests", "tokens", "input-tokens", "output-tokens"];
const CHAT: [&str; 2] = ["requests", "tokens"];

/// For how long nothing is left of a limit; `None` where something is left or nothing is told.
pub fn exhausted_for<'a>(header: impl Fn(&str) -> Option<&'a str>, now: Timestamp) -> Option<Duration> {
    let is_zero = |name: &str| header(name).is_some_and(|left| left.trim() == "0");
    let anthropic = ANTHROPIC.iter().filter_map(|what| {
        is_zero(&format!("anthropic-ratelimit-{what}-remaining")).then_some(())?;
        let reset: Timestamp = header(&format!("anthropic-ratelimit-{what}-reset"))?.trim().parse().ok()?;
        Some(reset.since(now))
    });
    let chat = CHAT.iter().filter_map(|what| {
        is_zero(&format!("x-ratelimit-remaining-{what}")).then_some(())?;
        span(header(&format!("x-ratelimit-reset-{what}"))?)
    });
    anthropic.chain(chat).filter(|wait| !wait.is_zero()).max().map(|wait| wait.min(CAP))
}

/// A span such as `6m0s`, `1.5s`, `20ms`.
fn span(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = text.trim();
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let value: f64 = rest[..digits].parse().ok()?;
        let unit = &rest[digits..];
        let (factor, len) = match unit {
            u if u.starts_with("ms") => (0.001, 2),
            u if u.starts_with('s') => (1.0, 1),
            u if u.starts_with('m') => (60.0, 1),
            u if u.starts_with('h') => (3600.0, 1),
            _ => return None,
        };
        // Whatever a service writes there, the sum has an end.
        total = total.saturating_add(Duration::try_from_secs_f64(value * factor).ok()?.min(CAP));
        rest = &unit[len..];
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(headers: &[(&str, &'static str)]) -> Option<Duration> {
        let now: Timestamp = "2026-01-01T00:00:00.000Z".parse().unwrap();
        exhausted_for(|name| headers.iter().find(|(n, _)| *n == name).map(|(_, v)| *v), now)
    }

    #[test]
    fn an_exhausted_limit_is_read_on_both_wires() {
        let messages = [
            ("anthropic-ratelimit-tokens-remaining", "0"),
            ("anthropic-ratelimit-tokens-reset", "2026-01-01T00:00:05Z"),
        ];
        assert_eq!(read(&messages), Some(Duration::from_secs(5)));
        let chat = [("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "1.5s")];
        assert_eq!(read(&chat), Some(Duration::from_millis(1500)));
        let far = [("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "6m20ms")];
        assert_eq!(read(&far), Some(CAP));
    }

    #[test]
    fn what_is_left_or_garbage_makes_nobody_wait_for_long() {
        assert_eq!(
            read(&[("x-ratelimit-remaining-requests", "7"), ("x-ratelimit-reset-requests", "9s")]),
            None
        );
        assert_eq!(
            read(&[("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "soon")]),
            None
        );
        let endless = [
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-requests", "18446744073709540000s18446744073709540000s"),
        ];
        assert_eq!(read(&endless), Some(CAP));
        let past = [
            ("anthropic-ratelimit-tokens-remaining", "0"),
            ("anthropic-ratelimit-tokens-reset", "2025-01-01T00:00:05Z"),
        ];
        assert_eq!(read(&past), None);
    }
}
