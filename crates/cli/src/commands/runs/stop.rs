//! `claw runs stop`: ends a run from outside.

use super::found::{done, find};
use super::owner;
use crate::args::OneRunFlags;
use crate::error::{ExpectedError, exit};
use claw_orchestrator::control::Order;
use claw_orchestrator::rundir::until_free;
use std::time::Duration;

/// From the end of a run to the end of its process.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Stops it, and returns when it can be gone on with.
///
/// # Errors
/// Nobody works on it.
pub(super) async fn run(flags: &OneRunFlags) -> Result<u8, ExpectedError> {
    let found = find(flags.rest(), &flags.run)?;
    let run = found.run.clone();
    owner::order(found, &Order::Stop).await?;
    // The last files are written after the last record; whoever goes on at once is not held up by them.
    until_free(&run, LAST_WORDS).await;
    done(flags.rest(), run.id(), &format!("run {} is stopped", run.id()))?;
    Ok(exit::OK)
}
