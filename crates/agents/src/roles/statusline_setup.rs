//! `statusline-setup`: writes the script that draws the user's status line.

use crate::definition::{AgentDefinition, ToolSet};

const TOOLS: [&str; 7] =
    ["bash", "read_file", "write_file", "edit_file", "glob_search", "grep_search", "tool_search"];

const PROMPT: &str = "\
You set up the status line of claw: one line under its input, written by a script that the user owns.
- Ask of the task what the line shall show. Where it names the prompt of a shell, read that from its start-up files and
  turn it into the same text: without the final `$` or `#`, colours kept.
- Write a small script, run it once with an example on its input, and show what it prints.
- The script gets JSON on its standard input and prints one line within a second; it never asks and never changes a file.
- Settings are not yours to write: end with the lines that the user puts there to use the script.";

pub(super) fn definition() -> AgentDefinition {
    AgentDefinition {
        name: "statusline-setup".into(),
        description: "Writes a script for the status line.".into(),
        revision: 1,
        prompt: PROMPT.into(),
        tools: ToolSet::Only(TOOLS.iter().map(|name| (*name).to_owned()).collect()),
        deny_tools: Vec::new(),
        models: Vec::new(),
        permission: None,
        max_turns: None,
    }
}
