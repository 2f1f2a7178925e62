//! Everything before the first step, and the order of it: nothing is written while anything can still be wrong.

use super::watch::{Watch, Watched};
use super::{ask, detach, end};
use crate::args::{Format, Rerun, RunFlags};
use crate::commands::runtime::{block_on, block_on_task};
use crate::commands::workflow::style;
use crate::commands::{plan_file, trusting};
use crate::error::{ExpectedError, exit};
use crate::services::{Setup, config_home, moved_runs, read_named, runtime_folder, state_folder};
use crate::signals::{Ending, Signals};
use crate::terminal::{Question, TerminalPresenter, leave_session, somebody_to_ask, write_stdout};
use claw_agents::permission::{Asker, NobodyToAsk, Permission, Permissions, Reach};
use claw_agents::settings::Places;
use claw_orchestrator::plan::model::{Node, Plan};
use claw_orchestrator::run::{Again, ResumeFrom, RunOptions, RunServices, StubError, Stubs};
use claw_orchestrator::rundir::{Runs, project_top};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Runs a workflow.
///
/// # Errors
/// Everything that keeps it from starting; how the run itself ends is an exit code.
pub fn run(flags: &RunFlags) -> Result<u8, ExpectedError> {
    if flags.detached {
        leave_session();
    }
    if flags.detach && detach::reads_stdin(flags) {
        return block_on(detach::start(flags));
    }
    let mut setup = Setup::read_with(flags.cwd.as_deref(), &flags.settings)?;
    let asks = somebody_to_ask() && !flags.no_ask;
    if asks && !flags.plan && flags.graph.is_none() {
        trusting::ask(&mut setup)?;
    }
    setup.origin.tell(&setup.settings);
    setup.tool_flags(&flags.allowed_tools, &flags.disallowed_tools)?;
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
    let stubs = stubs(&setup, &plan, flags)?;
    if stubs.is_none() {
        check_models(&setup, &plan, forced_model(&setup, flags).as_deref())?;
        check_prices(&setup, &plan, flags)?;
        if asks {
            ask::before_a_big_run(&setup, &plan, flags)?;
        }
    }
    if flags.detach {
        return block_on(detach::start(flags));
    }
    block_on_task(go(setup, plan, flags.clone(), Start { permission, asks, stubs }))
}

fn print_plan(plan: &Plan, format: Format) -> Result<u8, ExpectedError> {
    match format {
        Format::Text => write_stdout(plan.text())?,
        Format::Json | Format::StreamJson => write_stdout(format!("{}\n", plan.json()))?,
    }
    Ok(exit::OK)
}

/// What was decided before the runtime began.
struct Start {
    permission: Permission,
    asks: bool,
    stubs: Option<Arc<Stubs>>,
}

/// The answers of `--stub`, all of which fit.
fn stubs(setup: &Setup, plan: &Plan, flags: &RunFlags) -> Result<Option<Arc<Stubs>>, ExpectedError> {
    let Some(file) = &flags.stub else { return Ok(None) };
    let text = read_named(file, &setup.path(file))?;
    let stubs = Stubs::parse(&text).and_then(|stubs| stubs.check(plan).map(|()| stubs));
    let unfit = |error: StubError| ExpectedError::Usage {
        message: format!("{}: {error}", file.display()),
        hint: Some(
            "a stub file holds an answer for each agent: by node, by path (`fix/edit`) or by step (`look=a`)"
                .to_owned(),
        ),
    };
    stubs.map(|stubs| Some(Arc::new(stubs))).map_err(unfit)
}

async fn go(mut setup: Setup, plan: Plan, flags: RunFlags, start: Start) -> Result<u8, ExpectedError> {
    let Start { permission, asks, stubs } = start;
    for (name, most) in &plan.limits.providers {
        setup.config.limit(name, *most);
    }
    setup.config.hold_back();
    let mut signals = Signals::listen()?;
    let (asker, questions) = asker(asks, setup.origin.loaded.places.clone());
    let logs = setup.logs()?;
    let file = setup.path(&plan.file);
    let file = file.canonicalize().unwrap_or(file);
    let protected = vec![file, config_home(), state_folder()];
    let mut agents = setup.agent_services(asker, logs.clone(), protected, secret_inputs(&plan))?;
    if let Some(stubs) = &stubs {
        agents.model = Arc::<Stubs>::clone(stubs);
    }
    let agents = Arc::new(agents);
    let runs = Runs::of_project(&project_top(&setup.cwd), moved_runs().as_deref());
    let options = RunOptions { stubs, ..options(&setup, &flags, permission, asks) };
    let services = RunServices { agents: Arc::clone(&agents), logs };
    let handle = tokio::select! {
        started = claw_orchestrator::run::start(services, Arc::new(plan), options) => {
            started.map_err(|error| end::failed(&error))?
        }
        signal = signals.next() => return Ok(Ending::exit_code(signal)),
    };
    if flags.detached {
        detach::began(&handle)?;
    }
    let (folder, _) = runs.open(handle.id).map_err(|error| end::folder(&error))?;
    let danger = (permission.reach == Reach::DangerFullAccess).then(|| permission.to_string());
    let watched = Watch::new(&flags, danger, questions).run(handle, &mut signals).await;
    agents.mcp.stop().await;
    agents.sandboxes.close();
    match watched {
        Watched::Ended { report, ending, out } => end::tell((*report)?, ending, out, &flags).await,
        Watched::Killed(ending) => Ok(ending.exit_code()),
        Watched::Leaves(run) => detach::hand_over(run, &folder, &flags).await,
    }
}

