//! `claw runs list`: what is on disk, read without taking a run.

use super::found::runs;
use crate::args::{Format, ModelsFlags};
use crate::commands::run::folder_error;
use crate::error::ExpectedError;
use crate::terminal::{figures, say, write_stdout};
use claw_kernel::visible::visible_line;
use claw_orchestrator::rundir::RunSummary;
use serde_json::{Value, json};
use std::fmt::Write;

/// Lists them, newest first.
///
/// # Errors
/// State that cannot be read, standard output.
pub(super) fn run(flags: &ModelsFlags) -> Result<(), ExpectedError> {
    let runs = runs(flags)?;
    let all = runs.list().map_err(|error| folder_error(&error))?;
    if flags.output_format != Format::Text {
        let data: Vec<Value> = all.iter().map(summary_json).collect();
        return write_stdout(format!("{}\n", Value::Array(data)));
    }
    if all.is_empty() {
        say(&format!("no runs in {}\n", runs.folder().display()));
        return Ok(());
    }
    let mut out = format!("{:<26}  {:<11}  {:<24}  {:>8}  workflow\n", "run", "status", "created", "cost");
    for run in &all {
        let cost = run.usage.map(|usage| figures::money(usage.usd)).unwrap_or_default();
        let _ = writeln!(
            out,
            "{:<26}  {:<11}  {:<24}  {cost:>8}  {}",
            run.file.run_id.to_string(),
            run.status.as_str(),
            run.file.created_at.to_string(),
            visible_line(&run.file.name),
        );
    }
    write_stdout(out)
}

/// A run for programs.
pub(super) fn summary_json(run: &RunSummary) -> Value {
    json!({
        "run_id": run.file.run_id,
        "name": run.file.name,
        "workflow": run.file.workflow,
        "status": run.status.as_str(),
        "exit_code": run.exit_code,
        "created_at": run.file.created_at,
        "ended_at": run.ended,
        "usage": run.usage,
        "folder": run.run.root(),
    })
}
