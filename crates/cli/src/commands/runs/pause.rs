//! `claw runs pause`: nothing new starts.

use super::found::{done, find};
use super::owner;
use crate::args::OneRunFlags;
use crate::error::{ExpectedError, exit};
use claw_orchestrator::control::Order;

/// Pauses it.
///
/// # Errors
/// Nobody works on it, or it is stopping already.
pub(super) async fn run(flags: &OneRunFlags) -> Result<u8, ExpectedError> {
    let found = find(flags.rest(), &flags.run)?;
    let id = found.run.id();
    owner::order(found, &Order::Pause { reason: None }).await?;
    done(flags.rest(), id, &format!("run {id} pauses: nothing new starts, what runs may finish"))?;
    Ok(exit::OK)
}
