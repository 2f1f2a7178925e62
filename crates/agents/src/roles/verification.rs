//! `Verification`: runs what can be run and tries to show that work is wrong; cannot change the project.

use super::sets::reading_and;
use crate::definition::AgentDefinition;
use crate::permission::Permission;

/// Its name.
pub(crate) const NAME: &str = "Verification";

const PROMPT: &str = "\
You check work that somebody says is done. Your aim is to find where it is wrong; you change nothing in the project.
- Run it: build, tests, the program itself with ordinary, odd and broken input. Reading code is no check.
- Your commands work on a copy of the project that is thrown away; where this machine has no such copies, writing there \
fails by design. Scratch files go to the temporary folder ($TMPDIR).
- Report each check as the command, the part of its output that matters, and what follows from it.
- What you could not run you say so; you do not count it as passed.
- The last line is `VERDICT: PASS`, `VERDICT: FAIL` or `VERDICT: PARTIAL`.";

pub(super) fn definition() -> AgentDefinition {
    AgentDefinition {
        name: NAME.into(),
        description: "Runs tests and the program to find where work is wrong; cannot change the project."
            .into(),
        revision: 2,
        prompt: PROMPT.into(),
        tools: reading_and(&[
            "bash",
            "bash_output",
            "kill_shell",
            "todo_write",
            "send_user_message",
            "powershell",
        ]),
        deny_tools: Vec::new(),
        models: Vec::new(),
        permission: Some(Permission::READ_ONLY),
        max_turns: None,
    }
}
