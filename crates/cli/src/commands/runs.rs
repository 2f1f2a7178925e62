//! `claw runs list | show`: what is on disk, read without taking the run.

use super::run::folder_error;
use crate::args::{Format, ModelsFlags, RunsCommand, ShowFlags};
use crate::error::{ExpectedError, exit};
use crate::services::{Setup, moved_runs};
use crate::terminal::{figures, say, write_answer, write_stdout};
use claw_kernel::visible::visible_line;
use claw_orchestrator::addr::StepAddr;
use claw_orchestrator::journal::record::OutputRef;
use claw_orchestrator::rundir::{
    RunDetail, RunDir, RunFile, RunSummary, Runs, StepDetail, StepSummary, project_top,
};
use serde_json::{Value, json};
use std::fmt::Write;

/// Runs one of them.
///
/// # Errors
/// A run or step that is not there, state that cannot be read, standard output.
pub fn run(command: &RunsCommand) -> Result<u8, ExpectedError> {
    match command {
        RunsCommand::List(flags) => list(flags)?,
        RunsCommand::Show(flags) => show(flags)?,
    }
    Ok(exit::OK)
}

fn runs(flags: &ModelsFlags) -> Result<Runs, ExpectedError> {
    let setup = Setup::read(flags.cwd.as_deref())?;
    Ok(Runs::of_project(&project_top(&setup.cwd), moved_runs().as_deref()))
}

