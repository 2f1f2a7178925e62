//! The grammar of sessions: `claw resume`, `claw export`, `claw system-prompt`.

use super::grammar::{Format, not_blank};
use super::settings::SettingsFlags;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Flags of `claw resume`.
#[derive(Args, Clone, Debug)]
pub struct ResumeFlags {
    /// The session to rename or delete: an id, the beginning of one, its name, a file, or `latest`
    #[arg(value_name = "REF", value_parser = not_blank)]
    pub reference: Option<String>,
    /// Show the sessions in which these words were said
    #[arg(long, value_name = "WORDS", value_parser = not_blank, conflicts_with_all = ["reference", "rename", "delete"])]
    pub search: Option<String>,
    /// Give the session this name; empty takes it away
    #[arg(long, value_name = "NAME", requires = "reference", conflicts_with = "delete")]
    pub rename: Option<String>,
    /// Delete the session and all that lies beside it
    #[arg(long, requires = "reference")]
    pub delete: bool,
    /// How the list is printed
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub output_format: Format,
    /// Work in this folder
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
}

/// How a session is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// For people
    #[default]
    Markdown,
    /// For programs
    Json,
}

/// Flags of `claw export`.
#[derive(Args, Clone, Debug)]
pub struct ExportFlags {
    /// The session: an id, the beginning of one, its name, a file, or `latest`
    #[arg(value_name = "REF", value_parser = not_blank, default_value = "latest")]
    pub reference: String,
    /// Where it is written; left out: standard output
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The form; left out: by the ending of FILE, else Markdown
    #[arg(long, value_enum, value_name = "FORM")]
    pub format: Option<ExportFormat>,
    /// Work in this folder
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
}

/// Flags of `claw system-prompt`.
#[derive(Args, Clone, Debug)]
pub struct SystemPromptFlags {
    /// Work in this folder
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
    /// The date that it names, as 2026-01-31; left out: today
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub date: Option<String>,
    /// Settings of this call.
    #[command(flatten)]
    pub settings: SettingsFlags,
}

/// No day of a calendar.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no date such as 2026-01-31")]
struct NoDate(String);

fn date(raw: &str) -> Result<String, NoDate> {
    let parts: Vec<&str> = raw.split('-').collect();
    let number = |text: &str, digits: usize| {
        (text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| text.parse::<u32>().ok())?
    };
    let is_date = match parts.as_slice() {
        [year, month, day] => {
            number(year, 4).is_some()
                && number(month, 2).is_some_and(|month| (1..=12).contains(&month))
                && number(day, 2).is_some_and(|day| (1..=31).contains(&day))
        }
        [..] => false,
    };
    if is_date { Ok(raw.to_owned()) } else { Err(NoDate(raw.to_owned())) }
}
