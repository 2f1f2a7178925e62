//! `task_create`: adds a task to the list of the session.

use super::task_words::{change, ids, output};
use crate::error::ToolError;
use crate::input;
use crate::output::ToolOutput;
use crate::tasks::TaskChange;
use crate::tool::{Effect, Tool, ToolContext};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

const NAME: &str = "task_create";

/// Adds a task to the list of the session.
#[derive(Debug)]
pub struct TaskCreate;

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// What is to be done, in a line.
    #[serde(alias = "title")]
    subject: String,
    /// More about it.
    #[serde(default)]
    description: Option<String>,
    /// Who works on it.
    #[serde(default)]
    owner: Option<String>,
    /// Ids of tasks that come first.
    #[serde(default, rename = "blockedBy", alias = "blocked_by", deserialize_with = "ids")]
    #[schemars(with = "Option<Vec<u32>>")]
    blocked_by: Option<Vec<u32>>,
}

impl Tool for TaskCreate {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    fn description(&self) -> String {
        "Adds a task to the list that all agents of this session share.".to_owned()
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
            let Input { subject, description, owner, blocked_by } = input::parse(NAME, &input)?;
            let task = TaskChange { subject: Some(subject), description, status: None, owner, blocked_by };
            let (list, task) = change(ctx, move |list| list.create(task)).await?;
            Ok(output(&list, &task))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Work, ok, refused};
    use super::super::{TaskGet, TaskListTool, TaskUpdate};
    use super::*;
    use crate::ports::Ports;
    use crate::tasks::TaskList;
    use serde_json::json;
    use std::sync::Arc;

    #[tokio::test]
    async fn agents_of_a_session_share_one_list() {
        let work = Work::new();
        let ports = Arc::new(Ports { tasks: Some(Arc::new(TaskList::in_memory())), ..Ports::default() });
        let (mut a, mut b) = (work.agent("A"), work.agent("B"));
        assert!(refused(&TaskCreate, &a, json!({"subject": "x"})).await.contains("no task list"));
        a.ports = Arc::clone(&ports);
        b.ports = ports;
        assert_eq!(ok(&TaskListTool, &b, json!({})).await.text, "no tasks");
        ok(&TaskCreate, &a, json!({"subject": "read", "description": "all of it"})).await;
        let two = ok(&TaskCreate, &a, json!({"subject": "write", "blockedBy": ["1"]})).await;
        assert_eq!(two.text, "#2 [pending] write (waits for #1)");
        let update = json!({"taskId": "1", "status": "in_progress", "owner": "B"});
        assert_eq!(ok(&TaskUpdate, &b, update).await.text, "#1 [in_progress] read (owner B)");
        ok(&TaskUpdate, &b, json!({"id": 1, "status": "completed"})).await;
        let all = ok(&TaskListTool, &a, json!({})).await.text;
        assert_eq!(all, "#1 [completed] read (owner B)\n#2 [pending] write");
        assert!(ok(&TaskGet, &a, json!({"id": 1})).await.text.ends_with("all of it"));
        assert!(refused(&TaskGet, &a, json!({"id": 7})).await.contains("no task 7"));
        assert!(
            refused(&TaskUpdate, &a, json!({"id": 1, "blockedBy": [2]})).await.contains("wait for itself")
        );
        assert!(refused(&TaskUpdate, &a, json!({"id": 1})).await.contains("nothing"));
    }
}