fn list(flags: &ModelsFlags) -> Result<(), ExpectedError> {
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

fn show(flags: &ShowFlags) -> Result<(), ExpectedError> {
    let runs = runs(flags.rest())?;
    let (run, file) = find(&runs, &flags.run)?;
    match &flags.step {
        None => {
            let detail = RunDetail::of(run, file).map_err(|error| folder_error(&error))?;
            match flags.rest().output_format {
                Format::Text => write_answer(&run_text(&detail)),
                Format::Json | Format::StreamJson => write_stdout(format!("{}\n", run_json(&detail))),
            }
        }
        Some(step) => {
            let step: StepAddr = step.parse().map_err(|error: claw_orchestrator::addr::AddrError| {
                ExpectedError::NotFound {
                    message: error.to_string(),
                    hint: format!("`claw runs show {}` lists its steps", file.run_id),
                }
            })?;
            let detail = StepDetail::of(&run, &step).map_err(|error| folder_error(&error))?;
            match flags.rest().output_format {
                Format::Text => write_answer(&step_text(&run, &detail)),
                Format::Json | Format::StreamJson => write_stdout(format!("{}\n", step_json(&run, &detail))),
            }
        }
    }
}

fn find(runs: &Runs, wanted: &str) -> Result<(RunDir, RunFile), ExpectedError> {
    let found = if wanted == "latest" {
        match runs.ids().map_err(|error| folder_error(&error))?.first() {
            Some(id) => runs.open(*id),
            None => runs.find(wanted),
        }
    } else {
        runs.find(wanted)
    };
    found.map_err(|error| folder_error(&error))
}

fn run_text(detail: &RunDetail) -> String {
    let summary = &detail.summary;
    let mut out = format!(
        "run {} · {} · {}\n",
        summary.file.run_id,
        visible_line(&summary.file.name),
        summary.status.as_str()
    );
    if let Some(workflow) = &summary.file.workflow {
        let _ = writeln!(out, "workflow: {}", workflow.display());
    }
    let _ = writeln!(out, "created: {} · takes: {}", summary.file.created_at, detail.takes);
    let usage = &detail.usage;
    let _ = writeln!(out, "spent: {} tokens · {}", figures::tokens(usage.total()), figures::money(usage.usd));
    if let Some(owner) = &summary.owner {
        let _ = writeln!(out, "held by process {} since {}", owner.pid, owner.since);
    }
    if let Some(pause) = &detail.pause {
        let _ = writeln!(out, "paused: {}", visible_line(&pause.reason));
    }
    if let Some(torn) = &detail.torn {
        let _ = writeln!(out, "the journal's last line is torn: {} bytes at {}", torn.bytes, torn.offset);
    }
    let _ = writeln!(out, "folder: {}\n", summary.run.root().display());
    let name = detail.steps.iter().map(|step| step.step.to_string().len()).max().unwrap_or(4).clamp(4, 60);
    let _ = writeln!(out, "{:<name$}  {:<11}  attempts     time   tokens     cost", "step", "status");
    for step in &detail.steps {
        let _ = writeln!(out, "{}", step_line(step, name).trim_end());
    }
    out
}

fn step_line(step: &StepSummary, name: usize) -> String {
    let time = step.seconds.filter(|s| s.is_finite() && *s >= 0.0).map(std::time::Duration::from_secs_f64);
    let usage = step.usage.filter(|usage| usage.total() > 0);
    let mut line = format!(
        "{:<name$}  {:<11}  {:>8}  {:>7}  {:>7}  {:>7}",
        step.step.to_string(),
        step.status.as_str(),
        step.attempts,
        time.map(figures::took).unwrap_or_default(),
        usage.map(|usage| figures::tokens(usage.total())).unwrap_or_default(),
        usage.map(|usage| figures::money(usage.usd)).unwrap_or_default(),
    );
    if let Some(error) = &step.error {
        let short: String = error.chars().take(200).collect();
        let _ = write!(line, "  {}", visible_line(&short));
    }
    line
}

fn step_text(run: &RunDir, detail: &StepDetail) -> String {
    let summary = &detail.summary;
    let mut out = format!("step {} of run {} · {}\n", summary.step, run.id(), summary.status.as_str());
    if let Some(agent) = &summary.agent {
        let _ = writeln!(out, "agent: {agent}");
    }
    if let Some(error) = &summary.error {
        let _ = writeln!(out, "error: {}", visible_line(error));
    }
    for attempt in &detail.attempts {
        let state = attempt.state.map_or("open", claw_orchestrator::journal::record::EndState::as_str);
        let _ = write!(out, "attempt {}: {state}", attempt.number);
        if let Some(folder) = &attempt.folder {
            let _ = write!(out, " · {}", folder.display());
        }
        out.push('\n');
        if let Some(error) = &attempt.error {
            let _ = writeln!(out, "  {}", visible_line(error));
        }
    }
    for denial in &detail.denials {
        let _ = writeln!(
            out,
            "denied: {} {}: {}",
            denial.tool,
            visible_line(&denial.subject),
            visible_line(&denial.reason)
        );
    }
    for doubt in &detail.in_doubt {
        let _ = writeln!(out, "in doubt: {}", visible_line(&format!("{doubt:?}")));
    }
    match &detail.output {
        Some(OutputRef::Inline(value)) => {
            let text = value.as_str().map_or_else(|| format!("{value:#}"), str::to_owned);
            let _ = writeln!(out, "\n{}", claw_kernel::visible::visible(&text));
        }
        Some(OutputRef::File { path, bytes, .. }) => {
            let _ = writeln!(out, "\noutput: {} ({bytes} bytes)", run.root().join(path).display());
        }
        None => {}
    }
    out
}

fn summary_json(run: &RunSummary) -> Value {
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

fn run_json(detail: &RunDetail) -> Value {
    let mut value = summary_json(&detail.summary);
    value["takes"] = json!(detail.takes);
    value["usage"] = json!(detail.usage);
    value["steps"] = detail.steps.iter().map(step_summary_json).collect();
    value
}

fn step_summary_json(step: &StepSummary) -> Value {
    json!({
        "step": step.step,
        "status": step.status.as_str(),
        "attempts": step.attempts,
        "agent_id": step.agent,
        "error": step.error,
        "error_class": step.class,
        "usage": step.usage,
        "seconds": step.seconds,
        "folder": step.folder,
    })
}

fn step_json(run: &RunDir, detail: &StepDetail) -> Value {
    let mut value = step_summary_json(&detail.summary);
    value["run_id"] = json!(run.id());
    value["output"] = json!(detail.output);
    value["denials"] = json!(detail.denials);
    value["tries"] = detail
        .attempts
        .iter()
        .map(|attempt| {
            json!({
                "attempt": attempt.number,
                "state": attempt.state,
                "error": attempt.error,
                "folder": attempt.folder,
                "manifest": attempt.manifest,
            })
        })
        .collect();
    value
}
