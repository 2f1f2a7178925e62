//! The grammar of `claw mcp …`.

use super::grammar::ModelsFlags;
use super::settings::FileScope;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// `claw mcp …`.
#[derive(Clone, Debug, Subcommand)]
pub enum McpCommand {
    /// Start all servers and list how each is
    List(ModelsFlags),
    /// Start one server and show what it offers
    Get(McpOneFlags),
    /// Add a server to the settings
    Add(McpAddFlags),
    /// Take a server out of the settings
    Remove(McpRemoveFlags),
    /// Say yes to the tools of a server as they are now
    Approve(McpOneFlags),
}

/// How a server is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// A program that is talked to through its pipes
    #[default]
    Stdio,
    /// An address
    Http,
}

/// One server.
#[derive(Args, Clone, Debug)]
pub struct McpOneFlags {
    /// The server
    #[arg(value_name = "NAME")]
    pub name: String,
    #[command(flatten)]
    pub rest: ModelsFlags,
}

/// `claw mcp add`.
#[derive(Args, Clone, Debug)]
pub struct McpAddFlags {
    /// What it is called here
    #[arg(value_name = "NAME")]
    pub name: String,
    /// How it is reached
    #[arg(long, short, value_enum, value_name = "KIND", default_value_t)]
    pub transport: Transport,
    /// A variable for the program, `NAME=VALUE`; `${NAME}` is put in when it starts
    #[arg(long, short, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// A header for the address, `NAME: VALUE`
    #[arg(long, short = 'H', value_name = "NAME: VALUE")]
    pub header: Vec<String>,
    /// Whose file is changed
    #[arg(long, short, value_enum, value_name = "SCOPE", default_value_t)]
    pub scope: FileScope,
    /// Work in this folder
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
    /// The program and its arguments, or the address
    #[arg(
        value_name = "COMMAND-OR-URL",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub target: Vec<String>,
}

/// `claw mcp remove`.
#[derive(Args, Clone, Debug)]
pub struct McpRemoveFlags {
    /// The server
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Whose file is changed
    #[arg(long, short, value_enum, value_name = "SCOPE", default_value_t)]
    pub scope: FileScope,
    /// Work in this folder
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
}
