//! What is known of models: window, output limit, prices, whether they think. A table with a date.
//!
//! Owns numbers and the arithmetic of money. Must not know where a model is served.

use crate::event::UsageReport;
use crate::usage::Usage;
use serde::{Deserialize, Serialize};

/// The day on which the table was last compared with the services' price lists.
pub const PRICES_AS_OF: &str = "2026-02-10";

/// How a model can be told to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thinking {
    /// It cannot, or nothing is known.
    No,
    /// By a budget in tokens.
    Budget,
    /// It decides itself, and takes an effort.
    Adaptive,
    /// By a word of effort (chat wire).
    Effort,
}

/// Prices in US dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Input that no cache held.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Input read from a cache.
    #[serde(alias = "cacheRead")]
    pub cache_read: f64,
    /// Input written to a cache.
    #[serde(alias = "cacheWrite")]
    pub cache_write: f64,
}

impl Price {
    /// A local server costs nothing.
    pub const FREE: Self = Self { input: 0.0, output: 0.0, cache_read: 0.0, cache_write: 0.0 };

    /// The rates of a service whose cache writes cost 1.25 times and reads 0.1 times the input.
    const fn cached(input: f64, output: f64) -> Self {
        Self { input, output, cache_read: input * 0.1, cache_write: input * 1.25 }
    }

    /// The rates of a service that charges nothing extra for writes.
    const fn read(input: f64, output: f64, cache_read: f64) -> Self {
        Self { input, output, cache_read, cache_write: input }
    }

    /// What these tokens cost, in US dollars.
    pub fn cost(&self, usage: &Usage) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
        let part = |tokens: u64, rate: f64| tokens as f64 * rate / 1_000_000.0;
        part(usage.input, self.input)
            + part(usage.output, self.output)
            + part(usage.cache_read, self.cache_read)
            + part(usage.cache_write, self.cache_write)
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelInfo {
    /// Context window in tokens; `None` where unknown.
    pub window: Option<u32>,
    /// The most output tokens the model can give; `None` where unknown.
    pub max_output: Option<u32>,
    /// `None` where unknown.
    pub price: Option<Price>,
    /// How it thinks.
    pub thinking: Thinking,
}

impl ModelInfo {
    /// A model that no table knows.
    pub const UNKNOWN: Self = Self { window: None, max_output: None, price: None, thinking: Thinking::No };

