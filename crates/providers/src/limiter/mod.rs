//! What all requests of one account share: requests in flight, the pause that the service asked for, the retry budget.

mod actor;
mod breaker;
mod core;
mod headers;

pub use actor::{Gate, Limiter, LimiterGone, Limiters, Permit, Place};
pub use breaker::{BreakerPolicy, Shut, Stand};
pub use headers::exhausted_for;
