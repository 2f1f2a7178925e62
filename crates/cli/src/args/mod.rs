//! What was typed, and what it means. The only room that knows clap.
//!
//! Reads no file, starts nothing: `--version`, `--help` and every usage error end here.

mod grammar;
mod library;
mod machine;
mod mcp;
mod meaning;
mod misuse;
mod runs;
mod saved;
mod sessions;
mod settings;
#[cfg(test)]
mod tests;

pub use grammar::{
    CheckFlags, Format, GraphFlags, GraphForm, InputFlags, InputFormat, ModelsFlags, Rerun, RunFlags,
    SessionFlags, TalkFlags, WorkflowCommand,
};
pub use library::{AgentsCommand, SkillsCommand};
pub use machine::{DoctorFlags, NetworkFlag, SandboxFlags};
pub use mcp::{McpAddFlags, McpCommand, McpOneFlags, McpRemoveFlags, Transport};
pub use meaning::{Command, Early, PrintFlags, SavedFlags, Shell, completions, parse};
pub use runs::{AnswerFlags, GcFlags, MessageFlags, OneRunFlags, RunsCommand, ShowFlags, WatchFlags};
pub use saved::SavedCommand;
pub use sessions::{ExportFlags, ExportFormat, ResumeFlags, SystemPromptFlags};
pub use settings::{
    ConfigCommand, ConfigFlags, ConfigSetFlags, FileScope, LoginFlags, SettingsFlags, TrustCommand,
    TrustItemFlags, TrustItemsFlags, TrustListFlags,
};
