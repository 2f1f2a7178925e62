//! `claw runs show`: one run, or one step of it, read without taking the run.

use super::found::{Found, find};
use crate::args::{Format, GraphForm, ShowFlags};
use crate::commands::run::folder_error;
use crate::commands::workflow::style;
use crate::error::{ExpectedError, exit};
use crate::terminal::{figures, write_answer, write_stdout};
use claw_kernel::visible::visible_line;
use claw_orchestrator::addr::StepAddr;
use claw_orchestrator::journal::record::OutputRef;
use claw_orchestrator::run::resume_command;
use claw_orchestrator::rundir::{RunDetail, RunDir, StepDetail, StepSummary};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// Files of an attempt that are listed.
const MOST_FILES: usize = 30;

/// Shows it.
///
/// # Errors
/// A run or step that is not there, state that cannot be read, standard output.
pub(super) fn run(flags: &ShowFlags) -> Result<(), ExpectedError> {
    let Found { run, file } = find(flags.rest(), &flags.run)?;
    match &flags.step {
        None => {
            let detail = RunDetail::of(run, file).map_err(|error| folder_error(&error))?;
            if let Some(form) = flags.graph {
                return graph(&detail, form, flags.rest().output_format);
            }
            match flags.rest().output_format {
                Format::Text => write_answer(&run_text(&detail)),
                Format::Json | Format::StreamJson => write_stdout(format!("{}\n", run_json(&detail))),
            }
        }
        Some(step) => {
            let step: StepAddr = super::found::step(step, file.run_id)?;
            let detail = StepDetail::of(&run, &step).map_err(|error| folder_error(&error))?;
            match flags.rest().output_format {
                Format::Text => write_answer(&step_text(&run, &detail)),
                Format::Json | Format::StreamJson => write_stdout(format!("{}\n", step_json(&run, &detail))),
            }
        }
    }
}

/// Its graph with how each node stands.
fn graph(detail: &RunDetail, form: GraphForm, format: Format) -> Result<(), ExpectedError> {
    let text = detail.graph(style(form)).ok_or_else(|| ExpectedError::Run {
        message: format!("the plan of run {} cannot be read", detail.summary.file.run_id),
        code: exit::STATE,
        hint: Some("without --graph its steps are listed from the journal".to_owned()),
    })?;
    match format {
        Format::Text => write_answer(&text),
        Format::Json | Format::StreamJson => {
            let standings = detail.standings();
            let paths = detail.drawing.iter().flat_map(|drawing| drawing.paths());
            let nodes: Vec<Value> = paths
                .map(|path| {
                    let states: serde_json::Map<String, Value> = standings
                        .get(path)
                        .into_iter()
                        .flatten()
                        .map(|(state, count)| ((*state).to_owned(), json!(count)))
                        .collect();
                    json!({ "node": path, "steps": states })
                })
                .collect();
            let mut value = run_json(detail);
            let form = form.word();
            value["graph"] = json!({ "form": form, "text": text, "nodes": nodes });
            write_stdout(format!("{value}\n"))
        }
    }
}

/// A run for people.
pub(super) fn run_text(detail: &RunDetail) -> String {
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
    if let Some(workflow) = summary.file.workflow.as_ref().filter(|_| detail.is_answered) {
        let resume = resume_command(workflow, summary.file.run_id);
        let _ = writeln!(out, "all its questions are answered; go on with it: {resume}");
    }
    for (step, question) in &detail.questions {
        let _ = writeln!(
            out,
            "{step} asks: {} (claw runs answer {} {step} {})",
            visible_line(&question.message),
            summary.file.run_id,
            question.choices.join("|")
        );
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
        if let Some(folder) = &attempt.folder {
            files(&mut out, folder);
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

/// What lies in the folder of an attempt.
fn files(out: &mut String, folder: &Path) {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let mut names: Vec<(String, u64)> = entries
        .filter_map(|entry| {
            let meta = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
            Some((entry.file_name().to_string_lossy().into_owned(), meta.len()))
        })
        .collect();
    names.sort();
    for (name, bytes) in names.iter().take(MOST_FILES) {
        let _ = writeln!(out, "  {} ({bytes} bytes)", visible_line(name));
    }
    if names.len() > MOST_FILES {
        let _ = writeln!(out, "  and {} more files", names.len() - MOST_FILES);
    }
}

/// A run for programs.
pub(super) fn run_json(detail: &RunDetail) -> Value {
    let mut value = super::list::summary_json(&detail.summary);
    value["takes"] = json!(detail.takes);
    value["usage"] = json!(detail.usage);
    value["questions"] = detail
        .questions
        .iter()
        .map(|(step, question)| json!({ "step": step, "question": question }))
        .collect();
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
