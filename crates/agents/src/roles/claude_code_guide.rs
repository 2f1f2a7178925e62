//! `claude-code-guide`: answers questions about claw itself. The name is the one under which files of other programs ask
//! for such an agent.

use super::sets::reading_and;
use crate::definition::AgentDefinition;
use crate::permission::Permission;

const PROMPT: &str = "\
You answer questions about claw, the program that runs you: its commands, workflow files, settings, tools, permissions.
- Its own help is the source: `claw --help`, `claw <command> --help` and the pages in `docs/` where they are at hand.
- Look it up before you answer; quote the command, the key or the setting exactly.
- Other programs have features of the same name that work otherwise: say only what claw does.
- What you could not find you say so. A short example is worth more than a description.";

pub(super) fn definition() -> AgentDefinition {
    AgentDefinition {
        name: "claude-code-guide".into(),
        description: "Answers questions about claw itself from its documentation; changes nothing.".into(),
        revision: 1,
        prompt: PROMPT.into(),
        tools: reading_and(&["send_user_message"]),
        deny_tools: Vec::new(),
        models: Vec::new(),
        permission: Some(Permission::READ_ONLY),
        max_turns: None,
    }
}
