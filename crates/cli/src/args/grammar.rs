//! The grammar: one struct for each command, as typed.

use super::library::{AgentsCommand, SkillsCommand};
use super::machine::{DoctorFlags, SandboxFlags};
use super::mcp::McpCommand;
use super::runs::RunsCommand;
use super::sessions::{ExportFlags, ResumeFlags, SystemPromptFlags};
use super::settings::{ConfigFlags, LoginFlags, SettingsFlags, TrustCommand};
use clap::{Args, Parser, Subcommand, ValueEnum};
use claw_agents::permission::Permission;
use claw_kernel::ids::SessionId;
use std::path::PathBuf;

/// Runs teams of coding agents.
///
/// Without a command it is a conversation at the terminal. A workflow file says which agents do what and in which order; claw runs them side by side, shows them at work,
/// and keeps a journal from which a stopped run goes on.
#[derive(Debug, Parser)]
#[command(
    name = "claw",
    version,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    subcommand_precedence_over_arg = false,
    max_term_width = 100
)]
pub(super) struct Cli {
    /// Ask one agent and print its answer; without TEXT the question is read from standard input
    #[arg(short = 'p', long = "print", value_name = "TEXT", num_args = 0..=1)]
    pub(super) print: Option<Option<String>>,
    #[command(flatten)]
    pub(super) talk: TalkFlags,
    #[command(subcommand)]
    pub(super) command: Option<Sub>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Sub {
    /// Run a workflow file
    Run(Box<RunFlags>),
    /// Ask one agent and print its answer (the same as -p)
    Prompt {
        /// The question
        #[arg(value_name = "TEXT")]
        text: String,
        #[command(flatten)]
        talk: TalkFlags,
    },
    /// Check, draw and describe workflow files
    #[command(subcommand)]
    Workflow(WorkflowCommand),
    /// Watch, steer, answer, stop and clear the runs of this project
    #[command(subcommand)]
    Runs(RunsCommand),
    /// List, show and check the agents that can be started here
    #[command(subcommand)]
    Agents(AgentsCommand),
    /// List the skills that agents can load here
    #[command(subcommand)]
    Skills(SkillsCommand),
    /// Begin a project: settings, ignore lines and a CLAUDE.md, where they are missing
    Init(ModelsFlags),
    /// List the sessions of this folder, search them, name or delete one
    Resume(ResumeFlags),
    /// Write a session as Markdown or JSON
    Export(ExportFlags),
    /// Print the system prompt that a conversation here would get
    SystemPrompt(SystemPromptFlags),
    /// List the models that claw knows and the providers that have credentials
    Models(ModelsFlags),
    /// Show the settings that count, each with its file and line; `config set` changes one
    Config(ConfigFlags),
    /// Decide on what this repository brings: hooks, servers, variables, rules
    #[command(subcommand)]
    Trust(TrustCommand),
    /// List, add, remove and show servers of the Model Context Protocol
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Keep the API key of a provider, read from the terminal or a pipe
    Login(LoginFlags),
    /// Remove what `claw login` kept
    Logout(LoginFlags),
    /// Run a command in the sandbox of this folder
    Sandbox(SandboxFlags),
    /// Tell what claw finds on this machine: sandbox, credentials, git, terminal, state
    Doctor(DoctorFlags),
    /// Print completions for a shell
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: super::meaning::Shell,
    },
}

/// How the result is written to standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The answer alone
    #[default]
    Text,
    /// One JSON document at the end
    Json,
    /// One JSON object a line as things happen
    StreamJson,
}

/// How a graph is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum GraphForm {
    /// For a terminal
    #[default]
    Ascii,
    /// For Markdown
    Mermaid,
    /// For Graphviz
    Dot,
}

impl GraphForm {
    /// As it is typed.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ascii => "ascii",
            Self::Mermaid => "mermaid",
            Self::Dot => "dot",
        }
    }
}

