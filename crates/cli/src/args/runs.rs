//! The grammar of `claw runs …`.

use super::grammar::{GraphForm, ModelsFlags, not_blank};
use clap::{Args, Subcommand};

/// `claw runs …`.
#[derive(Clone, Debug, Subcommand)]
pub enum RunsCommand {
    /// List the runs of this project, newest first
    List(ModelsFlags),
    /// Show one run, or one step of it
    Show(ShowFlags),
    /// Watch a run until it ends; one that nobody works on is shown as it stands
    Watch(WatchFlags),
    /// Stop a run: everything ends within two seconds and can be gone on with later
    Stop(OneRunFlags),
    /// Pause a run: nothing new starts, what runs may finish
    Pause(OneRunFlags),
    /// Answer the question of a step; without a process at work it counts for the next --resume
    Answer(AnswerFlags),
    /// Say something to a running agent: it hears it at its next step
    Message(MessageFlags),
    /// List old runs and worktrees that nothing needs; with --yes remove them
    Gc(GcFlags),
}

impl RunsCommand {
    /// Format and folder.
    pub fn rest(&self) -> &ModelsFlags {
        match self {
            Self::List(rest) => rest,
            Self::Show(flags) => &flags.rest,
            Self::Watch(flags) => &flags.rest,
            Self::Stop(flags) | Self::Pause(flags) => &flags.rest,
            Self::Answer(flags) => &flags.rest,
            Self::Message(flags) => &flags.rest,
            Self::Gc(flags) => &flags.rest,
        }
    }
}

/// Flags of `claw runs show`.
#[derive(Args, Clone, Debug)]
pub struct ShowFlags {
    /// The run: its id, the beginning or end of it, or `latest`
    #[arg(value_name = "RUN", value_parser = not_blank)]
    pub run: String,
    /// A step of it, such as `explore=security`
    #[arg(value_name = "STEP")]
    pub step: Option<String>,
    /// Draw its graph, each node with how it stands
    #[arg(long, value_enum, value_name = "FORM", num_args = 0..=1, default_missing_value = "ascii",
        conflicts_with = "step")]
    pub graph: Option<GraphForm>,
    #[command(flatten)]
    pub(super) rest: ModelsFlags,
}

impl ShowFlags {
    /// Format and folder.
    pub fn rest(&self) -> &ModelsFlags {
        &self.rest
    }
}

/// Flags of `claw runs watch`.
#[derive(Args, Clone, Debug)]
pub struct WatchFlags {
    /// The run: its id, the beginning or end of it, or `latest`
    #[arg(value_name = "RUN", value_parser = not_blank)]
    pub run: String,
    /// Plain lines instead of bars
    #[arg(long)]
    pub no_progress: bool,
    /// With stream-json: print the text of agents as it comes
    #[arg(long)]
    pub include_partial_messages: bool,
    #[command(flatten)]
    pub(super) rest: ModelsFlags,
}

impl WatchFlags {
    /// Format and folder.
    pub fn rest(&self) -> &ModelsFlags {
        &self.rest
    }
}

/// Flags of commands that want a run and nothing else.
#[derive(Args, Clone, Debug)]
pub struct OneRunFlags {
    /// The run: its id, the beginning or end of it, or `latest`
    #[arg(value_name = "RUN", value_parser = not_blank)]
    pub run: String,
    #[command(flatten)]
    pub(super) rest: ModelsFlags,
}

impl OneRunFlags {
    /// Format and folder.
    pub fn rest(&self) -> &ModelsFlags {
        &self.rest
    }
}

/// Flags of `claw runs answer`.
#[derive(Args, Clone, Debug)]
pub struct AnswerFlags {
    /// The run: its id, the beginning or end of it, or `latest`
    #[arg(value_name = "RUN", value_parser = not_blank)]
    pub run: String,
    /// The step that asks
    #[arg(value_name = "STEP", value_parser = not_blank)]
    pub step: String,
    /// One of its choices
    #[arg(value_name = "CHOICE", value_parser = not_blank)]
    pub choice: String,
    /// A word with it, for the steps that read the answer
    #[arg(long, value_name = "TEXT")]
    pub comment: Option<String>,
    #[command(flatten)]
    pub(super) rest: ModelsFlags,
}

impl AnswerFlags {
    /// Format and folder.
    pub fn rest(&self) -> &ModelsFlags {
        &self.rest
    }
}

/// Flags of `claw runs message`.
#[derive(Args, Clone, Debug)]
pub struct MessageFlags {
    /// The run: its id, the beginning or end of it, or `latest`
    #[arg(value_name = "RUN", value_parser = not_blank)]
    pub run: String,
    /// The step whose agent is meant
    #[arg(value_name = "STEP", value_parser = not_blank)]
    pub step: String,
    /// What it is told
    #[arg(value_name = "TEXT", value_parser = not_blank)]
    pub text: String,
    #[command(flatten)]
    pub(super) rest: ModelsFlags,
}

impl MessageFlags {
    /// Format and folder.
    pub fn rest(&self) -> &ModelsFlags {
        &self.rest
    }
}

/// Flags of `claw runs gc`.
#[derive(Args, Clone, Debug)]
pub struct GcFlags {
    /// Remove what is listed
    #[arg(long)]
    pub yes: bool,
    /// Runs that can be gone on with and branches that were never merged too
    #[arg(long)]
    pub force: bool,
    /// Runs that ended so many days ago are old
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub days: u32,
    #[command(flatten)]
    pub(super) rest: ModelsFlags,
}

impl GcFlags {
    /// Format and folder.
    pub fn rest(&self) -> &ModelsFlags {
        &self.rest
    }
}
