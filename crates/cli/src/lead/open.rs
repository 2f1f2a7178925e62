//! Opens a session: services, the team of its agents, the lead.

use super::interim::Interim;
use super::start::project_folder;
use crate::args::TalkFlags;
use crate::error::ExpectedError;
use crate::services::{Setup, config_home, moved_runs, runtime_folder, state_folder};
use claw_agents::lead::{LeadCommand, LeadEvent};
use claw_agents::permission::{Asker, Permission};
use claw_agents::roles::lead;
use claw_agents::services::AgentServices;
use claw_kernel::durable;
use claw_kernel::ids::SessionId;
use claw_orchestrator::plan::model::Limits;
use claw_orchestrator::plan::session::SessionPlan;
use claw_orchestrator::plan::surroundings::Surroundings;
use claw_orchestrator::run::{RunOptions, RunServices, SessionTeam, TeamNews, TeamOptions};
use claw_orchestrator::rundir::{Runs, project_top};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Orders and news that may wait.
const QUEUE: usize = 256;

/// What a session begins with.
#[derive(Clone, Debug)]
pub(super) struct Beginning {
    pub(super) flags: TalkFlags,
    pub(super) permission: Permission,
    pub(super) model: String,
    /// The session to go on with; none: a new one.
    pub(super) session: Option<String>,
}

/// An open session.
pub(super) struct Opened {
    pub(super) services: Arc<AgentServices>,
    pub(super) orders: mpsc::Sender<LeadCommand>,
    pub(super) news: mpsc::Receiver<LeadEvent>,
    pub(super) team: SessionTeam,
}

/// Opens it.
///
/// # Errors
/// Services cannot be started, its files cannot be read or written.
pub(super) async fn open(
    setup: &Arc<Setup>,
    beginning: &Beginning,
    asker: Arc<dyn Asker>,
    team_news: mpsc::Sender<TeamNews>,
) -> Result<Opened, ExpectedError> {
    let logs = setup.logs()?;
    let protected = vec![config_home(), state_folder()];
    let services = Arc::new(setup.agent_services(asker, logs.clone(), protected, Vec::new())?);
    let folder = project_folder(setup);
    durable::private_dir(&folder)
        .map_err(|source| ExpectedError::CannotWrite { path: folder.clone(), source })?;
    let session = SessionId::fresh();
    let team = SessionTeam::start(
        TeamOptions {
            services: RunServices { agents: Arc::clone(&services), logs },
            run: run_options(setup, beginning),
            session,
            earlier: None,
            plan: plan(setup, beginning)?,
        },
        team_news,
    );
    let (orders, taken) = mpsc::channel(QUEUE);
    let (door, news) = mpsc::channel(QUEUE);
    Interim::start(setup, beginning, session, &services, &team, (taken, door));
    Ok(Opened { services, orders, news, team })
}

fn plan(setup: &Setup, beginning: &Beginning) -> Result<SessionPlan, ExpectedError> {
    let tools = setup.tools(&beginning.flags.allowed_tools)?;
    Ok(SessionPlan {
        lead: Arc::new(lead()),
        tools: (!tools.is_empty()).then_some(tools),
        deny_tools: setup.tools(&beginning.flags.disallowed_tools)?,
        startable: setup.agent_names().iter().filter_map(|name| setup.agent(name)).collect(),
        limits: Limits::standard(setup.default_commands()),
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
