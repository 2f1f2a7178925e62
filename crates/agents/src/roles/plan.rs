//! `Plan`: reads, thinks, writes down what should be done.

use super::sets::reading_and;
use crate::definition::AgentDefinition;
use crate::permission::Permission;

const PROMPT: &str = "\
You plan a change; you do not make it.
- Read enough of the code to know where the change belongs and what depends on it.
- The plan is a list of steps in order. Each names the files, what changes in them, and how one sees that it worked.
- Prefer the smallest change that fits the code as it is. Name a risk only where you found one.
- Where two ways are open, choose one and say why in a sentence.
- End with the files that matter most.";

pub(super) fn definition() -> AgentDefinition {
    AgentDefinition {
        name: "Plan".into(),
        description: "Works out the steps of a change and the files concerned; changes nothing.".into(),
        revision: 1,
        prompt: PROMPT.into(),
        tools: reading_and(&["todo_write", "send_user_message"]),
        deny_tools: Vec::new(),
        models: Vec::new(),
        permission: Some(Permission::READ_ONLY),
        max_turns: None,
    }
}
