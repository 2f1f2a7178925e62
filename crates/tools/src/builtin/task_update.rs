//! `task_update`: changes a task of the session.

use super::task_words::{change, id, ids, output};
use crate::error::ToolError;
use crate::input;
use crate::output::ToolOutput;
use crate::tasks::{TaskChange, TaskStatus};
use crate::tool::{Effect, Tool, ToolContext};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

const NAME: &str = "task_update";

/// Changes a task of the session.
#[derive(Debug)]
pub struct TaskUpdate;

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// Which task.
    #[serde(alias = "taskId", alias = "task_id", deserialize_with = "id")]
    id: u32,
    /// How it stands now.
    #[serde(default)]
    status: Option<Status>,
    /// Who works on it; empty: nobody.
    #[serde(default)]
    owner: Option<String>,
    /// What is to be done.
    #[serde(default, alias = "title")]
    subject: Option<String>,
    /// More about it.
    #[serde(default)]
    description: Option<String>,
    /// Ids of tasks that come first: the whole list.
    #[serde(
        default,
        rename = "blockedBy",
        alias = "blocked_by",
        alias = "addBlockedBy",
        deserialize_with = "ids"
    )]
    #[schemars(with = "Option<Vec<u32>>")]
    blocked_by: Option<Vec<u32>>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Completed,
    #[serde(alias = "deleted")]
    Cancelled,
}

impl Tool for TaskUpdate {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    fn description(&self) -> String {
        "Changes a task: its state, its owner, what it waits for. Take a task by making yourself its owner."
            .to_owned()
    }

    fn input_schema(&self) -> Value {
        input::schema::<Input>()
    }

    fn effect(&self, _ctx: &ToolContext, input: &Value) -> Result<Effect, ToolError> {
        input::parse::<Input>(NAME, input).map(|_| Effect::default())
    }

    fn call<'a>(
        &'a self,
        ctx: &'a ToolContext,
        _judged: &'a Effect,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let Input { id, status, owner, subject, description, blocked_by } = input::parse(NAME, &input)?;
            let status = status.map(|status| match status {
                Status::Pending => TaskStatus::Pending,
                Status::InProgress => TaskStatus::InProgress,
                Status::Completed => TaskStatus::Completed,
                Status::Cancelled => TaskStatus::Cancelled,
            });
            let task = TaskChange { subject, description, status, owner, blocked_by };
            if task == TaskChange::default() {
                return Err(ToolError::Refused("nothing was given that changes the task".to_owned()));
            }
            let (list, task) = change(ctx, move |list| list.update(id, task)).await?;
            Ok(output(&list, &task))
        })
    }
}
