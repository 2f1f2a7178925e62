//! The wall clock, in one form: RFC 3339, UTC, milliseconds.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A moment, to the millisecond. Text form: `2026-01-31T23:59:59.999Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
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
        let at = jiff::tz::Offset::UTC.to_datetime(moment);
        let Ok(year) = u32::try_from(at.year()) else { return write!(f, "{moment:.3}") };
        let part = |number: i8| u32::from(number.unsigned_abs());
        // Written many times for each step: digit by digit.
        let mut text = *b"0000-00-00T00:00:00.000Z";
        digits(&mut text[0..4], year);
        digits(&mut text[5..7], part(at.month()));
        digits(&mut text[8..10], part(at.day()));
        digits(&mut text[11..13], part(at.hour()));
        digits(&mut text[14..16], part(at.minute()));
        digits(&mut text[17..19], part(at.second()));
        digits(&mut text[20..23], u32::from(at.millisecond().unsigned_abs()));
        f.write_str(str::from_utf8(&text).unwrap_or_default())
    }
}

/// The decimal digits of a number, to the width of their place.
fn digits(place: &mut [u8], mut number: u32) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
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

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
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
        assert_eq!(serde_json::to_value(at).unwrap(), "2025-12-01T09:23:42.042Z");
        for ms in [0, 1, -1, 951_782_400_999, 1_709_164_799_990, 253_402_207_199_999, -62_198_755_200_000] {
            let at = Timestamp::from_millis(ms);
            let known = jiff::Timestamp::from_millisecond(ms).unwrap();
            assert_eq!(at.to_string(), format!("{known:.3}"));
        }
    }

    #[test]
    fn time_that_goes_back_is_no_time() {
        assert_eq!(Timestamp::from_millis(5).since(Timestamp::from_millis(9)), Duration::ZERO);
    }
}
