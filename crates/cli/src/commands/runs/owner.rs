//! The process that works on a run, and what is said where there is none.

use super::found::Found;
use crate::commands::run::folder_error;
use crate::error::{ExpectedError, exit};
use claw_kernel::ids::RunId;
use claw_orchestrator::control::{Connection, ControlError, Order};
use claw_orchestrator::run::resume_command;
use claw_orchestrator::rundir::{Holder, RunDir, RunSummary, holder, until_free};
use std::time::Duration;

/// How long somebody who holds a run without listening is waited for: one that ends, or one that writes an answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Times that is done.
const TRIES: u32 = 3;

/// Connects to the owner; `None`: nobody works on the run.
pub(super) async fn reach(run: &RunDir) -> Result<Option<Connection>, ExpectedError> {
    for _ in 0..TRIES {
        let owner = match holder(run) {
            Holder::Nobody => return Ok(None),
            Holder::Process(owner) => owner,
        };
        if let Some(socket) = owner.as_ref().and_then(|owner| owner.socket.as_ref())
            && let Ok(connection) = Connection::open(socket).await
        {
            return Ok(Some(connection));
        }
        if !until_free(run, PATIENCE).await {
            break;
        }
    }
    let who = match holder(run) {
        Holder::Nobody => return Ok(None),
        Holder::Process(Some(owner)) => format!("process {} since {}", owner.pid, owner.since),
        Holder::Process(None) => "another process".to_owned(),
    };
    Err(ExpectedError::Run {
        message: format!("run {} is held by {who}, which cannot be talked to", run.id()),
        code: exit::HELD,
        hint: Some("it may run for another user or on another machine; wait until it ends".to_owned()),
    })
}

/// Gives an order to the owner.
pub(super) async fn order(found: Found, order: &Order) -> Result<(), ExpectedError> {
    match reach(&found.run).await? {
        Some(connection) => connection.order(order).await.map_err(|error| failed(&error, found.run.id())),
        None => Err(nobody(found)),
    }
}

/// Nobody works on the run.
pub(super) fn nobody(found: Found) -> ExpectedError {
    let workflow = found.file.workflow.clone();
    let id = found.run.id();
    let summary = RunSummary::of(found.run, found.file);
    let hint = match workflow {
        Some(workflow) => format!("go on with it: {}", resume_command(&workflow, id)),
        None => format!("`claw runs show {id}` shows how it stands"),
    };
    ExpectedError::Run {
        message: format!("no process works on run {id} ({})", summary.status.as_str()),
        code: exit::FAILED,
        hint: Some(hint),
    }
}

/// What went wrong between the run and this process.
pub(super) fn failed(error: &ControlError, run: RunId) -> ExpectedError {
    let message = error.to_string();
    let (code, hint) = match error {
        ControlError::Folder(error) => return folder_error(error),
        ControlError::Refused { .. } => {
            (exit::FAILED, format!("`claw runs show {run}` shows its steps and what they wait for"))
        }
        ControlError::Unreachable { .. } | ControlError::Gone(_) => {
            (exit::FAILED, format!("`claw runs show {run}` shows how it stands"))
        }
        ControlError::Garbled(_) => (exit::FAILED, "it may be of another version of claw".to_owned()),
        ControlError::Journal(_) => {
            (exit::STATE, format!("`claw runs show {run}` tells whether its journal can be read"))
        }
    };
    ExpectedError::Run { message, code, hint: Some(hint) }
}
