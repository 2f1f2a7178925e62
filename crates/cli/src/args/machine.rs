//! The grammar of what concerns the machine: `claw sandbox`, `claw doctor`.

use super::grammar::Format;
use super::settings::SettingsFlags;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Whether commands have a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NetworkFlag {
    /// None
    Off,
    /// Free
    On,
}

/// Flags of `claw sandbox`.
#[derive(Args, Clone, Debug)]
pub struct SandboxFlags {
    /// The network of the command; as the settings say where it is left out
    #[arg(long, value_enum, value_name = "STATE")]
    pub network: Option<NetworkFlag>,
    /// Nothing is written but a private temporary folder
    #[arg(long)]
    pub read_only: bool,
    /// What is written goes to a copy of the folder that is thrown away
    #[arg(long, conflicts_with = "read_only")]
    pub copy: bool,
    /// The folder that the command works in and may write
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
    /// Settings of this call.
    #[command(flatten)]
    pub settings: SettingsFlags,
    /// The command and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<OsString>,
}

/// Flags of `claw doctor`.
#[derive(Args, Clone, Debug)]
pub struct DoctorFlags {
    /// How the report is printed
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub output_format: Format,
    /// Look at this folder
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
    /// Settings of this call.
    #[command(flatten)]
    pub settings: SettingsFlags,
}
