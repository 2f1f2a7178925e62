//! What all requests of one account share: requests in flight, the pause that the service asked for, the retry budget.

mod actor;
mod core;
mod headers;

pub use actor::{Limiter, LimiterGone, Limiters, Permit};
pub use headers::exhausted_for;
