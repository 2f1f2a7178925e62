//! Sessions for commands: which one is meant, opened; what a lead is started with.

use crate::args::{SessionFlags, TalkFlags};
use crate::error::ExpectedError;
use crate::services::{Setup, ToolFlags, config_home};
use claw_agents::lead::LeadSetup;
use claw_agents::permission::Permission;
use claw_agents::roles::lead;
use claw_agents::services::AgentServices;
use claw_agents::session::{OpenSession, Reference, Store};
use claw_kernel::durable::LogWriter;
use claw_kernel::ids::{AgentId, SessionId};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// No provider byte and no tool running for so long ends a turn.
const IDLE: Duration = Duration::from_secs(300);

/// The sessions of the working folder.
pub fn store(cwd: &Path) -> Store {
    Store::new(&config_home(), cwd)
}

/// The session that the flags mean: a new one, one that goes on, a copy of one. `model`: the flag's, and the usual one.
///
/// # Errors
/// There is none, another process holds it, it cannot be read or made.
pub async fn open(
    cwd: &Path,
    flags: &SessionFlags,
    logs: &LogWriter,
    (model, usual): (Option<&str>, &str),
) -> Result<OpenSession, ExpectedError> {
    let store = store(cwd);
    let reference = match &flags.resume {
        Some(named) => Some(Reference::read(named.as_deref().unwrap_or_default(), cwd)),
        None if flags.continue_latest => Some(Reference::Latest),
        None => None,
    };
    let session = match reference {
        None => {
            let id = flags.session_id.unwrap_or_else(SessionId::fresh);
            store.create_as(id, logs, model.unwrap_or(usual), None).await?
        }
        Some(reference) => {
            let found = store.find(&reference)?;
            if flags.fork_session {
                store.fork(found, logs, model).await?
            } else {
                store.open(found, logs, model).await?
            }
        }
    };
    Ok(session)
}

/// What is decided about a conversation before it starts.
#[derive(Clone, Debug)]
pub struct Decided {
    /// What it may do.
    pub permission: Permission,
    /// Its model.
    pub model: String,
    /// Narrows its tools.
    pub tools: Option<Vec<String>>,
    /// Taken away.
    pub deny: Vec<String>,
}

impl Decided {
    /// Out of flags and settings; the model can be asked.
    ///
    /// # Errors
    /// A mode, tool or model that cannot be.
    pub fn of(setup: &mut Setup, flags: &TalkFlags) -> Result<Self, ExpectedError> {
        let permission = setup.permission(flags.permission_mode, flags.allow_root)?;
        let ToolFlags { offered: tools, denied: deny } =
            setup.tool_flags(&flags.allowed_tools, &flags.disallowed_tools)?;
        let model = setup.model(flags.model.as_deref());
        setup.check_model(&model)?;
        Ok(Self { permission, model, tools: (!tools.is_empty()).then_some(tools), deny })
    }

    /// A session that goes on keeps its model, where no flag names another and it can be asked.
    #[must_use]
    pub fn with_model_of(self, session: &OpenSession, setup: &Setup, flags: &TalkFlags) -> Self {
        let known = session.loaded.facts.model.clone().filter(|_| flags.model.is_none());
        match known.filter(|model| setup.check_model(model).is_ok()) {
            Some(model) => Self { model, ..self },
            None => self,
        }
    }

    /// What a lead is started with.
    pub fn lead(self, setup: &Setup, flags: &TalkFlags, services: Arc<AgentServices>) -> LeadSetup {
        LeadSetup {
            services,
            id: AgentId::fresh(),
            definition: Arc::new(lead()),
            models: vec![self.model],
            effort: None,
            tools: self.tools,
            deny_tools: self.deny,
            permission: self.permission,
            max_turns: flags.max_turns,
            system_append: flags.append_system_prompt.clone(),
            workspace: setup.cwd.clone(),
            idle_timeout: IDLE,
            purse: None,
            spawner: None,
        }
    }
}

/// Folders beside the workspace: those of the settings and those of the flags, resolved.
///
/// # Errors
/// One that a flag names is none.
pub fn folders(setup: &Setup, flags: &TalkFlags) -> Result<Vec<std::path::PathBuf>, ExpectedError> {
    let said = setup.settings.permissions.additional_directories.iter();
    let mut folders: Vec<_> = said.filter_map(|one| setup.path(&one.value).canonicalize().ok()).collect();
    for typed in &flags.add_dir {
        let unreadable = |source| ExpectedError::CannotRead { path: typed.clone(), source, near: None };
        let folder = setup.path(typed).canonicalize().map_err(unreadable)?;
        if !folder.is_dir() {
            return Err(unreadable(std::io::ErrorKind::NotADirectory.into()));
        }
        folders.push(folder);
    }
    Ok(folders)
}
