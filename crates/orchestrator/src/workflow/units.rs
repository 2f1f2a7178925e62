//! Durations and sizes as people write them.

use std::time::Duration;

/// A text that is no duration or no size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// Not a duration.
    #[error("`{0}` is not a duration (a number and one of ms, s, m, h, d: `90s`)")]
    Duration(String),
    /// Not a size.
    #[error("`{0}` is not a size (a number and one of B, KB, MB, GB, KiB, MiB, GiB: `64KiB`)")]
    Size(String),
}

fn split(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit))
}

/// `90s`, `5m`, `2h`, `250ms`, `1d`, and several after another: `1h30m`.
///
/// # Errors
/// Where the text is something else or too large.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let wrong = || UnitError::Duration(text.to_owned());
    let mut rest = text.trim();
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let (number, tail) = split(rest).ok_or_else(wrong)?;
        let letters = tail.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, next) = tail.split_at(letters);
        let millis: u64 = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(wrong()),
        };
        let part = Duration::from_millis(number.checked_mul(millis).ok_or_else(wrong)?);
        total = total.checked_add(part).ok_or_else(wrong)?;
        rest = next;
    }
    Ok(total)
}

/// `64KiB`, `1MB`, `512B`, `512`: bytes.
///
/// # Errors
/// Where the text is something else or too large.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let wrong = || UnitError::Size(text.to_owned());
    let (number, unit) = split(text.trim()).ok_or_else(wrong)?;
    let factor: u64 = match unit.trim_start() {
        "" | "B" => 1,
        "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(wrong()),
    };
    number.checked_mul(factor).ok_or_else(wrong)
}

/// The shortest way to write a duration.
pub fn show_duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    match millis {
        0 => "0s".to_owned(),
        m if m % 3_600_000 == 0 => format!("{}h", m / 3_600_000),
        m if m % 60_000 == 0 => format!("{}m", m / 60_000),
        m if m % 1_000 == 0 => format!("{}s", m / 1_000),
        m => format!("{m}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_read_as_written() {
        assert_eq!(parse_duration("1h30m").unwrap(), Duration::from_secs(5400));
        assert_eq!(parse_duration("250ms").unwrap(), Duration::from_millis(250));
        assert_eq!(parse_size("48KiB").unwrap(), 49152);
        assert_eq!(parse_size("1 MB").unwrap(), 1_000_000);
        for bad in ["", "s", "5", "5 s", "-5s", "5x", "99999999999999999999s", "9999999999999999d"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
        for bad in ["", "KiB", "1kb", "-1", "99999999999GiB"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_duration_is_shown_in_its_largest_whole_unit() {
        assert_eq!(show_duration(Duration::from_secs(1800)), "30m");
        assert_eq!(show_duration(Duration::from_secs(90)), "90s");
        assert_eq!(show_duration(Duration::from_millis(1500)), "1500ms");
    }
}
