//! The run and the step that the user named, and what is said when an order is done.

use crate::args::{Format, ModelsFlags};
use crate::commands::run::folder_error;
use crate::error::ExpectedError;
use crate::services::{folder, moved_runs};
use crate::terminal::write_stdout;
use claw_kernel::ids::RunId;
use claw_orchestrator::addr::{AddrError, StepAddr};
use claw_orchestrator::rundir::{RunDir, RunFile, Runs, project_top};
use serde_json::json;

/// A run on disk.
pub(super) struct Found {
    /// Its folder.
    pub run: RunDir,
    /// `run.json`.
    pub file: RunFile,
}

/// The folder of runs.
pub(super) fn runs(flags: &ModelsFlags) -> Result<Runs, ExpectedError> {
    Ok(Runs::of_project(&project_top(&folder(flags.cwd.as_deref())?), moved_runs().as_deref()))
}

/// By id, a part of it, or `latest`.
pub(super) fn find(flags: &ModelsFlags, wanted: &str) -> Result<Found, ExpectedError> {
    let runs = runs(flags)?;
    let found = if wanted == "latest" {
        match runs.ids().map_err(|error| folder_error(&error))?.first() {
            Some(id) => runs.open(*id),
            None => runs.find(wanted),
        }
    } else {
        runs.find(wanted)
    };
    let (run, file) = found.map_err(|error| folder_error(&error))?;
    Ok(Found { run, file })
}

/// An address as typed.
pub(super) fn step(typed: &str, run: RunId) -> Result<StepAddr, ExpectedError> {
    typed.parse().map_err(|error: AddrError| ExpectedError::NotFound {
        message: error.to_string(),
        hint: format!("`claw runs show {run}` lists its steps"),
    })
}

/// Says that an order is done.
pub(super) fn done(flags: &ModelsFlags, run: RunId, text: &str) -> Result<(), ExpectedError> {
    match flags.output_format {
        Format::Text => write_stdout(format!("{text}\n")),
        Format::Json | Format::StreamJson => {
            write_stdout(format!("{}\n", json!({ "run_id": run, "done": true, "text": text })))
        }
    }
}
