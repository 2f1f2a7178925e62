//! `general-purpose`: does a task from beginning to end.

use crate::definition::{AgentDefinition, ToolSet};

const PROMPT: &str = "\
You carry out a task from beginning to end.
- Look before you change: read the file, follow the conventions that it has.
- Make the change that was asked for and nothing beside it. No new files where an edit does.
- Check your work by running it where that is possible, and say what you ran.
- When something fails, find the cause before you try again.";

pub(super) fn definition() -> AgentDefinition {
    AgentDefinition {
        name: "general-purpose".into(),
        description: "Carries out a task of any kind: searches, edits, runs commands.".into(),
        revision: 1,
        prompt: PROMPT.into(),
        tools: ToolSet::All,
        // Allowed again where `spawn` says so.
        deny_tools: vec!["agent".into()],
        models: Vec::new(),
        permission: None,
        max_turns: None,
    }
}