/// They reach the environment of commands and nothing else.
fn secret_inputs(plan: &Plan) -> Vec<String> {
    let secret = plan.inputs.values().filter(|input| input.secret);
    secret.map(|input| input.value.as_str().map_or_else(|| input.value.to_string(), str::to_owned)).collect()
}

/// `places`: whose local settings get an answer for always.
fn asker(asks: bool, places: Places) -> (Arc<dyn Asker>, Option<mpsc::Receiver<Question>>) {
    if asks {
        let (presenter, questions) = TerminalPresenter::new();
        (Arc::new(Permissions::new(Arc::new(presenter), Some(places))), Some(questions))
    } else {
        (Arc::new(NobodyToAsk), None)
    }
}

fn options(setup: &Setup, flags: &RunFlags, permission: Permission, asks: bool) -> RunOptions {
    let workspace = project_top(&setup.cwd);
    let again = match (&flags.from, &flags.only, flags.rerun) {
        (Some(step), _, _) => Some(Again::From(step.clone())),
        (None, Some(step), _) => Some(Again::Only(step.clone())),
        (None, None, Some(Rerun::Failed)) => Some(Again::Failed),
        (None, None, None) => None,
    };
    RunOptions {
        runs: Runs::of_project(&workspace, moved_runs().as_deref()),
        workspace,
        worktrees: state_folder().join("worktrees"),
        secret_key: state_folder().join("secret.key"),
        resume: match &flags.resume {
            Some(Some(run)) => Some(ResumeFrom::Run(run.clone())),
            Some(None) => Some(ResumeFrom::Newest),
            // What is to run again is something that ran.
            None => again.as_ref().map(|_| ResumeFrom::Newest),
        },
        again,
        stubs: None,
        accept_damage: flags.accept_damage,
        max_usd: flags.max_usd,
        permission,
        model: forced_model(setup, flags),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        can_ask: asks || flags.detached && !flags.no_ask,
        runtime_dir: runtime_folder(),
    }
}

/// The model that the flag or the policy names for agents without one.
fn forced_model(setup: &Setup, flags: &RunFlags) -> Option<String> {
    flags.model.as_deref().map(|flag| setup.model(Some(flag)))
}

/// With a ceiling of dollars on the command line every model has a price, or the file lets it pass.
fn check_prices(setup: &Setup, plan: &Plan, flags: &RunFlags) -> Result<(), ExpectedError> {
    let lets_pass = plan.budget.as_ref().is_some_and(|budget| budget.tokens_only);
    if flags.max_usd.is_none() || lets_pass {
        return Ok(());
    }
    let default = forced_model(setup, flags).unwrap_or_else(|| setup.config.default_model());
    let has_price = |model: &str| match setup.config.route(model) {
        Ok(route) => route.profile.info(&route.model).price.is_some(),
        // What cannot be asked was said.
        Err(_) => true,
    };
    for (node, agent) in plan.nodes.iter().filter_map(|node| Some((node, node.agent()?))) {
        let own = if agent.models.is_empty() { &agent.definition.models } else { &agent.models };
        let first = if flags.model.is_some() { None } else { own.first() };
        let model = first.unwrap_or(&default);
        if !has_price(model) {
            return Err(ExpectedError::Usage {
                message: format!("the price of `{model}` (node `{}`) is not known, and --max-usd holds", node.id),
                hint: Some(
                    "state its price in a profile, or write `unknown_price = \"tokens_only\"` and a ceiling of `tokens` in [budget]"
                        .to_owned(),
                ),
            });
        }
    }
    Ok(())
}

/// Every agent has a model that can be asked, before anything is sent or written.
fn check_models(setup: &Setup, plan: &Plan, flag: Option<&str>) -> Result<(), ExpectedError> {
    for agent in plan.nodes.iter().filter_map(Node::agent) {
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
