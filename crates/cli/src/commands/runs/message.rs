//! `claw runs message`: says something to a running agent.

use super::found::{done, find, step};
use super::owner;
use crate::args::MessageFlags;
use crate::error::{ExpectedError, exit};
use claw_orchestrator::control::Order;

/// Says it.
///
/// # Errors
/// Nobody works on the run, or no agent runs there.
pub(super) async fn run(flags: &MessageFlags) -> Result<u8, ExpectedError> {
    let found = find(flags.rest(), &flags.run)?;
    let id = found.run.id();
    let step = step(&flags.step, id)?;
    let text = format!("{step} hears it at its next step");
    owner::order(found, &Order::Message { step, text: flags.text.clone() }).await?;
    done(flags.rest(), id, &text)?;
    Ok(exit::OK)
}