    const fn new(window: u32, max_output: u32, price: Price, thinking: Thinking) -> Self {
        Self { window: Some(window), max_output: Some(max_output), price: Some(price), thinking }
    }
}

use Thinking::{Adaptive, Budget, Effort, No};

/// Name (also the start of dated names) and what is known. The longest name that fits counts.
const TABLE: &[(&str, ModelInfo)] = &[
    ("claude-opus-4-6", ModelInfo::new(200_000, 128_000, Price::cached(5.0, 25.0), Adaptive)),
    ("claude-sonnet-4-6", ModelInfo::new(200_000, 64_000, Price::cached(3.0, 15.0), Adaptive)),
    ("claude-haiku-4-5", ModelInfo::new(200_000, 64_000, Price::cached(1.0, 5.0), Budget)),
    ("claude-opus-4-5", ModelInfo::new(200_000, 64_000, Price::cached(5.0, 25.0), Budget)),
    ("claude-sonnet-4-5", ModelInfo::new(200_000, 64_000, Price::cached(3.0, 15.0), Budget)),
    ("claude-opus-4-1", ModelInfo::new(200_000, 32_000, Price::cached(15.0, 75.0), Budget)),
    ("claude-opus-4", ModelInfo::new(200_000, 32_000, Price::cached(15.0, 75.0), Budget)),
    ("claude-sonnet-4", ModelInfo::new(200_000, 64_000, Price::cached(3.0, 15.0), Budget)),
    ("claude-3-7-sonnet", ModelInfo::new(200_000, 64_000, Price::cached(3.0, 15.0), Budget)),
    ("claude-3-5-haiku", ModelInfo::new(200_000, 8_192, Price::cached(0.8, 4.0), No)),
    ("gpt-5.1", ModelInfo::new(400_000, 128_000, Price::read(1.25, 10.0, 0.125), Effort)),
    ("gpt-5", ModelInfo::new(400_000, 128_000, Price::read(1.25, 10.0, 0.125), Effort)),
    ("gpt-5-mini", ModelInfo::new(400_000, 128_000, Price::read(0.25, 2.0, 0.025), Effort)),
    ("gpt-5-nano", ModelInfo::new(400_000, 128_000, Price::read(0.05, 0.4, 0.005), Effort)),
    ("gpt-4.1", ModelInfo::new(1_047_576, 32_768, Price::read(2.0, 8.0, 0.5), No)),
    ("gpt-4.1-mini", ModelInfo::new(1_047_576, 32_768, Price::read(0.4, 1.6, 0.1), No)),
    ("gpt-4.1-nano", ModelInfo::new(1_047_576, 32_768, Price::read(0.1, 0.4, 0.025), No)),
    ("gpt-4o", ModelInfo::new(128_000, 16_384, Price::read(2.5, 10.0, 1.25), No)),
    ("gpt-4o-mini", ModelInfo::new(128_000, 16_384, Price::read(0.15, 0.6, 0.075), No)),
    ("o3", ModelInfo::new(200_000, 100_000, Price::read(2.0, 8.0, 0.5), Effort)),
    ("o3-mini", ModelInfo::new(200_000, 100_000, Price::read(1.1, 4.4, 0.55), Effort)),
    ("o4-mini", ModelInfo::new(200_000, 100_000, Price::read(1.1, 4.4, 0.275), Effort)),
    ("grok-4", ModelInfo::new(256_000, 64_000, Price::read(3.0, 15.0, 0.75), No)),
    ("grok-3", ModelInfo::new(131_072, 64_000, Price::read(3.0, 15.0, 0.75), No)),
    ("grok-3-mini", ModelInfo::new(131_072, 64_000, Price::read(0.3, 0.5, 0.075), Effort)),
    ("grok-2", ModelInfo::new(131_072, 32_768, Price::read(2.0, 10.0, 2.0), No)),
];

/// What the table knows of a model: by its name, or by its name with a date or `-latest` behind it.
pub fn known(model: &str) -> Option<ModelInfo> {
    let model = model.to_ascii_lowercase();
    TABLE
        .iter()
        .filter(|(name, _)| model.strip_prefix(name).is_some_and(is_version))
        .max_by_key(|(name, _)| name.len())
        .map(|(_, info)| *info)
}

/// Nothing, a date, `-latest` or `-preview`: anything else would be another model.
fn is_version(rest: &str) -> bool {
    rest.is_empty()
        || rest == "-latest"
        || rest == "-preview"
        || rest
            .strip_prefix(['-', '@'])
            .is_some_and(|d| d.len() >= 6 && d.chars().all(|c| c.is_ascii_digit() || c == '-'))
}

/// Output tokens to ask for where nobody says how many.
pub fn default_output(model: &str, limit: Option<u32>) -> u32 {
    let wanted = if model.to_ascii_lowercase().contains("opus") { 32_000 } else { 64_000 };
    limit.map_or(wanted, |limit| wanted.min(limit))
}

/// Usage of one try in the shape that everyone sums up. Without a word of the service it is unknown, and so is
/// its price, unless the model costs nothing.
pub fn settle(report: &UsageReport, price: Option<&Price>) -> Usage {
    let mut usage = Usage {
        input: report.input.unwrap_or_default(),
        output: report.output.unwrap_or_default(),
        cache_read: report.cache_read.unwrap_or_default(),
        cache_write: report.cache_write.unwrap_or_default(),
        usd: None,
        unknown: u64::from(report.input.is_none() && report.output.is_none()),
    };
    usage.usd =
        price.filter(|price| usage.unknown == 0 || **price == Price::FREE).map(|price| price.cost(&usage));
    usage
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_rates_make_the_price() {
        let usage = Usage { input: 27, cache_write: 1_500, cache_read: 20_000, output: 47, ..Usage::NOTHING };
        let price = known("claude-opus-4-6").unwrap().price.unwrap();
        let by_hand = (27.0 * 5.0 + 1_500.0 * 6.25 + 20_000.0 * 0.5 + 47.0 * 25.0) / 1_000_000.0;
        assert!((price.cost(&usage) - by_hand).abs() < 1e-12);
        assert_eq!(usage.total(), 21_574);
    }

    #[test]
    fn dated_names_are_known_and_other_models_are_not_taken_for_them() {
        assert_eq!(known("claude-haiku-4-5-20251001"), known("claude-haiku-4-5"));
        assert_eq!(known("gpt-4o-2024-11-20"), known("gpt-4o"));
        assert_eq!(known("gpt-5-mini").unwrap().price.unwrap().input, 0.25);
        assert_eq!(known("claude-opus-4-20250514").unwrap().price.unwrap().input, 15.0);
        assert_eq!(known("claude-opus-4-7"), None);
        assert_eq!(known("mock"), None);
    }

    #[test]
    fn the_output_asked_for_never_exceeds_the_table() {
        assert_eq!(default_output("claude-opus-4-6", Some(128_000)), 32_000);
        assert_eq!(default_output("claude-3-5-haiku", Some(8_192)), 8_192);
        assert_eq!(default_output("mock", None), 64_000);
    }

    #[test]
    fn unknown_stays_unknown_and_local_stays_free() {
        let told = UsageReport { input: Some(1), output: Some(1), ..UsageReport::default() };
        assert_eq!(settle(&told, None).usd, None);
        let silent = settle(&UsageReport::default(), known("gpt-4o").unwrap().price.as_ref());
        assert_eq!((silent.unknown, silent.usd), (1, None));
        assert_eq!(settle(&UsageReport::default(), Some(&Price::FREE)).usd, Some(0.0));
    }
}
