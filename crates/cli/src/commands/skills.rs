//! `claw skills`: what agents can load here.

use crate::args::{Format, SkillsCommand};
use crate::error::{ExpectedError, exit};
use crate::services::Setup;
use crate::terminal::{say, write_stdout};
use claw_kernel::visible::visible_line;
use serde_json::{Value, json};
use std::fmt::Write;

/// Lists them.
///
/// # Errors
/// Standard output.
pub fn run(command: &SkillsCommand) -> Result<u8, ExpectedError> {
    let SkillsCommand::List(flags) = command;
    let setup = Setup::read(flags.cwd.as_deref())?;
    let library = setup.library();
    let skills = || library.skills().iter().filter(|entry| entry.hidden_by.is_none());
    if flags.output_format != Format::Text {
        let all: Vec<Value> = skills()
            .map(|entry| {
                json!({
                    "name": entry.item.name,
                    "description": entry.item.description,
                    "source": entry.source.to_string(),
                    "file": entry.path,
                    "user_invocable": entry.item.user_invocable,
                    "model_invocable": entry.item.model_invocable,
                })
            })
            .collect();
        write_stdout(format!("{}\n", Value::Array(all)))?;
        return Ok(exit::OK);
    }
    if skills().next().is_none() {
        say(
            "no skills here; a skill is a file skills/NAME/SKILL.md in .claw, .claude or the user's folder\n",
        );
        return Ok(exit::OK);
    }
    let width = skills().map(|entry| entry.item.name.chars().count()).max().unwrap_or_default();
    let mut out = String::new();
    for entry in skills() {
        let (name, source) = (visible_line(&entry.item.name), entry.source.to_string());
        let about: String = visible_line(&entry.item.description).chars().take(100).collect();
        let _ = writeln!(out, "{name:<width$}  {source:<9}  {about}");
    }
    write_stdout(out)?;
    Ok(exit::OK)
}
