//! What a command works with, made once: folder, environment, providers, tools, agents.
//!
//! The only room that reads the environment. Nothing is written before a run or a conversation starts.

mod rules;
mod settings;

pub use rules::ToolFlags;
pub use settings::SettingsOrigin;

use crate::args::SettingsFlags;
use crate::error::ExpectedError;
use crate::extensions;
use crate::library;
use crate::servers;
use crate::terminal::say;
use claw_agents::children::{AgentTool, BackgroundTool};
use claw_agents::definition::AgentDefinition;
use claw_agents::library::{Library, SkillTool};
use claw_agents::permission::{Asker, Permission, Reach, RuleSet, refuses_command};
use claw_agents::roles::Catalog;
use claw_agents::services::{AgentServices, Sandboxes};
use claw_agents::session::Store;
use claw_agents::settings::{Scope, Settings, Sourced};
use claw_agents::system_prompt::load_memory;
use claw_kernel::durable::LogWriter;
use claw_kernel::near::nearest;
use claw_kernel::redact::Redactor;
use claw_kernel::visible::visible;
use claw_orchestrator::plan::model::Limits;
use claw_orchestrator::plan::surroundings::{ModelProblem, Surroundings};
use claw_providers::client::Providers;
use claw_providers::config::ProvidersConfig;
use claw_providers::error::ProviderErrorKind;
use claw_tools::ports::Ports;
use claw_tools::registry::{Registry, RegistryCell};
use claw_tools::sandbox::{Cover, Most};
use claw_tools::tasks::TaskList;
use claw_tools::web::{SearchService, Web, WebConfig};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Endings of variables that hold secrets.
const SECRET_ENDINGS: [&str; 3] = ["_API_KEY", "_AUTH_TOKEN", "_SECRET_KEY"];

/// What the environment says, checked.
#[derive(Debug)]
pub struct Setup {
    /// The working folder, absolute.
    pub cwd: PathBuf,
    /// Providers, models, aliases.
    pub config: ProvidersConfig,
    /// The settings that count.
    pub settings: Settings,
    /// Files, diagnostics, decisions: where the settings come from.
    pub origin: SettingsOrigin,
    /// Permission rules of settings and flags.
    pub rules: RuleSet,
    /// Files of agents, skills and commands, and the agents that there are with them; read at the first use.
    files: OnceLock<(Arc<Library>, Catalog)>,
    moved: bool,
}

fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn set(name: &str) -> Option<String> {
    env(name).filter(|value| !value.trim().is_empty())
}

/// The user's home.
pub fn home() -> PathBuf {
    set("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from)
}

/// Where the user's settings and sessions lie. Absolute.
pub fn config_home() -> PathBuf {
    let own = set("CLAW_CONFIG_HOME").or_else(|| set("CLAUDE_CONFIG_HOME")).map(PathBuf::from);
    let shared = || set("XDG_CONFIG_HOME").map(|folder| Path::new(&folder).join("claw"));
    let folder = own.or_else(shared).unwrap_or_else(|| home().join(".claw"));
    std::path::absolute(&folder).unwrap_or(folder)
}

/// Where the user's own memory files lie.
pub fn memory_folders() -> Vec<PathBuf> {
    vec![home().join(".claude"), config_home()]
}

/// Where claw keeps what is no setting and belongs to no project.
pub fn state_folder() -> PathBuf {
    set("XDG_STATE_HOME").map_or_else(|| home().join(".local/state"), PathBuf::from).join("claw")
}

/// Where what lives as long as a process may lie, such as sockets.
pub fn runtime_folder() -> Option<PathBuf> {
    set("XDG_RUNTIME_DIR").map(PathBuf::from)
}

/// Where the user moved the runs to.
pub fn moved_runs() -> Option<PathBuf> {
    set("CLAWD_AGENT_STORE").map(PathBuf::from)
}

/// Whether a variable holds a key, by its name.
pub fn is_secret(name: &str) -> bool {
    SECRET_ENDINGS.iter().any(|ending| name.to_uppercase().ends_with(ending))
}

/// The folder that a command works in, absolute.
///
/// # Errors
/// It does not exist or is none.
pub fn folder(cwd: Option<&Path>) -> Result<PathBuf, ExpectedError> {
    let wanted = cwd.unwrap_or_else(|| Path::new("."));
    let unreadable = |source| ExpectedError::CannotRead { path: wanted.to_owned(), source, near: None };
    let cwd = wanted.canonicalize().map_err(unreadable)?;
    if !cwd.is_dir() {
        return Err(unreadable(std::io::ErrorKind::NotADirectory.into()));
    }
    Ok(cwd)
}

/// Values of variables that hold keys.
pub fn known_secrets() -> Vec<String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| is_secret(name))
        .map(|(_, value)| value.trim().to_owned())
        .collect()
}

