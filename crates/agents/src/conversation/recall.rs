//! What a conversation that goes on had set up: read from its history, where every step of it stands. Pure.

use super::toolbox::SEARCH;
use claw_providers::message::{Block, Message};
use claw_tools::builtin::{PLAN_ACCEPTED, Todo, loaded_by, todos_of};
use claw_tools::registry::Registry;
use claw_tools::state::ConversationState;
use std::collections::HashMap;

/// Puts tools that were loaded, the todo list and the plan mode back. The tools held back are set before.
pub(crate) fn recall<'m>(
    state: &ConversationState,
    registry: &Registry,
    messages: impl IntoIterator<Item = &'m Message> + Clone,
) {
    state.load(loaded_in(registry, messages.clone()));
    let Kept { todos, is_planning } = kept_in(registry, messages);
    if let Some(todos) = todos {
        state.set_todos(todos);
    }
    state.set_planning(is_planning);
}

#[derive(Debug, Default, PartialEq)]
struct Kept {
    todos: Option<Vec<Todo>>,
    is_planning: bool,
}

/// The last todo list that was taken, and whether a plan is still to be accepted.
fn kept_in<'m>(registry: &Registry, messages: impl IntoIterator<Item = &'m Message>) -> Kept {
    let (mut kept, mut calls) = (Kept::default(), HashMap::new());
    for block in messages.into_iter().flat_map(|message| &message.content) {
        match block {
            Block::ToolUse { id, name, input } => {
                calls.extend(registry.canonical(name).map(|name| (id.as_str(), (name, input))));
            }
            Block::ToolResult { tool_use_id, content, is_error: false, .. } => {
                match calls.get(tool_use_id.as_str()) {
                    Some(("todo_write", input)) => kept.todos = todos_of(input).or(kept.todos.take()),
                    Some(("enter_plan_mode", _)) => kept.is_planning = true,
                    Some(("exit_plan_mode", _)) => kept.is_planning &= !content.starts_with(PLAN_ACCEPTED),
                    Some(_) | None => {}
                }
            }
            Block::ToolResult { .. }
            | Block::Text { .. }
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::Image(_) => {}
        }
    }
    kept
}

/// The tools that a history asked for: by a search, or by a call. In that order, each once.
fn loaded_in<'m>(registry: &Registry, messages: impl IntoIterator<Item = &'m Message>) -> Vec<&'static str> {
    let (mut loaded, mut searches) = (Vec::new(), Vec::new());
    for block in messages.into_iter().flat_map(|message| &message.content) {
        let mut found = Vec::new();
        match block {
            Block::ToolUse { id, name, .. } => match registry.canonical(name) {
                Some(SEARCH) => searches.push(id.as_str()),
                Some(name) => found.push(name),
                None => {}
            },
            Block::ToolResult { tool_use_id, content, is_error: false, .. }
                if searches.contains(&tool_use_id.as_str()) =>
            {
                found.extend(loaded_by(content).filter_map(|name| registry.canonical(name)));
            }
            Block::ToolResult { .. }
            | Block::Text { .. }
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::Image(_) => {}
        }
        for name in found {
            if !loaded.contains(&name) {
                loaded.push(name);
            }
        }
    }
    loaded
}

#[cfg(test)]
mod tests {
    use super::*;
    use claw_providers::message::Role;
    use serde_json::{Value, json};

    fn use_of(id: &str, name: &str, input: Value) -> Block {
        Block::ToolUse { id: id.into(), name: name.into(), input }
    }

    fn result(id: &str, text: &str, is_error: bool) -> Block {
        Block::ToolResult { tool_use_id: id.into(), content: text.into(), images: Vec::new(), is_error }
    }

    fn message(content: Vec<Block>) -> Message {
        Message { role: Role::User, content }
    }

    #[test]
    fn a_history_tells_which_tools_were_loaded() {
        let history = [
            message(vec![use_of("1", "ToolSearch", json!({})), use_of("2", "bash", json!({}))]),
            message(vec![
                result("1", "loaded: repl, gone\n- repl: x", false),
                result("2", "loaded: config", false),
            ]),
            message(vec![use_of("3", "Sleep", json!({}))]),
        ];
        assert_eq!(loaded_in(&Registry::every(), &history), ["bash", "repl", "sleep"]);
    }

    #[test]
    fn a_history_tells_the_todo_list_and_whether_a_plan_is_open() {
        let todos = |text: &str| json!({"todos": [{"content": text, "status": "pending"}]});
        let mut history = vec![
            message(vec![use_of("1", "TodoWrite", todos("a")), use_of("2", "enter_plan_mode", json!({}))]),
            message(vec![result("1", "0 of 1 done", false), result("2", "plan mode", false)]),
            message(vec![use_of("3", "todo_write", todos("b")), use_of("4", "exit_plan_mode", json!({}))]),
            message(vec![
                result("3", "broken", true),
                result("4", "the user did not accept the plan", false),
            ]),
        ];
        let kept = kept_in(&Registry::every(), &history);
        assert_eq!((kept.todos.unwrap()[0].content.as_str(), kept.is_planning), ("a", true));
        history.push(message(vec![use_of("5", "ExitPlanMode", json!({}))]));
        history.push(message(vec![result("5", PLAN_ACCEPTED, false)]));
        assert!(!kept_in(&Registry::every(), &history).is_planning);
    }
}
