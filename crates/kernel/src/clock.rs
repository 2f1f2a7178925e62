//! The wall clock, in one form: RFC 3339, UTC, milliseconds.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A moment, to the millisecond. Text form: `2026-01-31T23:59:59.999Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(i64);

/// A text that is no moment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an RFC 3339 time")]
pub struct NotATime(String);

/// This moment.
pub fn now() -> Timestamp {
    Timestamp(jiff::Timestamp::now().as_millisecond())
}

impl Timestamp {
    /// Milliseconds since 1970.
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// From milliseconds since 1970.
    pub fn from_millis(ms: i64) -> Self {
        Self(ms)
    }

    /// Time since `earlier`; zero where the clock went back.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Later by `by`.
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = jiff::Timestamp::from_millisecond(self.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        write!(f, "{moment:.3}")
    }
}

impl FromStr for Timestamp {
    type Err = NotATime;
    fn from_str(raw: &str) -> Result<Self, NotATime> {
        let moment: jiff::Timestamp = raw.parse().map_err(|_| NotATime(raw.to_owned()))?;
        Ok(Self(moment.as_millisecond()))
    }
}

impl TryFrom<String> for Timestamp {
    type Error = NotATime;
    fn try_from(raw: String) -> Result<Self, NotATime> {
        raw.parse()
    }
}

impl From<Timestamp> for String {
    fn from(at: Timestamp) -> Self {
        at.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_reads_back_as_it_was_written() {
        let at = Timestamp::from_millis(1_764_581_022_042);
        assert_eq!(at.to_string(), "2025-12-01T09:23:42.042Z");
        assert_eq!(at.to_string().parse(), Ok(at));
    }

    #[test]
    fn time_that_goes_back_is_no_time() {
        assert_eq!(Timestamp::from_millis(5).since(Timestamp::from_millis(9)), Duration::ZERO);
    }
}
