//! The grammar of settings and trust: the flags that many commands have, `claw config`, `claw trust`, `claw login`.

use super::grammar::{Format, not_blank};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// What is said about settings beside the files.
#[derive(Args, Clone, Debug, Default)]
pub struct SettingsFlags {
    /// More settings: a file, or JSON such as '{"theme": "none"}'; they go before all other files but the policy
    #[arg(long, value_name = "FILE-or-JSON", value_parser = not_blank)]
    pub settings: Option<String>,
    /// Let everything count that this repository brings: hooks, servers, variables, rules (this time)
    #[arg(long)]
    pub trust: bool,
}

/// Flags of `claw config`.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ConfigFlags {
    /// A section, such as `permissions` or `limits.depth`; all where it is left out
    #[arg(value_name = "SECTION", value_parser = not_blank)]
    pub section: Option<String>,
    #[command(flatten)]
    pub(super) rest: ConfigRest,
    #[command(subcommand)]
    pub(super) command: Option<ConfigCommand>,
}

/// Format, folder, further settings.
#[derive(Args, Clone, Debug, Default)]
pub struct ConfigRest {
    /// How the list is printed
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub output_format: Format,
    /// Work in this folder
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
    /// Settings of this call.
    #[command(flatten)]
    pub settings: SettingsFlags,
}

impl ConfigFlags {
    /// Format, folder, further settings.
    pub fn rest(&self) -> &ConfigRest {
        &self.rest
    }

    /// What to do instead of showing.
    pub fn command(&self) -> Option<&ConfigCommand> {
        self.command.as_ref()
    }
}

/// `claw config …`.
#[derive(Clone, Debug, Subcommand)]
pub enum ConfigCommand {
    /// Set a key in a file of yours; comments and order stay
    Set(ConfigSetFlags),
    /// Print the reference of all keys
    Reference,
}

/// Whose file is changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FileScope {
    /// `settings.json` in claw's folder
    #[default]
    User,
    /// `.claw/settings.local.json` of this project
    Local,
    /// `.claw/settings.json` of this project, which others get too
    Project,
}

/// Flags of `claw config set`.
#[derive(Args, Clone, Debug)]
pub struct ConfigSetFlags {
    /// The key, such as `theme` or `permissions.defaultMode`
    #[arg(value_name = "KEY", value_parser = not_blank)]
    pub key: String,
    /// The value: JSON, or a text
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    pub value: String,
    /// Whose file is changed
    #[arg(long, value_enum, value_name = "SCOPE", default_value_t)]
    pub scope: FileScope,
    /// Work in this folder
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
}

/// `claw trust …`.
#[derive(Clone, Debug, Subcommand)]
pub enum TrustCommand {
    /// List what this repository brings, and what you decided on it
    List(TrustListFlags),
    /// Show one item whole
    Show(TrustItemFlags),
    /// Let items count from now on
    Accept(TrustItemsFlags),
    /// Do not let items count, and do not ask again
    Refuse(TrustItemsFlags),
    /// Forget decisions: they are asked for again
    Revoke(TrustItemsFlags),
}

/// Flags of `claw trust list`.
#[derive(Args, Clone, Debug)]
pub struct TrustListFlags {
    /// How the list is printed
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub output_format: Format,
    /// Work in this folder
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
}

/// Flags of `claw trust show`.
#[derive(Args, Clone, Debug)]
pub struct TrustItemFlags {
    /// The item, as `claw trust list` names it
    #[arg(value_name = "ITEM", value_parser = not_blank)]
    pub item: String,
    #[command(flatten)]
    pub(super) rest: TrustListFlags,
}

impl TrustItemFlags {
    /// Format and folder.
    pub fn rest(&self) -> &TrustListFlags {
        &self.rest
    }
}

/// Flags of decisions.
#[derive(Args, Clone, Debug)]
pub struct TrustItemsFlags {
    /// Items, as `claw trust list` names them
    #[arg(value_name = "ITEM", value_parser = not_blank, required_unless_present = "all")]
    pub items: Vec<String>,
    /// All of them
    #[arg(long, conflicts_with = "items")]
    pub all: bool,
    /// Work in this folder
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
}

/// Flags of `claw login` and `claw logout`.
#[derive(Args, Clone, Debug)]
pub struct LoginFlags {
    /// The provider: anthropic, openai, xai, or one of your settings
    #[arg(value_name = "PROVIDER", value_parser = not_blank)]
    pub provider: Option<String>,
    /// Work in this folder
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
}
