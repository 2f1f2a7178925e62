//! Everything before the first step, and the order of it: nothing is written while anything can still be wrong.

use super::end;
use super::watch::{Watch, Watched};
use crate::args::{Format, RunFlags};
use crate::commands::plan_file;
use crate::commands::runtime::block_on;
use crate::commands::workflow::style;
use crate::error::{ExpectedError, exit};
use crate::services::{Setup, config_home, moved_runs, state_folder};
use crate::signals::{Ending, Signals};
use crate::terminal::{Question, TerminalAsker, confirm, somebody_to_ask, write_stdout};
use claw_agents::permission::{Asker, NobodyToAsk, Permission, Reach};
use claw_orchestrator::plan::model::{AgentWork, EachSource, MergeStrategy, Node, Plan, Work};
use claw_orchestrator::run::{ResumeFrom, RunOptions, RunServices};
use claw_orchestrator::rundir::{Runs, project_top};
use std::sync::Arc;
use tokio::sync::mpsc;

/// More agents than these are worth a question.
const MANY_AGENTS: usize = 25;

/// Runs a workflow.
///
/// # Errors
/// Everything that keeps it from starting; how the run itself ends is an exit code.
pub fn run(flags: &RunFlags) -> Result<u8, ExpectedError> {
    let setup = Setup::read(flags.cwd.as_deref())?;
    let permission = setup.permission(flags.permission_mode, flags.allow_root)?;
    let file = setup.named(&flags.file);
    let mut plan = plan_file::load(&setup, &file, flags.inputs(), flags.output_format)?;
    if let Some(concurrency) = flags.concurrency {
        plan.limits.concurrency = concurrency;
    }
    if flags.plan {
        return print_plan(&plan, flags.output_format);
    }
    if let Some(form) = flags.graph {
        write_stdout(plan.graph(style(form)))?;
        return Ok(exit::OK);
    }
    check_models(&setup, &plan, flags.model.as_deref())?;
    let asks = somebody_to_ask() && !flags.no_ask;
    let agents = agents_known(&plan);
    if agents > MANY_AGENTS
        && asks
        && !flags.yes
        && !confirm(&format!("{} starts {agents} agents or more. Go on?", plan.name))
    {
        return Err(ExpectedError::Declined);
    }
    block_on(go(setup, plan, flags, permission, asks))
}

fn print_plan(plan: &Plan, format: Format) -> Result<u8, ExpectedError> {
    match format {
        Format::Text => write_stdout(plan.text())?,
        Format::Json | Format::StreamJson => write_stdout(format!("{}\n", plan.json()))?,
    }
    Ok(exit::OK)
}

async fn go(
    mut setup: Setup,
    plan: Plan,
    flags: &RunFlags,
    permission: Permission,
    asks: bool,
) -> Result<u8, ExpectedError> {
    for (name, most) in &plan.limits.providers {
        setup.config.limit(name, *most);
    }
    let mut signals = Signals::listen()?;
    let (asker, questions) = asker(asks);
    let logs = setup.logs()?;
    let file = setup.path(&plan.file);
    let file = file.canonicalize().unwrap_or(file);
    let protected = vec![file, config_home(), state_folder()];
    let agents = Arc::new(setup.agent_services(asker, logs.clone(), protected, secret_inputs(&plan))?);
    let options = options(&setup, flags, permission);
    let services = RunServices { agents: Arc::clone(&agents), logs };
    let handle = tokio::select! {
        started = claw_orchestrator::run::start(services, Arc::new(plan), options) => {
            started.map_err(|error| end::failed(&error))?
        }
        signal = signals.next() => return Ok(Ending::exit_code(signal)),
    };
    let danger = (permission.reach == Reach::DangerFullAccess).then(|| permission.to_string());
    let watched = Watch::new(flags, danger, questions).run(handle, &mut signals).await;
    agents.sandboxes.close();
    match watched {
        Watched::Ended { report, ending, out } => end::tell((*report)?, ending, out, flags).await,
        Watched::Killed(ending) => Ok(ending.exit_code()),
    }
}

/// They reach the environment of commands and nothing else.
fn secret_inputs(plan: &Plan) -> Vec<String> {
    let secret = plan.inputs.values().filter(|input| input.secret);
    secret.map(|input| input.value.as_str().map_or_else(|| input.value.to_string(), str::to_owned)).collect()
}

fn asker(asks: bool) -> (Arc<dyn Asker>, Option<mpsc::Receiver<Question>>) {
    if asks {
        let (asker, questions) = TerminalAsker::new();
        (Arc::new(asker), Some(questions))
    } else {
        (Arc::new(NobodyToAsk), None)
    }
}

fn options(setup: &Setup, flags: &RunFlags, permission: Permission) -> RunOptions {
    let workspace = project_top(&setup.cwd);
    RunOptions {
        runs: Runs::of_project(&workspace, moved_runs().as_deref()),
        workspace,
        secret_key: state_folder().join("secret.key"),
        resume: flags.resume.as_ref().map(|which| match which {
            Some(run) => ResumeFrom::Run(run.clone()),
            None => ResumeFrom::Newest,
        }),
        accept_damage: flags.accept_damage,
        permission,
        model: flags.model.clone(),
        can_ask: false,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Every agent has a model that can be asked, before anything is sent or written.
fn check_models(setup: &Setup, plan: &Plan, flag: Option<&str>) -> Result<(), ExpectedError> {
    for agent in plan.nodes.iter().filter_map(agent_of) {
        if let Some(model) = flag {
            setup.check_model(model)?;
            continue;
        }
        let own = if agent.models.is_empty() { &agent.definition.models } else { &agent.models };
        if own.is_empty() {
            setup.check_model(&setup.config.default_model())?;
            continue;
        }
        // One of a fallback list is enough.
        let mut checked = own.iter().map(|model| setup.check_model(model));
        let first = checked.next().unwrap_or(Ok(()));
        if first.is_err() && !checked.any(|model| model.is_ok()) {
            return first;
        }
    }
    Ok(())
}

fn agent_of(node: &Node) -> Option<&AgentWork> {
    match &node.work {
        Work::Agent(agent) => Some(agent),
        Work::Merge(merge) => match &merge.strategy {
            MergeStrategy::Agent { agent, .. } => Some(agent),
            MergeStrategy::List
            | MergeStrategy::Concat
            | MergeStrategy::Dedupe { .. }
            | MergeStrategy::Git(_) => None,
        },
        Work::Command(_) | Work::Set { .. } | Work::Group(_) | Work::Gate(_) => None,
    }
}

/// Agents that the plan knows of; lists that are made while it runs count once.
fn agents_known(plan: &Plan) -> usize {
    let of = |node: &Node| match node.each.as_ref().map(|each| &each.source) {
        Some(EachSource::Static(items)) => items.len(),
        Some(
            EachSource::Items(_) | EachSource::Glob { .. } | EachSource::Lines(_) | EachSource::Jsonl(_),
        )
        | None => 1,
    };
    plan.nodes.iter().filter(|node| agent_of(node).is_some()).map(of).sum()
}
