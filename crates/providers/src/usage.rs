//! What a request cost.
//!
//! Owns token counts and money. Must not know who spends them.

use serde::{Deserialize, Serialize};

/// Tokens of one or several requests. `input` does not count cached tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Input tokens that were neither read from nor written to a cache.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens read from a cache.
    pub cache_read: u64,
    /// Input tokens written to a cache.
    pub cache_write: u64,
    /// Money; `None` where any part of it has no known price.
    pub usd: Option<f64>,
    /// Requests whose usage the service did not tell.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unknown: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Usage {
    /// Nothing spent: zero tokens and a known price of zero.
    pub const NOTHING: Self =
        Self { input: 0, output: 0, cache_read: 0, cache_write: 0, usd: Some(0.0), unknown: 0 };

    /// All tokens.
    pub fn total(&self) -> u64 {
        self.input + self.output + self.cache_read + self.cache_write
    }

    /// The sum; money is unknown where either side's is.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            input: self.input + other.input,
            output: self.output + other.output,
            cache_read: self.cache_read + other.cache_read,
            cache_write: self.cache_write + other.cache_write,
            usd: self.usd.zip(other.usd).map(|(a, b)| a + b),
            unknown: self.unknown + other.unknown,
        }
    }
}
