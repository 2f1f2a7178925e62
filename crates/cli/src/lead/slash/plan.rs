//! `/plan`: reads and thinks, changes nothing.

use super::command::{Desk, Slash};
use super::registry::ready;
use crate::lead::deed::Deed;
use claw_agents::lead::LeadCommand;
use claw_agents::permission::Permission;
use futures_util::future::BoxFuture;

pub(super) struct Plan;

impl Slash for Plan {
    fn name(&self) -> &'static str {
        "plan"
    }

    fn args(&self) -> &'static str {
        "[TASK]"
    }

    fn about(&self) -> &'static str {
        "goes read-only and asks for a plan; /permissions workspace-write lets it be carried out"
    }

    fn run(&self, args: String, _: Desk) -> BoxFuture<'static, Vec<Deed>> {
        let mut deeds = vec![Deed::Order(LeadCommand::SetPermission { permission: Permission::READ_ONLY })];
        if !args.is_empty() {
            let text = format!(
                "Make a plan for this task and change nothing: read what you need, name the files to touch, the steps \
                 in order, how each is checked, and what is uncertain.\n\n{args}"
            );
            deeds.push(Deed::Prompt { text, shown: format!("/plan {args}") });
        }
        ready(deeds)
    }
}
