//! Opens a session: services, the team of its agents, the lead.

use crate::args::TalkFlags;
use crate::error::{ExpectedError, exit};
use crate::services::{Setup, ToolFlags, config_home, moved_runs, runtime_folder, state_folder};
use crate::sessions::folders;
use claw_agents::lead::{Lead, LeadEvent, LeadOrders, LeadSetup};
use claw_agents::permission::{Asker, Permission};
use claw_agents::roles::lead;
use claw_agents::services::AgentServices;
use claw_agents::session::{OpenSession, Reference, SessionError};
use claw_kernel::durable::LogWriter;
use claw_kernel::ids::{AgentId, SessionId};
use claw_orchestrator::plan::session::SessionPlan;
use claw_orchestrator::plan::surroundings::Surroundings;
use claw_orchestrator::run::{RunOptions, RunServices, SessionTeam, TeamNews, TeamOptions};
use claw_orchestrator::rundir::{Runs, project_top};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// News that may wait: a slow screen slows the model's stream.
const QUEUE: usize = 256;
/// No provider byte and no tool running for so long ends a turn.
const IDLE: Duration = Duration::from_secs(300);

/// Which session is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A new one.
    New,
    /// This one, as the user names it.
    Known(String),
    /// A copy of this one.
    Copy(String),
}

/// What a session begins with.
#[derive(Clone, Debug)]
pub(super) struct Beginning {
    pub(super) flags: TalkFlags,
    pub(super) permission: Permission,
    /// As the flag or the settings say; a session that is gone on with has its own where no flag says otherwise.
    pub(super) model: String,
    pub(super) wanted: Wanted,
    pub(super) tools: ToolFlags,
}

/// An open session.
pub(super) struct Opened {
    pub(super) services: Arc<AgentServices>,
    pub(super) lead: Lead,
    pub(super) orders: LeadOrders,
    pub(super) news: mpsc::Receiver<LeadEvent>,
    pub(super) team: SessionTeam,
}

/// Opens it.
///
/// # Errors
/// Services cannot be started; the session is not there, is held by another process, or cannot be read.
pub(super) async fn open(
    setup: &Arc<Setup>,
    beginning: &Beginning,
    asker: Arc<dyn Asker>,
    team_news: mpsc::Sender<TeamNews>,
) -> Result<Opened, ExpectedError> {
    let logs = setup.logs()?;
    let protected = vec![config_home(), state_folder()];
    let services = Arc::new(setup.agent_services(asker, logs.clone(), protected, Vec::new())?);
    let session = session(setup, beginning, &logs).await.map_err(unopened)?;
    for folder in folders(setup, &beginning.flags)? {
        services.sandboxes.add(folder);
    }
    let team = SessionTeam::start(
        TeamOptions {
            services: RunServices { agents: Arc::clone(&services), logs },
            run: run_options(setup, beginning),
            session: session.id,
            earlier: session.loaded.facts.team,
            plan: plan(setup, beginning)?,
        },
        team_news,
    );
    let lead_setup = lead_setup(setup, beginning, &services, &team, &session)?;
    let (door, news) = mpsc::channel(QUEUE);
    let lead = Lead::start(lead_setup, session, door);
    Ok(Opened { services, orders: lead.orders(), lead, news, team })
}

async fn session(
    setup: &Setup,
    beginning: &Beginning,
    logs: &LogWriter,
) -> Result<OpenSession, SessionError> {
    let store = setup.sessions();
    // A flag wins over what the session remembers.
    let model = beginning.flags.model.as_deref();
    match &beginning.wanted {
        Wanted::New => {
            let id = beginning.flags.session.session_id.unwrap_or_else(SessionId::fresh);
            store.create_as(id, logs, &beginning.model, None).await
        }
        Wanted::Known(typed) => {
            let found = store.find(&Reference::read(typed, &setup.cwd))?;
            store.open(found, logs, model).await
        }
        Wanted::Copy(typed) => {
            let found = store.find(&Reference::read(typed, &setup.cwd))?;
            store.fork(found, logs, model).await
        }
    }
}

/// What the person can do about it.
fn unopened(error: SessionError) -> ExpectedError {
    let is_held = matches!(error, SessionError::Held { .. });
    let hint = if is_held {
        "end the other process, or go on with a copy: /session fork"
    } else {
        "/resume lists the sessions of this folder"
    };
    let code = if is_held { exit::HELD } else { exit::USAGE };
    ExpectedError::Run { message: error.to_string(), code, hint: Some(hint.to_owned()) }
}

fn lead_setup(
    setup: &Setup,
    beginning: &Beginning,
    services: &Arc<AgentServices>,
    team: &SessionTeam,
    session: &OpenSession,
) -> Result<LeadSetup, ExpectedError> {
    let tools = beginning.tools.offered.clone();
    let known = session.loaded.facts.model.clone().filter(|model| setup.check_model(model).is_ok());
    Ok(LeadSetup {
        services: Arc::clone(services),
        id: AgentId::fresh(),
        definition: Arc::new(lead()),
        models: vec![known.unwrap_or_else(|| beginning.model.clone())],
        effort: None,
        tools: (!tools.is_empty()).then_some(tools),
        deny_tools: beginning.tools.denied.clone(),
        permission: beginning.permission,
        max_turns: None,
        system_append: beginning.flags.append_system_prompt.clone(),
        workspace: setup.cwd.clone(),
        idle_timeout: IDLE,
        purse: None,
        spawner: Some(Arc::new(team.clone())),
    })
}

fn plan(setup: &Setup, beginning: &Beginning) -> Result<SessionPlan, ExpectedError> {
    let tools = beginning.tools.offered.clone();
    Ok(SessionPlan {
        lead: Arc::new(lead()),
        tools: (!tools.is_empty()).then_some(tools),
        deny_tools: beginning.tools.denied.clone(),
        startable: setup.agent_names().iter().filter_map(|name| setup.agent(name)).collect(),
        limits: setup.default_limits(),
    })
}

fn run_options(setup: &Setup, beginning: &Beginning) -> RunOptions {
    let workspace = project_top(&setup.cwd);
    RunOptions {
        runs: Runs::of_project(&workspace, moved_runs().as_deref()),
        workspace,
        worktrees: state_folder().join("worktrees"),
        secret_key: state_folder().join("secret.key"),
        resume: None,
        accept_damage: false,
        again: None,
        stubs: None,
        max_usd: None,
        permission: beginning.permission,
        model: Some(beginning.model.clone()),
        can_ask: true,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        runtime_dir: runtime_folder(),
    }
}
