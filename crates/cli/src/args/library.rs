//! The grammar of `claw agents …` and `claw skills …`.

use super::grammar::ModelsFlags;
use clap::{Args, Subcommand};

/// `claw agents …`.
#[derive(Clone, Debug, Subcommand)]
pub enum AgentsCommand {
    /// List the agents that can be started here
    List(ModelsFlags),
    /// Show an agent: where it comes from, what it may do, its prompt
    Show(AgentFlags),
    /// Check all files of agents, skills and commands; exit 1 where one had to be left out
    Validate(ModelsFlags),
}

/// `claw agents show NAME`.
#[derive(Args, Clone, Debug)]
pub struct AgentFlags {
    /// The agent
    #[arg(value_name = "NAME")]
    pub name: String,
    #[command(flatten)]
    pub rest: ModelsFlags,
}

/// `claw skills …`.
#[derive(Clone, Debug, Subcommand)]
pub enum SkillsCommand {
    /// List the skills that agents can load here
    List(ModelsFlags),
}

impl AgentsCommand {
    /// What all of them have.
    pub fn rest(&self) -> &ModelsFlags {
        match self {
            Self::List(flags) | Self::Validate(flags) => flags,
            Self::Show(flags) => &flags.rest,
        }
    }
}

impl SkillsCommand {
    /// What all of them have.
    pub fn rest(&self) -> &ModelsFlags {
        match self {
            Self::List(flags) => flags,
        }
    }
}