impl Setup {
    /// Reads the environment and the settings.
    ///
    /// # Errors
    /// The folder does not exist, the settings cannot be used, or a variable has a value that it cannot have.
    pub fn read(cwd: Option<&Path>) -> Result<Self, ExpectedError> {
        Self::read_with(cwd, &SettingsFlags::default())
    }

    /// The same, with what flags say about settings.
    ///
    /// # Errors
    /// As of [`Setup::read`].
    pub fn read_with(cwd: Option<&Path>, flags: &SettingsFlags) -> Result<Self, ExpectedError> {
        let moved = cwd.is_some();
        let cwd = folder(cwd)?;
        let origin = SettingsOrigin::read(&cwd, flags)?;
        let settings = origin.usable()?;
        let config = origin.providers(&settings)?;
        let rules = rules::of_settings(&settings)?;
        Ok(Self { cwd, config, settings, origin, rules, files: OnceLock::new(), moved })
    }

    /// Decisions were made: what counts is looked at again.
    ///
    /// # Errors
    /// As of [`Setup::read`].
    pub fn decided(&mut self) -> Result<(), ExpectedError> {
        self.origin.read_decisions()?;
        self.settings = self.origin.usable()?;
        self.config = self.origin.providers(&self.settings)?;
        self.rules = rules::of_settings(&self.settings)?;
        Ok(())
    }

    fn files(&self) -> &(Arc<Library>, Catalog) {
        self.files.get_or_init(|| {
            let library = self.library_now();
            let catalog = library::catalog(&library);
            (Arc::new(library), catalog)
        })
    }

    /// Files of agents, skills and commands round the working folder, read anew.
    pub fn library_now(&self) -> Library {
        library::load(&self.cwd, &with_team(Registry::every(), &Catalog::builtin()))
    }

    /// The same as they were at the first use.
    pub fn library(&self) -> &Arc<Library> {
        &self.files().0
    }

    fn catalog(&self) -> &Catalog {
        &self.files().1
    }

    /// A file as the user named it; from another folder than the one claw was started in: its whole path.
    pub fn named(&self, typed: &Path) -> PathBuf {
        if self.moved { self.path(typed) } else { typed.to_owned() }
    }

    /// The sessions of the working folder.
    pub fn sessions(&self) -> Store {
        Store::new(&config_home(), &self.cwd)
    }

    /// A path as typed by a person, `~` included, from the working folder.
    pub fn typed_path(&self, typed: &str) -> PathBuf {
        match typed.strip_prefix("~/") {
            Some(below) => home().join(below),
            None if typed == "~" => home(),
            None => self.path(Path::new(typed)),
        }
    }

    /// A path as it is shown: below the user's home with `~`.
    pub fn shown_path(&self, path: &Path) -> String {
        match path.strip_prefix(home()) {
            Ok(below) if below.as_os_str().is_empty() => "~".to_owned(),
            Ok(below) => format!("~/{}", below.display()),
            Err(_) => path.display().to_string(),
        }
    }

    /// A path as typed, from the working folder.
    pub fn path(&self, typed: &Path) -> PathBuf {
        self.cwd.join(typed)
    }

