//! What the task tools share: the list, and a task in words.

use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::tasks::{Task, TaskError, TaskList};
use crate::tool::ToolContext;
use claw_kernel::tasks;
use serde_json::json;
use std::sync::Arc;

/// The list of the session.
pub(super) fn list(ctx: &ToolContext) -> Result<Arc<TaskList>, ToolError> {
    ctx.ports.tasks.clone().ok_or_else(|| ToolError::Refused("this session has no task list".to_owned()))
}

pub(super) fn refused(error: &TaskError) -> ToolError {
    let cause = std::error::Error::source(error).map_or_else(String::new, |cause| format!(": {cause}"));
    ToolError::Refused(format!("{error}{cause}"))
}

/// Changes the list off the runtime's threads: it is written to a file.
pub(super) async fn change(
    ctx: &ToolContext,
    change: impl FnOnce(&TaskList) -> Result<Task, TaskError> + Send + 'static,
) -> Result<(Arc<TaskList>, Task), ToolError> {
    let list = list(ctx)?;
    let own = Arc::clone(&list);
    let work = tasks::blocking("task list", move || change(&own));
    let done = work.await.map_err(|error| ToolError::Panicked(error.to_string()))?;
    done.map(|task| (list, task)).map_err(|error| refused(&error))
}

/// One line: `#3 [pending] subject (owner A; waits for #1, #2)`.
pub(super) fn line(list: &TaskList, task: &Task) -> String {
    let mut more = Vec::new();
    more.extend(task.owner.as_ref().map(|owner| format!("owner {owner}")));
    let needs: Vec<String> = list.open_needs(task).iter().map(|id| format!("#{id}")).collect();
    if !needs.is_empty() {
        more.push(format!("waits for {}", needs.join(", ")));
    }
    let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join("; ")) };
    format!("#{} [{}] {}{more}", task.id, task.status.word(), task.subject)
}

pub(super) fn output(list: &TaskList, task: &Task) -> ToolOutput {
    ToolOutput { data: json!({"task": task}), ..ToolOutput::text(line(list, task)) }
}

/// An id as models write it: a number, or one in a text.
pub(super) fn id<'de, D: serde::Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum Id {
        Number(u32),
        Text(String),
    }
    match <Id as serde::Deserialize>::deserialize(from)? {
        Id::Number(number) => Ok(number),
        Id::Text(text) => {
            text.trim().trim_start_matches('#').parse().map_err(|_| {
                serde::de::Error::custom(format!("`{text}` is no id of a task; ids are numbers"))
            })
        }
    }
}

/// Several of them.
pub(super) fn ids<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Vec<u32>>, D::Error> {
    #[derive(serde::Deserialize)]
    struct One(#[serde(deserialize_with = "id")] u32);
    let list: Option<Vec<One>> = serde::Deserialize::deserialize(from)?;
    Ok(list.map(|list| list.into_iter().map(|One(id)| id).collect()))
}
