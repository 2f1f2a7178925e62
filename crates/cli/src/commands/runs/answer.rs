//! `claw runs answer`: answers a question, with or without a process that works on the run.

use super::found::{done, find, step};
use super::owner::{failed, reach};
use crate::args::AnswerFlags;
use crate::commands::run::folder_error;
use crate::error::{ExpectedError, exit};
use claw_kernel::durable::LockFailed;
use claw_orchestrator::control::{self, ControlError, Order};
use claw_orchestrator::journal::record::{Answer, AnsweredBy};
use claw_orchestrator::run::resume_command;
use claw_orchestrator::rundir::RunDirError;

/// Answers it.
///
/// # Errors
/// The step does not ask, the choice is none of its choices, or another process has just taken the run.
pub(super) async fn run(flags: &AnswerFlags) -> Result<u8, ExpectedError> {
    let found = find(flags.rest(), &flags.run)?;
    let id = found.run.id();
    let step = step(&flags.step, id)?;
    let (choice, comment) = (flags.choice.clone(), flags.comment.clone());
    if let Some(owner) = reach(&found.run).await? {
        let order = Order::Answer { step: step.clone(), choice, comment };
        owner.order(&order).await.map_err(|error| failed(&error, id))?;
        done(flags.rest(), id, &format!("{step}: {}", flags.choice))?;
        return Ok(exit::OK);
    }
    let answer = Answer { choice, comment, by: AnsweredBy::Person };
    match control::answer(&found.run, &step, answer).await {
        Ok(()) => {}
        Err(ControlError::Folder(error @ RunDirError::Lock(LockFailed::Held { .. }))) => {
            return Err(folder_error(&error));
        }
        Err(error) => return Err(failed(&error, id)),
    }
    let next = match &found.file.workflow {
        Some(workflow) => format!("; go on: {}", resume_command(workflow, id)),
        None => String::new(),
    };
    done(flags.rest(), id, &format!("{step}: {}{next}", flags.choice))?;
    Ok(exit::OK)
}
