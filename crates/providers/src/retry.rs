//! Decides whether and when a request is tried again.
//!
//! Owns backoff and the reading of `Retry-After`. Pure: no clock, no chance, no network; see `engine.rs` for those.

use crate::error::ErrorClass;
use std::time::{Duration, SystemTime};

/// How long and how often to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Tries in all, the first included.
    pub tries: u32,
    /// Time from the first try after which no other begins.
    pub window: Duration,
    /// The first ceiling of the backoff; it doubles with each try.
    pub base: Duration,
    /// No backoff is longer than this.
    pub cap: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            tries: 6,
            window: Duration::from_secs(300),
            base: Duration::from_secs(1),
            cap: Duration::from_secs(60),
        }
    }
}

/// What comes next after a failed try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Try again after this delay.
    Retry(Duration),
    /// This failure is not healed by trying again.
    NotRetryable,
    /// The tries or the time are used up.
    Exhausted,
    /// The service asks for a longer wait than a request may last.
    WaitTooLong(Duration),
}

/// A failed try.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    /// Its class.
    pub class: ErrorClass,
    /// Which try it was, from 1.
    pub attempt: u32,
    /// Time spent on this request so far.
    pub elapsed: Duration,
    /// What the service asks for.
    pub retry_after: Option<Duration>,
}

impl RetryPolicy {
    /// Decides; `chance` lies in 0..1.
    pub fn next(&self, failure: &Failure, chance: f64) -> Next {
        if !is_retryable(failure.class) {
            return Next::NotRetryable;
        }
        if let Some(wait) = failure.retry_after.filter(|wait| *wait > self.window) {
            return Next::WaitTooLong(wait);
        }
        if failure.attempt >= self.tries {
            return Next::Exhausted;
        }
        let delay = match failure.retry_after {
            // Never earlier than asked; the jitter keeps a crowd from coming back as one.
            Some(wait) => wait + self.base.mul_f64(0.5 * chance),
            None => self.backoff(failure.attempt, chance),
        };
        if failure.elapsed + delay > self.window { Next::Exhausted } else { Next::Retry(delay) }
    }

    /// Full jitter below a doubling ceiling, yet never at once: a tenth of the base at least.
    fn backoff(&self, attempt: u32, chance: f64) -> Duration {
        let doublings = attempt.saturating_sub(1).min(16);
        let ceiling = self.base.saturating_mul(1 << doublings).min(self.cap);
        ceiling.mul_f64(chance.clamp(0.0, 1.0)).max(self.base / 10)
    }
}

/// Whether another try may heal it.
pub fn is_retryable(class: ErrorClass) -> bool {
    match class {
        ErrorClass::Transient | ErrorClass::RateLimit | ErrorClass::Overloaded | ErrorClass::Timeout => true,
        ErrorClass::Quota
        | ErrorClass::Auth
        | ErrorClass::ContextOverflow
        | ErrorClass::Refused
        | ErrorClass::UnknownModel
        | ErrorClass::Cancelled => false,
    }
}

/// Reads `retry-after-ms` (milliseconds), else `retry-after` (seconds or a date). Garbage, negative values and dates
/// in the past are as good as no header.
pub fn retry_after(ms: Option<&str>, header: Option<&str>, now: SystemTime) -> Option<Duration> {
    let seconds = |text: &str, unit: f64| {
        let value: f64 = text.trim().parse().ok()?;
        Duration::try_from_secs_f64(value * unit).ok().filter(|wait| !wait.is_zero())
    };
    if let Some(wait) = ms.and_then(|text| seconds(text, 0.001)) {
        return Some(wait);
    }
    let text = header?;
    seconds(text, 1.0).or_else(|| {
        let date = httpdate::parse_http_date(text.trim()).ok()?;
        date.duration_since(now).ok().filter(|wait| !wait.is_zero())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn failure(class: ErrorClass, attempt: u32) -> Failure {
        Failure { class, attempt, elapsed: Duration::ZERO, retry_after: None }
    }

    #[test]
    fn backoff_doubles_under_its_cap() {
        let policy = RetryPolicy { tries: 20, window: Duration::from_secs(10_000), ..RetryPolicy::default() };
        let delays: Vec<_> = (1..9).map(|n| policy.next(&failure(ErrorClass::Transient, n), 1.0)).collect();
        let expected: Vec<_> =
            [1, 2, 4, 8, 16, 32, 60, 60].map(|s| Next::Retry(Duration::from_secs(s))).into();
        assert_eq!(delays, expected);
    }

    #[test]
    fn the_sixth_failure_is_the_last() {
        let policy = RetryPolicy::default();
        assert!(matches!(policy.next(&failure(ErrorClass::Transient, 5), 0.5), Next::Retry(_)));
        assert_eq!(policy.next(&failure(ErrorClass::Transient, 6), 0.5), Next::Exhausted);
        let late = Failure { elapsed: Duration::from_secs(299), ..failure(ErrorClass::Transient, 5) };
        assert_eq!(policy.next(&late, 1.0), Next::Exhausted);
    }

    #[test]
    fn what_no_retry_heals_is_not_retried() {
        use ErrorClass::{Auth, Cancelled, ContextOverflow, Quota, Refused, UnknownModel};
        for class in [Auth, Cancelled, ContextOverflow, Quota, Refused, UnknownModel] {
            assert_eq!(RetryPolicy::default().next(&failure(class, 1), 0.5), Next::NotRetryable, "{class:?}");
        }
    }

    #[test]
    fn a_wait_beyond_the_window_is_said_and_not_shortened() {
        let wait = Some(Duration::from_secs(10_800));
        let huge = Failure { retry_after: wait, ..failure(ErrorClass::RateLimit, 1) };
        assert_eq!(RetryPolicy::default().next(&huge, 0.5), Next::WaitTooLong(Duration::from_secs(10_800)));
    }

    #[test]
    fn retry_after_is_read_in_all_its_forms() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_445_412_480);
        let read = |ms, s| retry_after(ms, s, now);
        assert_eq!(read(None, Some("3")), Some(Duration::from_secs(3)));
        assert_eq!(read(Some("1500"), None), Some(Duration::from_millis(1500)));
        assert_eq!(read(Some("1500"), Some("7")), Some(Duration::from_millis(1500)));
        assert_eq!(read(Some("x"), Some("7")), Some(Duration::from_secs(7)));
        assert_eq!(read(None, Some("Wed, 21 Oct 2015 07:28:30 GMT")), Some(Duration::from_secs(30)));
        assert_eq!(read(None, Some("1e9")), Some(Duration::from_secs(1_000_000_000)));
        for bad in ["-5", "soon", "", "0", "NaN", "inf", "1e300", "Wed, 21 Oct 2015 07:27:00 GMT"] {
            assert_eq!(read(None, Some(bad)), None, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn no_retry_is_at_once_nor_earlier_than_asked_nor_beyond_the_window(
            attempt in 1u32..12, chance in 0.0f64..1.0, elapsed in 0u64..400, asked in proptest::option::of(1u64..400),
        ) {
            let policy = RetryPolicy::default();
            let failure = Failure {
                class: ErrorClass::RateLimit,
                attempt,
                elapsed: Duration::from_secs(elapsed),
                retry_after: asked.map(Duration::from_secs),
            };
            if let Next::Retry(delay) = policy.next(&failure, chance) {
                prop_assert!(delay >= Duration::from_millis(100));
                prop_assert!(delay >= failure.retry_after.unwrap_or_default());
                prop_assert!(failure.elapsed + delay <= policy.window);
                prop_assert!(attempt < policy.tries);
            }
        }
    }
}