    /// The mode: the flag, else the variable, else the settings, else the default; never past the policy. Full access for
    /// root wants consent.
    ///
    /// # Errors
    /// A variable that names no mode, or root without consent.
    pub fn permission(
        &self,
        flag: Option<Permission>,
        allow_root: bool,
    ) -> Result<Permission, ExpectedError> {
        const VARIABLE: &str = "CLAW_PERMISSION_MODE";
        let permissions = &self.settings.permissions;
        let said = match (flag, self.variable(VARIABLE)) {
            (Some(mode), _) => mode,
            (None, Some(name)) => {
                name.parse().map_err(|source| ExpectedError::ModeVariable { variable: VARIABLE, source })?
            }
            (None, None) => {
                permissions.default_mode.as_ref().map_or(Permission::WORKSPACE_WRITE, |mode| mode.value)
            }
        };
        let mode = permissions.below_ceiling(said);
        if mode != said
            && let Some(ceiling) = &permissions.ceiling
        {
            say(&visible(&format!(
                "note: {said} is not allowed by {}; the mode is {mode}\n",
                ceiling.origin
            )));
        }
        let consent = allow_root || set("CLAW_ALLOW_ROOT").is_some_and(|value| value == "1");
        if mode.reach == Reach::DangerFullAccess && rustix::process::geteuid().is_root() && !consent {
            return Err(ExpectedError::RootNeedsConsent);
        }
        Ok(mode)
    }

    /// A variable as the process has it, else as the settings set it; the policy's goes before both.
    pub fn variable(&self, name: &str) -> Option<String> {
        self.settings.variable(name, env(name)).filter(|value| !value.trim().is_empty())
    }

    /// The model where none is named elsewhere: the policy's, else the flag's, else the default.
    pub fn model(&self, flag: Option<&str>) -> String {
        let policy = self.settings.model.as_ref().filter(|model| model.origin.scope == Scope::Managed);
        match (policy, flag) {
            (Some(policy), _) => policy.value.clone(),
            (None, Some(flag)) => flag.to_owned(),
            (None, None) => self.config.default_model(),
        }
    }

    /// Variables that the settings give to commands: no key of a provider is among them.
    fn command_env(&self) -> Vec<(String, String)> {
        let keys: Vec<&String> = self.config.profiles.iter().flat_map(|profile| &profile.variables).collect();
        let said = self.settings.env.iter().filter(|(name, _)| !keys.contains(name));
        said.map(|(name, value)| (name.clone(), value.value.clone())).collect()
    }

    /// Whether a model can be asked: routed, with credentials.
    ///
    /// # Errors
    /// What is missing.
    pub fn check_model(&self, model: &str) -> Result<(), ExpectedError> {
        self.config.route(model)?;
        Ok(())
    }

    /// Every tool that there may be, and the one that starts agents: for names that people write.
    pub fn every_tool(&self) -> Registry {
        self.with_agents(Registry::every())
    }

    /// The tools that there are here.
    fn registry(&self, ports: &Ports) -> Registry {
        self.with_agents(Registry::builtin().with_ports(ports))
    }

    /// And those that start agents and talk to them.
    fn with_agents(&self, tools: Registry) -> Registry {
        let tools = with_team(tools, self.catalog());
        match SkillTool::over(Arc::clone(self.library())) {
            Some(skills) => tools.with(Arc::new(skills)),
            None => tools,
        }
    }

    /// Who is there beyond the machine, as far as the environment tells: the web, a search service, a task list that lives
    /// as long as the process. Whoever has a person at a terminal adds him.
    ///
    /// # Errors
    /// The search service's address is none.
    pub fn ports(&self) -> Result<Ports, ExpectedError> {
        const SEARCH: &str = "CLAWD_WEB_SEARCH_BASE_URL";
        let service = set(SEARCH).map(|address| SearchService::at(&address)).transpose();
        let search = service.map_err(|error| ExpectedError::Usage {
            message: format!("{SEARCH}: {error}"),
            hint: Some("set it to the address of a search service, or unset it".to_owned()),
        })?;
        let config = WebConfig {
            https_proxy: set("HTTPS_PROXY").or_else(|| set("https_proxy")),
            no_proxy: set("NO_PROXY").or_else(|| set("no_proxy")),
        };
        let tasks = Some(Arc::new(TaskList::in_memory()));
        Ok(Ports { search, tasks, web: Arc::new(Web::new(config)), ..Ports::default() })
    }

    /// The canonical name of a tool as typed.
    ///
    /// # Errors
    /// A name that is no tool.
    fn canonical(&self, name: &str) -> Result<String, ExpectedError> {
        let registry = self.every_tool();
        registry.canonical(name).map(str::to_owned).ok_or_else(|| ExpectedError::UnknownTool {
            word: name.to_owned(),
            near: registry.near(name).map(str::to_owned),
            known: registry.names().map(str::to_owned).collect(),
        })
    }