/// Flags of a conversation.
#[derive(Args, Clone, Debug, Default)]
pub struct TalkFlags {
    /// The model, as `provider/model`, a model's name or an alias
    #[arg(long, value_name = "MODEL", value_parser = not_blank)]
    pub model: Option<String>,
    /// What the agent may do: read-only, workspace-write, danger-full-access, plan, prompt
    #[arg(long, value_name = "MODE", value_parser = mode)]
    pub permission_mode: Option<Permission>,
    /// Let danger-full-access hold for root too
    #[arg(long)]
    pub allow_root: bool,
    /// How the answer is printed
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub output_format: Option<Format>,
    /// With stream-json: print text as it comes, piece by piece
    #[arg(long)]
    pub include_partial_messages: bool,
    /// End after so many turns
    #[arg(long, value_name = "N", value_parser = turns, allow_negative_numbers = true)]
    pub max_turns: Option<u32>,
    /// Offer these tools only, and let them run: names or rules such as `Bash(git log:*)`, by comma, repeatable
    #[arg(long = "allowedTools", alias = "allowed-tools", value_name = "TOOLS")]
    pub allowed_tools: Vec<String>,
    /// Do not offer these tools, or deny these inputs of them: names or rules, by comma, repeatable
    #[arg(long = "disallowedTools", alias = "disallowed-tools", value_name = "TOOLS")]
    pub disallowed_tools: Vec<String>,
    /// Add this text to the end of the system prompt
    #[arg(long, value_name = "TEXT")]
    pub append_system_prompt: Option<String>,
    /// One more folder in which files may be read and written, repeatable
    #[arg(long, value_name = "FOLDER")]
    pub add_dir: Vec<PathBuf>,
    /// Dollars that the session may cost, over all its processes
    #[arg(long, value_name = "X", value_parser = dollars, allow_negative_numbers = true)]
    pub max_usd: Option<f64>,
    /// Which session it is.
    #[command(flatten)]
    pub session: SessionFlags,
    /// How questions come in over standard input
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub input_format: Option<InputFormat>,
    /// Work in this folder
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
    /// Settings of this call.
    #[command(flatten)]
    pub settings: SettingsFlags,
}

/// Which session a conversation goes on with.
#[derive(Args, Clone, Debug, Default)]
pub struct SessionFlags {
    /// Go on with a session: its id, the beginning of one, its name, a file, or `latest`
    #[arg(long, value_name = "REF", num_args = 0..=1, conflicts_with_all = ["continue_latest", "session_id"])]
    pub resume: Option<Option<String>>,
    /// Go on with the session of this folder that was written last
    #[arg(short = 'c', long = "continue", conflicts_with = "session_id")]
    pub continue_latest: bool,
    /// With --resume or --continue: go on in a copy of the session
    #[arg(long)]
    pub fork_session: bool,
    /// Give the new session this id (a UUID)
    #[arg(long, value_name = "ID", value_parser = session_id)]
    pub session_id: Option<SessionId>,
}

/// How questions come in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum InputFormat {
    /// One question: the text of -p and what a pipe adds
    #[default]
    Text,
    /// One JSON object a line, each a message of the user
    StreamJson,
}

fn session_id(raw: &str) -> Result<SessionId, claw_kernel::ids::NotAnId> {
    raw.parse()
}

/// Values for the inputs of a workflow.
#[derive(Args, Clone, Debug, Default)]
pub struct InputFlags {
    /// A value for an input of the workflow, repeatable
    #[arg(long = "input", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub input: Vec<(String, String)>,
    /// Values for inputs from a JSON or TOML file; `-` reads JSON from standard input
    #[arg(long, value_name = "FILE")]
    pub inputs: Option<PathBuf>,
}

/// What `--rerun` runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rerun {
    /// Steps that did not succeed
    Failed,
}

/// Flags of `claw run`.
#[derive(Args, Clone, Debug)]
pub struct RunFlags {
    /// The workflow file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub(super) inputs: InputFlags,
    /// Print nodes, order, agents, models, permissions and limits, and start nothing
    #[arg(long)]
    pub plan: bool,
    /// Print the graph and start nothing
    #[arg(long, value_enum, value_name = "FORM", conflicts_with = "plan")]
    pub graph: Option<GraphForm>,
    /// Go on with a run of this file: what succeeded is not done again (default: the newest run)
    #[arg(long, value_name = "RUN", num_args = 0..=1, require_equals = true)]
    pub resume: Option<Option<String>>,
    /// Run this step and all that depends on it again: a step such as `explore=security`, or a node's path
    #[arg(long, value_name = "STEP", value_parser = not_blank, group = "again")]
    pub from: Option<String>,
    /// Run this step again and nothing else
    #[arg(long, value_name = "STEP", value_parser = not_blank, group = "again")]
    pub only: Option<String>,
    /// Run again what failed, and all that depends on it
    #[arg(long, value_enum, value_name = "WHAT", group = "again")]
    pub rerun: Option<Rerun>,
    /// Answer agents from a TOML or JSON file instead of asking a model
    #[arg(long, value_name = "FILE")]
    pub stub: Option<PathBuf>,
    /// Give up lines of the run's journal that are damaged; their steps are in doubt
    #[arg(long, requires = "resume")]
    pub accept_damage: bool,
    /// Agents that run at once, at most
    #[arg(long, value_name = "N", value_parser = at_least_one, allow_negative_numbers = true)]
    pub concurrency: Option<usize>,
    /// Dollars that the run may cost, over all its takes; the file's `budget.usd` holds where it is lower
    #[arg(long, value_name = "X", value_parser = dollars, allow_negative_numbers = true)]
    pub max_usd: Option<f64>,
    /// The model of agents that the file gives none, as `provider/model`, a model's name or an alias
    #[arg(long, value_name = "MODEL", value_parser = not_blank)]
    pub model: Option<String>,
    /// What agents may do at most: read-only, workspace-write, danger-full-access, plan, prompt
    #[arg(long, value_name = "MODE", value_parser = mode)]
    pub permission_mode: Option<Permission>,
    /// Let danger-full-access hold for root too
    #[arg(long)]
    pub allow_root: bool,
    /// Let these calls of agents run without a question: names of tools or rules, by comma, repeatable
    #[arg(long = "allowedTools", alias = "allowed-tools", value_name = "RULES")]
    pub allowed_tools: Vec<String>,
    /// Deny these calls of agents: names of tools or rules, by comma, repeatable
    #[arg(long = "disallowedTools", alias = "disallowed-tools", value_name = "RULES")]
    pub disallowed_tools: Vec<String>,
    /// Ask nobody: what would be asked is denied
    #[arg(long)]
    pub no_ask: bool,
    /// Start large runs without a question
    #[arg(long)]
    pub yes: bool,
    /// Start it in the background and return: it goes on without this terminal
    #[arg(long, conflicts_with_all = ["plan", "graph"])]
    pub detach: bool,
    /// This process is the one in the background
    #[arg(long, hide = true, conflicts_with = "detach")]
    pub detached: bool,
    /// Plain lines instead of bars
    #[arg(long)]
    pub no_progress: bool,
    /// How result and events are printed
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub output_format: Format,
    /// With stream-json: print the text of agents as it comes
    #[arg(long)]
    pub include_partial_messages: bool,
    /// Work in this folder
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
    /// Settings of this call.
    #[command(flatten)]
    pub settings: SettingsFlags,
}

