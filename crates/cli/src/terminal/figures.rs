//! Times, tokens and money, short.

use std::time::Duration;

/// `3s`, `1m15s`, `2h03m`.
pub fn elapsed(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

/// `0.4s`, `3.2s`, then as `elapsed`.
pub fn took(time: Duration) -> String {
    if time < Duration::from_secs(10) { format!("{:.1}s", time.as_secs_f64()) } else { elapsed(time) }
}

/// `950`, `1.2k`, `12k`, `1.2M`.
pub fn tokens(count: u64) -> String {
    match count {
        0..1000 => count.to_string(),
        1000..9950 => format!("{}.{}k", (count + 50) / 1000, (count + 50) / 100 % 10),
        9950..999_500 => format!("{}k", (count + 500) / 1000),
        _ => {
            let tenths = count.saturating_add(50_000) / 100_000;
            format!("{}.{}M", tenths / 10, tenths % 10)
        }
    }
}

/// `$0.42`, `$0.0042`; `$?` where the price is unknown.
pub fn money(usd: Option<f64>) -> String {
    match usd {
        None => "$?".to_owned(),
        Some(0.0) => "$0".to_owned(),
        Some(usd) if usd < 0.01 => format!("${usd:.4}"),
        Some(usd) => format!("${usd:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stay_short() {
        let times = [0, 59, 75, 3599, 7380].map(|s| elapsed(Duration::from_secs(s)));
        assert_eq!(times, ["0s", "59s", "1m15s", "59m59s", "2h03m"]);
        let counts = [0, 999, 1000, 1250, 9949, 9950, 12_400, 999_499, 999_500, 1_250_000].map(tokens);
        assert_eq!(counts, ["0", "999", "1.0k", "1.3k", "9.9k", "10k", "12k", "999k", "1.0M", "1.3M"]);
        let costs = [None, Some(0.0), Some(0.0042), Some(1.234)].map(money);
        assert_eq!(costs, ["$?", "$0", "$0.0042", "$1.23"]);
        assert_eq!(took(Duration::from_millis(3240)), "3.2s");
    }
}
