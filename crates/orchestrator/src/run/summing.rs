//! The last word on a run out of what the scheduler, the board and earlier takes know.

use super::start::RunHandle;
use crate::addr::StepAddr;
use crate::journal::record::RunStatus;
use crate::report::run_report::{RunReport, SCHEMA, StepDenial, StepReport};
use crate::scheduler::{NodeStanding, RunFinish, StepStanding};
use claw_kernel::clock;
use claw_kernel::ids::RunId;
use claw_providers::usage::Usage;
use std::collections::HashMap;
use std::path::Path;

/// What a person types to go on with a run.
pub fn resume_command(workflow: &Path, run: RunId) -> String {
    format!("claw run {} --resume={run}", quoted(&workflow.display().to_string()))
}

/// What the run came to.
pub(super) fn report(run: &RunHandle, finish: RunFinish) -> RunReport {
    let RunFinish { end, nodes } = finish;
    let usage = nodes.iter().flat_map(|node| &node.steps).fold(run.spent, |sum, step| sum.plus(&step.usage));
    let denials = nodes.iter().flat_map(|node| &node.steps).flat_map(|step| {
        step.denials.iter().map(|denial| StepDenial { step: step.addr.clone(), denial: denial.clone() })
    });
    let mut notes = run.notes.clone();
    notes.extend(end.reason);
    let resume = match end.status {
        RunStatus::Succeeded => None,
        RunStatus::Running
        | RunStatus::Failed
        | RunStatus::Partial
        | RunStatus::Paused
        | RunStatus::Stopped
        | RunStatus::Cancelled
        | RunStatus::Interrupted => Some(match run.session {
            Some(session) => format!("claw --resume {session}"),
            None => resume_command(&run.plan.file, run.id),
        }),
    };
    let mut steps: Vec<StepReport> = nodes.iter().flat_map(|node| steps_of(run, node)).collect();
    sum_up_groups(&mut steps);
    RunReport {
        schema: SCHEMA,
        run_id: run.id,
        workflow: run.plan.name.clone(),
        status: end.status,
        exit_code: end.exit_code,
        result: end.result,
        permission_denials: denials.collect(),
        steps,
        usage,
        total_cost_usd: usage.usd,
        resume,
        notes,
        folder: run.folder.clone(),
        elapsed: clock::now().since(run.started),
    }
}

/// The steps of a node; one that was skipped, or never came so far, stands for itself.
fn steps_of(run: &RunHandle, node: &NodeStanding) -> Vec<StepReport> {
    if !node.steps.is_empty() || run.session.is_some() {
        return node.steps.iter().map(|step| step_report(run, step)).collect();
    }
    vec![StepReport {
        step: StepAddr::node(node.id.clone()),
        status: node.state,
        attempts: 0,
        agent_id: None,
        error: node.error.clone(),
        error_class: None,
        usage: None,
        output_file: None,
        seconds: None,
    }]
}

fn step_report(run: &RunHandle, step: &StepStanding) -> StepReport {
    let row = run.board().row(&step.addr);
    let seconds = row.and_then(|row| Some(row.ended?.since(row.started?).as_secs_f64()));
    StepReport {
        step: step.addr.clone(),
        status: step.state,
        attempts: step.attempts,
        agent_id: step.agent.clone(),
        error: step.error.clone(),
        error_class: step.class,
        usage: step.agent.is_some().then_some(step.usage),
        output_file: step.file.clone(),
        seconds,
    }
}

/// What stands in a group was spent by the group too. Its steps count for the run, the group does not.
fn sum_up_groups(steps: &mut [StepReport]) {
    let mut spent: HashMap<StepAddr, Usage> = HashMap::new();
    for step in &*steps {
        for (above, usage) in step.step.above().into_iter().zip(std::iter::repeat(step.usage)) {
            if let Some(usage) = usage {
                let sum = spent.entry(above).or_insert(Usage::NOTHING);
                *sum = sum.plus(&usage);
            }
        }
    }
    for step in steps.iter_mut().filter(|step| step.agent_id.is_none() && step.usage.is_none()) {
        step.usage = spent.get(&step.step).copied();
    }
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'_' | b'-' | b'=' | b'+');
    if !word.is_empty() && word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