impl RunFlags {
    /// Values for inputs.
    pub fn inputs(&self) -> &InputFlags {
        &self.inputs
    }
}

/// `claw workflow …`.
#[derive(Clone, Debug, Subcommand)]
pub enum WorkflowCommand {
    /// Check a workflow file and tell everything that is wrong with it
    Check(CheckFlags),
    /// Print the JSON Schema of workflow files, for editors
    Schema,
    /// Draw the graph of a workflow file
    Graph(GraphFlags),
    /// Print the reference of all keys
    Reference,
}

/// A file and values for its inputs.
#[derive(Args, Clone, Debug)]
pub struct FileFlags {
    /// The workflow file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub(super) inputs: InputFlags,
    /// Work in this folder
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
}

impl FileFlags {
    /// Values for inputs.
    pub fn inputs(&self) -> &InputFlags {
        &self.inputs
    }
}

/// Flags of `claw workflow check`.
#[derive(Args, Clone, Debug)]
pub struct CheckFlags {
    /// What is checked.
    #[command(flatten)]
    pub source: FileFlags,
    /// How problems are printed
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub output_format: Format,
}

/// Flags of `claw workflow graph`.
#[derive(Args, Clone, Debug)]
pub struct GraphFlags {
    /// What is drawn.
    #[command(flatten)]
    pub source: FileFlags,
    /// The form
    #[arg(long, value_enum, value_name = "FORM", default_value_t)]
    pub format: GraphForm,
}

/// Flags of commands that print a list.
#[derive(Args, Clone, Debug, Default)]
pub struct ModelsFlags {
    /// How the list is printed
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub output_format: Format,
    /// Work in this folder
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
}

/// A value that holds nothing.
#[derive(Debug, thiserror::Error)]
#[error("the value is empty")]
pub(super) struct Blank;

/// A value of `--input` without a name.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not NAME=VALUE")]
struct NoPair(String);

/// A count below one.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a whole number from 1 up")]
struct NoCount(String);

pub(super) fn not_blank(raw: &str) -> Result<String, Blank> {
    if raw.trim().is_empty() { Err(Blank) } else { Ok(raw.to_owned()) }
}

fn mode(raw: &str) -> Result<Permission, claw_agents::permission::UnknownMode> {
    raw.parse()
}

fn name_and_value(raw: &str) -> Result<(String, String), NoPair> {
    match raw.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.to_owned())),
        Some(_) | None => Err(NoPair(raw.to_owned())),
    }
}

fn at_least_one(raw: &str) -> Result<usize, NoCount> {
    raw.parse().ok().filter(|n| *n >= 1).ok_or_else(|| NoCount(raw.to_owned()))
}

/// No dollars.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no number of dollars above 0")]
struct NoDollars(String);

fn dollars(raw: &str) -> Result<f64, NoDollars> {
    let number = raw.parse().ok().filter(|usd: &f64| usd.is_finite() && *usd > 0.0);
    number.ok_or_else(|| NoDollars(raw.to_owned()))
}

fn turns(raw: &str) -> Result<u32, NoCount> {
    raw.parse().ok().filter(|n| *n >= 1).ok_or_else(|| NoCount(raw.to_owned()))
}
