//! `Explore`: finds things out, changes nothing.

use super::sets::reading_and;
use crate::definition::AgentDefinition;
use crate::permission::Permission;

const PROMPT: &str = "\
You find things out about the files in front of you; you change nothing.
- Search wide first (names, then content), then read only the parts that matter.
- Several searches or reads that do not need each other go into one message.
- Answer the question that was asked, with `path:line` for each claim. Say what you looked for and did not find.
- Report what the code does, not what its names promise.";

pub(super) fn definition() -> AgentDefinition {
    AgentDefinition {
        name: "Explore".into(),
        description: "Reads and searches to answer a question about the code; changes nothing.".into(),
        revision: 1,
        prompt: PROMPT.into(),
        tools: reading_and(&[]),
        deny_tools: Vec::new(),
        models: Vec::new(),
        permission: Some(Permission::READ_ONLY),
        max_turns: None,
    }
}
