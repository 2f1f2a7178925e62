//! Who is there beyond the machine: a person, settings, a task list, a small model. Each may be missing; a tool that needs
//! one that is missing is not offered.
//!
//! Owns the traits. Knows nothing of who implements them.

use crate::error::ToolError;
use crate::tasks::TaskList;
use crate::web::{SearchService, Web};
use claw_kernel::cancel::CancelToken;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// What tools of all conversations of a process share.
#[derive(Clone, Default)]
pub struct Ports {
    /// Answers questions.
    pub person: Option<Arc<dyn Person>>,
    /// Reads and changes settings.
    pub settings: Option<Arc<dyn SettingsPort>>,
    /// The task list of the session.
    pub tasks: Option<Arc<TaskList>>,
    /// A small model that reads long pages.
    pub reader: Option<Arc<dyn PageReader>>,
    /// The web.
    pub web: Arc<Web>,
    /// Searches the web.
    pub search: Option<SearchService>,
}

impl fmt::Debug for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ports")
            .field("person", &self.person.is_some())
            .field("settings", &self.settings.is_some())
            .field("tasks", &self.tasks.is_some())
            .field("reader", &self.reader.is_some())
            .field("search", &self.search)
            .finish_non_exhaustive()
    }
}

/// A choice that a person can make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What is chosen.
    pub label: String,
    /// What it means; may be empty.
    pub description: String,
}

/// A question of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Who asks.
    pub agent: String,
    /// What is asked. Not blank, without known secrets; control characters are still in it.
    pub text: String,
    /// What can be chosen; none: any answer.
    pub choices: Vec<Choice>,
    /// Whether several can be chosen.
    pub several: bool,
}

/// What a person answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// These choices, by label.
    Chosen(Vec<String>),
    /// Own words.
    Said(String),
    /// Nothing: the question was put away, or nobody is there any more.
    Nothing,
}

/// What a person says to a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanReply {
    /// It shall be carried out.
    Accepted,
    /// It shall not, for this reason where one was given.
    Refused(Option<String>),
}

/// Somebody at a terminal. A question whose call is cancelled is dropped: then nobody waits for the answer.
pub trait Person: Send + Sync {
    /// Asks.
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer>;
    /// Shows a plan (Markdown) of an agent and asks whether it shall be carried out.
    fn judge_plan(&self, agent: &str, plan: &str) -> BoxFuture<'_, PlanReply>;
}

/// How far along an agent says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageStatus {
    /// It goes on.
    Working,
    /// It needs something.
    Blocked,
    /// It has finished.
    Done,
}

/// A word of an agent to the user, besides its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserMessage {
    /// Who says it.
    pub agent: String,
    /// Markdown.
    pub text: String,
    /// How far along it is.
    pub status: MessageStatus,
    /// Files to look at (resolved, there).
    pub attachments: Vec<PathBuf>,
}

/// Shows messages of one conversation at once.
pub trait Messenger: Send + Sync {
    /// Done when it is on its way.
    fn tell(&self, message: UserMessage) -> BoxFuture<'_, ()>;
}

/// Why a setting was not read or changed. For the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// No such setting.
    #[error("there is no setting `{name}`{}", near.as_deref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
    Unknown {
        /// As typed.
        name: String,
        /// A near one.
        near: Option<String>,
    },
    /// It is not of the kind that the setting takes, or it could not be kept.
    #[error("`{name}` was not changed: {why}")]
    Refused {
        /// The setting.
        name: String,
        /// Why.
        why: String,
    },
}

/// The settings of the user. What governs permissions, hooks, MCP, providers, sandbox or environment never comes here:
/// the tool refuses those before it asks.
pub trait SettingsPort: Send + Sync {
    /// Names that can be read.
    fn names(&self) -> Vec<String>;
    /// The value in force.
    fn get(&self, name: &str) -> Result<Value, SettingError>;
    /// Changes it for the user, durably. Blocks.
    fn set(&self, name: &str, value: Value) -> Result<(), SettingError>;
}

/// A small model that answers a question about a page.
pub trait PageReader: Send + Sync {
    /// The answer. `page` is Markdown from a stranger: material, never orders.
    fn read<'a>(
        &'a self,
        page: &'a str,
        prompt: &'a str,
        cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<String, ToolError>>;
}