    /// Takes all known secrets out of texts.
    ///
    /// `more`: what the user declared to be secret for this command.
    pub fn redactor(&self, more: Vec<String>) -> Redactor {
        let said = self.settings.env.iter().filter(|(name, _)| is_secret(name));
        let said = said.map(|(_, value)| value.value.trim().to_owned());
        let saved = self.origin.saved_secrets();
        Redactor::new(self.config.secrets().into_iter().chain(known_secrets()).chain(said).chain(saved))
            .declared(more)
    }

    /// The sandboxes of commands, as the settings say; `CLAW_SANDBOX=write-wall` takes no more than the write wall.
    ///
    /// # Errors
    /// A host in the settings is none.
    pub fn sandboxes(&self) -> Result<Sandboxes, ExpectedError> {
        let read = |name: &str| std::env::var_os(name);
        let wrong = |error: claw_tools::sandbox::InvalidHost| ExpectedError::Usage {
            message: format!("sandbox.network in the settings: {error}"),
            hint: Some("see `claw config sandbox`".to_owned()),
        };
        let mut sandboxes = Sandboxes::of(&self.settings.sandbox, &home(), read).map_err(wrong)?;
        if set("CLAW_SANDBOX").is_some_and(|most| most == "write-wall") {
            sandboxes.outfit.most = Most::WriteWall;
        }
        let more = self.settings.permissions.additional_directories.iter();
        sandboxes.writable.extend(more.map(|folder| folder.value.clone()));
        let own = ["credentials.json", "trust.json"].map(|name| Cover::path(config_home().join(name)));
        sandboxes.outfit.masked.extend(own);
        sandboxes.outfit.rules = Arc::new(self.rules.clone());
        Ok(sandboxes)
    }

    /// The services of agents. Within a runtime.
    ///
    /// # Errors
    /// Providers or the writer of logs cannot be started.
    pub fn agent_services(
        &self,
        asker: Arc<dyn Asker>,
        logs: LogWriter,
        protected: Vec<PathBuf>,
        secrets: Vec<String>,
    ) -> Result<AgentServices, ExpectedError> {
        let redactor = Arc::new(self.redactor(secrets));
        let ports = self.ports()?;
        let providers =
            Providers::start_with(self.config.clone(), (*redactor).clone()).map_err(|error| error.kind)?;
        let sandboxes = self.sandboxes()?;
        let registry = RegistryCell::from(self.registry(&ports));
        let mcp = servers::start(self, redactor.clone());
        mcp.publish(&registry);
        Ok(AgentServices {
            model: Arc::new(providers),
            registry,
            ports: Arc::new(ports),
            redactor: redactor.clone(),
            logs,
            rules: Arc::new(self.rules.clone()),
            asker,
            sandboxes,
            hooks: Arc::new(extensions::hooks(&self.settings, &self.cwd, redactor)),
            mcp,
            memory: load_memory(&self.cwd, &memory_folders()).text.into(),
            protected: resolved(protected),
            compaction: self.settings.compaction.settings(),
            shared: claw_agents::services::Shared::with_env(self.command_env()),
        })
    }

    /// Starts the thread that writes journals and transcripts.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn logs(&self) -> Result<LogWriter, ExpectedError> {
        LogWriter::start().map_err(|error| ExpectedError::Fault(format!("cannot start the journal: {error}")))
    }
}

/// With the tools that start agents and talk to them.
fn with_team(tools: Registry, catalog: &Catalog) -> Registry {
    let agents = tools.with(Arc::new(AgentTool::new(catalog)));
    BackgroundTool::ALL.into_iter().fold(agents, |tools, tool| tools.with(Arc::new(tool)))
}

/// Tools give the gate resolved paths: what it compares them with is the same.
fn resolved(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.iter().map(|path| claw_tools::files::paths::resolve(path)).collect()
}

impl Surroundings for Setup {
    fn agent(&self, name: &str) -> Option<Arc<AgentDefinition>> {
        self.catalog().get(name).ok()
    }

    fn agent_names(&self) -> Vec<String> {
        self.catalog().iter().map(|agent| agent.name.clone()).collect()
    }

