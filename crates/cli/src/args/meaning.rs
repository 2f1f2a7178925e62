//! From what was typed to what is meant: one command, or an early end.

use super::grammar::{Cli, Format, InputFormat, ModelsFlags, RunFlags, Sub, TalkFlags, WorkflowCommand};
use super::library::{AgentsCommand, SkillsCommand};
use super::machine::{DoctorFlags, SandboxFlags};
use super::mcp::McpCommand;
use super::misuse;
use super::runs::RunsCommand;
use super::saved::{self, SavedCommand};
use super::sessions::{ExportFlags, ResumeFlags, SystemPromptFlags};
use super::settings::{ConfigFlags, LoginFlags, TrustCommand};
use crate::error::ExpectedError;
use clap::{CommandFactory, Parser};
use std::ffi::OsString;

/// One command, ready to run.
#[derive(Debug)]
pub enum Command {
    /// `claw` alone.
    Lead(Box<TalkFlags>),
    /// `claw init`.
    Init(ModelsFlags),
    /// `claw run`.
    Run(Box<RunFlags>),
    /// `claw -p`.
    Print(Box<PrintFlags>),
    /// `claw workflow …`.
    Workflow(WorkflowCommand),
    /// `claw runs …`.
    Runs(RunsCommand),
    /// `claw agents …`.
    Agents(AgentsCommand),
    /// `claw skills …`.
    Skills(SkillsCommand),
    /// Slash commands on a saved session.
    Saved(Box<SavedFlags>),
    /// `claw resume`.
    Resume(ResumeFlags),
    /// `claw export`.
    Export(ExportFlags),
    /// `claw system-prompt`.
    SystemPrompt(SystemPromptFlags),
    /// `claw models`.
    Models(ModelsFlags),
    /// `claw config`.
    Config(ConfigFlags),
    /// `claw trust …`.
    Trust(TrustCommand),
    /// `claw mcp …`.
    Mcp(McpCommand),
    /// `claw login`.
    Login(LoginFlags),
    /// `claw logout`.
    Logout(LoginFlags),
    /// `claw sandbox`.
    Sandbox(SandboxFlags),
    /// `claw doctor`.
    Doctor(DoctorFlags),
    /// `claw completions`.
    Completions(Shell),
}

/// `claw -p` and `claw prompt`.
#[derive(Clone, Debug)]
pub struct PrintFlags {
    /// The question; `None` = all of standard input.
    pub text: Option<String>,
    /// The rest.
    pub talk: TalkFlags,
}

/// `claw --resume REF /status …`.
#[derive(Clone, Debug)]
pub struct SavedFlags {
    /// In the order given, never empty.
    pub commands: Vec<SavedCommand>,
    /// The rest.
    pub talk: TalkFlags,
}

/// Shells that completions are written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Shell {
    /// bash
    Bash,
    /// zsh
    Zsh,
    /// fish
    Fish,
}

/// The program ends without a command.
#[derive(Debug)]
pub enum Early {
    /// `--help`, `--version`: a text for standard output, exit 0.
    Asked(String),
    /// `claw` alone and commands without their subcommand: a text for standard error, exit 2.
    Incomplete(String),
    /// The arguments are wrong.
    Wrong(ExpectedError),
}

/// Reads the arguments, the program's name first.
pub fn parse<I, T>(args: I) -> Result<Command, Early>
where
    I: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    let args = args.into_iter().map(Into::into).collect();
    let (args, commands) = saved::take(args);
    let cli = Cli::try_parse_from(args).map_err(|error| misuse::explain(&error, &mut Cli::command()))?;
    if commands.is_empty() {
        return mean(cli);
    }
    match cli {
        Cli { print: None, talk, command: None } => {
            Ok(Command::Saved(Box::new(SavedFlags { commands, talk })))
        }
        Cli { .. } => Err(Early::Wrong(ExpectedError::Usage {
            message: "slash commands on a saved session stand alone".to_owned(),
            hint: Some("write `claw --resume REF /status`".to_owned()),
        })),
    }
}

fn mean(cli: Cli) -> Result<Command, Early> {
    let Cli { print, talk, command } = cli;
    match (command, print) {
        (Some(sub), _) => mean_sub(sub),
        (None, Some(text)) => ask(text, talk),
        (None, None) => match misuse::first_flag(&talk) {
            Some(flag) => Err(Early::Wrong(ExpectedError::Usage {
                message: format!("{flag} needs a question"),
                hint: Some("write `claw -p \"…\"` or name a command; see `claw --help`".to_owned()),
            })),
            None => Ok(Command::Lead(Box::new(talk))),
        },
    }
}

fn mean_sub(sub: Sub) -> Result<Command, Early> {
    Ok(match sub {
        Sub::Run(flags) => {
            partial_messages_fit(flags.include_partial_messages, flags.output_format)?;
            Command::Run(flags)
        }
        Sub::Prompt { text, talk } => return ask(Some(text), talk),
        Sub::Workflow(command) => Command::Workflow(command),
        Sub::Runs(command) => {
            if let RunsCommand::Watch(flags) = &command {
                partial_messages_fit(flags.include_partial_messages, flags.rest().output_format)?;
            }
            Command::Runs(command)
        }
        Sub::Agents(command) => Command::Agents(command),
        Sub::Skills(command) => Command::Skills(command),
        Sub::Resume(flags) => Command::Resume(flags),
        Sub::Export(flags) => Command::Export(flags),
        Sub::SystemPrompt(flags) => Command::SystemPrompt(flags),
        Sub::Models(flags) => Command::Models(flags),
        Sub::Config(flags) => Command::Config(flags),
        Sub::Trust(command) => Command::Trust(command),
        Sub::Mcp(command) => Command::Mcp(command),
        Sub::Login(flags) => Command::Login(flags),
        Sub::Logout(flags) => Command::Logout(flags),
        Sub::Sandbox(flags) => Command::Sandbox(flags),
        Sub::Doctor(flags) => Command::Doctor(flags),
        Sub::Init(flags) => Command::Init(flags),
        Sub::Completions { shell } => Command::Completions(shell),
    })
}

fn ask(text: Option<String>, talk: TalkFlags) -> Result<Command, Early> {
    if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
        return Err(Early::Wrong(ExpectedError::EmptyPrompt));
    }
    partial_messages_fit(talk.include_partial_messages, talk.output_format.unwrap_or_default())?;
    if text.is_some() && talk.input_format == Some(InputFormat::StreamJson) {
        return Err(Early::Wrong(ExpectedError::Usage {
            message: "with --input-format stream-json the questions come from standard input alone"
                .to_owned(),
            hint: Some("leave the text behind -p away".to_owned()),
        }));
    }
    if talk.session.fork_session && talk.session.resume.is_none() && !talk.session.continue_latest {
        return Err(Early::Wrong(ExpectedError::Usage {
            message: "--fork-session needs --resume or --continue".to_owned(),
            hint: None,
        }));
    }
    Ok(Command::Print(Box::new(PrintFlags { text, talk })))
}

fn partial_messages_fit(wanted: bool, format: Format) -> Result<(), Early> {
    if wanted && format != Format::StreamJson {
        return Err(Early::Wrong(ExpectedError::Usage {
            message: "--include-partial-messages needs --output-format stream-json".to_owned(),
            hint: None,
        }));
    }
    Ok(())
}

/// The completion script of a shell.
pub fn completions(shell: Shell) -> Vec<u8> {
    let shell = match shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "claw", &mut script);
    script
}
