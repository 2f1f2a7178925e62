//! `claw system-prompt`: what a conversation here would be told first.

use super::runtime::block_on;
use crate::args::{SystemPromptFlags, TalkFlags};
use crate::error::{ExpectedError, exit};
use crate::services::{Setup, config_home};
use crate::sessions::Decided;
use crate::terminal::write_answer;
use claw_agents::permission::NobodyToAsk;
use std::sync::Arc;

/// Prints it. No credentials are needed, nothing is written.
///
/// # Errors
/// Settings, standard output.
pub fn run(flags: &SystemPromptFlags) -> Result<u8, ExpectedError> {
    block_on(print(flags.clone()))
}

async fn print(flags: SystemPromptFlags) -> Result<u8, ExpectedError> {
    let setup = Setup::read_with(flags.cwd.as_deref(), &flags.settings)?;
    let talk = TalkFlags::default();
    let decided = Decided {
        permission: setup.permission(None, true)?,
        model: setup.model(None),
        tools: None,
        deny: Vec::new(),
    };
    let services =
        setup.agent_services(Arc::new(NobodyToAsk), setup.logs()?, vec![config_home()], Vec::new())?;
    let lead = decided.lead(&setup, &talk, Arc::new(services));
    write_answer(&format!("{}\n", lead.system_prompt(flags.date.as_deref()).trim_end()))?;
    Ok(exit::OK)
}