    fn tool_names(&self) -> Vec<String> {
        self.every_tool().names().map(str::to_owned).collect()
    }

    fn canonical_tool(&self, name: &str) -> Option<String> {
        self.every_tool().canonical(name).map(str::to_owned)
    }

    fn refused_tool(&self, name: &str) -> Option<String> {
        let registry = self.every_tool();
        let tool = registry.get(name)?;
        self.rules.denies_tool(tool.name(), tool.aliases()).map(|rule| format!("the {rule} denies it"))
    }

    fn refused_mode(&self, mode: Permission) -> Option<String> {
        let ceiling = self.settings.permissions.ceiling.as_ref()?;
        (mode.reach > ceiling.value.reach)
            .then(|| format!("{} lets no mode go past {}", ceiling.origin, ceiling.value))
    }

    fn refused_command(&self, line: &str) -> Option<String> {
        refuses_command(line, &self.rules, &self.cwd)
    }

    fn read_text(&self, path: &Path) -> std::io::Result<String> {
        std::fs::read_to_string(self.path(path))
    }

    fn price_known(&self, model: Option<&str>) -> bool {
        let model = model.map_or_else(|| self.config.default_model(), str::to_owned);
        match self.config.route(&model) {
            Ok(route) => route.profile.info(&route.model).price.is_some(),
            // Asked again by the run, which wants credentials first.
            Err(ProviderErrorKind::MissingCredentials { .. }) => true,
            Err(_) => false,
        }
    }

    fn cache_pays(&self, model: Option<&str>) -> bool {
        let model = model.map_or_else(|| self.config.default_model(), str::to_owned);
        let price = self.config.route(&model).ok().and_then(|route| route.profile.info(&route.model).price);
        price.is_some_and(|price| price.cache_read > 0.0 && price.cache_read < price.input)
    }

    fn default_limits(&self) -> Limits {
        let said = &self.settings.limits;
        let count =
            |said: &Option<Sourced<usize>>, usual: usize| said.as_ref().map_or(usual, |said| said.value);
        Limits {
            concurrency: count(&said.concurrency, 16),
            commands: count(&said.commands, self.default_commands()),
            agents: count(&said.agents, 200),
            depth: said.depth.as_ref().map_or(2, |said| said.value),
            providers: said.providers.clone(),
        }
    }

    fn default_commands(&self) -> usize {
        2 * std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
    }

    /// A file can be checked without credentials; a run wants them before it starts.
    fn check_model(&self, model: &str) -> Result<(), ModelProblem> {
        match self.config.route(model) {
            Ok(_) | Err(ProviderErrorKind::MissingCredentials { .. }) => Ok(()),
            Err(kind) => {
                let error = ExpectedError::Provider(kind);
                Err(ModelProblem { message: error.to_string(), help: error.hint() })
            }
        }
    }
}

/// Reads a text file that the user named.
///
/// # Errors
/// `CannotRead` with the near name of a neighbour.
pub fn read_named(typed: &Path, path: &Path) -> Result<String, ExpectedError> {
    let bytes = std::fs::read(path).map_err(|source| {
        let near = (source.kind() == std::io::ErrorKind::NotFound).then(|| neighbour(typed, path)).flatten();
        ExpectedError::CannotRead { path: typed.to_owned(), source, near }
    })?;
    String::from_utf8(bytes).map_err(|_| ExpectedError::CannotRead {
        path: typed.to_owned(),
        source: std::io::Error::other("it is not UTF-8 text"),
        near: None,
    })
}

/// A file beside the missing one whose name is near.
fn neighbour(typed: &Path, path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let entries = path.parent()?.read_dir().ok()?;
    let names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).take(1000).collect();
    let near = nearest(name, names.iter().map(String::as_str))?;
    Some(typed.with_file_name(near).display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_protected_is_so_under_its_real_name() {
        let folder = tempfile::tempdir().unwrap();
        let top = claw_tools::files::paths::resolve(folder.path());
        std::fs::create_dir(top.join("real")).unwrap();
        std::os::unix::fs::symlink("real", top.join("link")).unwrap();
        let given = vec![top.join("link"), top.join("link/absent/x")];
        assert_eq!(resolved(given), [top.join("real"), top.join("real/absent/x")]);
    }
}
