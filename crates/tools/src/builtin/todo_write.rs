//! `todo_write`: an agent's own list of what is to be done.

use crate::cut;
use crate::error::ToolError;
use crate::input;
use crate::output::ToolOutput;
use crate::tool::{Effect, Tool, ToolContext};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const NAME: &str = "todo_write";
/// Entries of a list.
const MOST: usize = 200;
/// Characters of an entry.
const MOST_TEXT: usize = 1_000;

/// Writes the todo list.
#[derive(Debug)]
pub struct TodoWrite;

/// How an entry stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// Being worked on.
    InProgress,
    /// Done.
    Completed,
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Todo {
    /// What is to be done.
    pub content: String,
    /// The same as it is shown while it is done; the content where left out.
    #[serde(default, rename = "activeForm", alias = "active_form", skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub active_form: String,
    /// How it stands.
    pub status: TodoStatus,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// The whole list, in order.
    todos: Vec<Todo>,
}

fn parse(input: &Value) -> Result<Vec<Todo>, ToolError> {
    let Input { todos } = input::parse(NAME, input)?;
    let wrong =
        |path: String, message: &str| Err(ToolError::Input { tool: NAME, path, message: message.to_owned() });
    if todos.is_empty() {
        return wrong("todos".to_owned(), "the list is empty; mark what is done as completed instead");
    }
    if todos.len() > MOST {
        return wrong("todos".to_owned(), "the list is too long: at most 200 entries");
    }
    if let Some(at) = todos.iter().position(|todo| todo.content.trim().is_empty()) {
        return wrong(format!("todos[{at}].content"), "must not be blank");
    }
    if let Some(at) = todos.iter().position(|todo| todo.content.chars().nth(MOST_TEXT).is_some()) {
        return wrong(format!("todos[{at}].content"), "is longer than 1000 characters");
    }
    Ok(todos)
}

/// The list that an earlier call left, from its input; none where that was no list. For conversations that go on.
pub fn todos_of(input: &Value) -> Option<Vec<Todo>> {
    parse(input).ok()
}

impl Tool for TodoWrite {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["todo"]
    }

    fn description(&self) -> String {
        "Keeps your list of steps for work of several steps, shown to the user. Give the whole list each time: one step in \
         progress before you begin it, completed as soon as it is."
            .to_owned()
    }

    fn input_schema(&self) -> Value {
        input::schema::<Input>()
    }

    fn effect(&self, _ctx: &ToolContext, input: &Value) -> Result<Effect, ToolError> {
        parse(input).map(|_| Effect::default())
    }

    fn call<'a>(
        &'a self,
        ctx: &'a ToolContext,
        _judged: &'a Effect,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let new = parse(&input)?;
            let count = |status| new.iter().filter(|todo| todo.status == status).count();
            let (done, all) = (count(TodoStatus::Completed), new.len());
            let now = new.iter().find(|todo| todo.status == TodoStatus::InProgress);
            let now = now.map_or_else(String::new, |todo| {
                let form = if todo.active_form.trim().is_empty() { &todo.content } else { &todo.active_form };
                format!("; now: {}", cut::head(form, 200))
            });
            let old = ctx.state.set_todos(new.clone());
            let data = json!({"oldTodos": old, "newTodos": new});
            Ok(ToolOutput { data, ..ToolOutput::text(format!("{done} of {all} done{now}")) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Work, ok, refused};
    use super::*;

    #[tokio::test]
    async fn a_list_takes_the_place_of_the_one_before() {
        let work = Work::new();
        let ctx = work.agent("A");
        let list = |status: &str| {
            json!({"todos": [
                {"content": "read", "activeForm": "reading", "status": "completed"},
                {"content": "write", "active_form": "writing", "status": status},
                {"content": "look", "status": status},
            ]})
        };
        assert_eq!(ok(&TodoWrite, &ctx, list("in_progress")).await.text, "1 of 3 done; now: writing");
        let second = ok(&TodoWrite, &ctx, list("completed")).await;
        assert_eq!(second.text, "3 of 3 done");
        assert_eq!(second.data["oldTodos"][1]["status"], "in_progress");
        assert_eq!(ctx.state.todos().len(), 3);
        assert!(work.agent("B").state.todos().is_empty(), "each agent has its own");
    }

    #[tokio::test]
    async fn an_empty_list_or_a_blank_entry_is_an_error() {
        let work = Work::new();
        let ctx = work.agent("A");
        for (todos, word) in [
            (json!([]), "empty"),
            (json!([{"content": " ", "status": "pending"}]), "todos[0].content"),
            (json!([{"content": "x", "status": "done"}]), "todos[0].status"),
        ] {
            let text = refused(&TodoWrite, &ctx, json!({"todos": todos})).await;
            assert!(text.contains(word), "{text}");
        }
        assert!(ctx.state.todos().is_empty());
    }
}
