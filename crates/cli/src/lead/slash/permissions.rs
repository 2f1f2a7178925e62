//! `/permissions`: what may be done from the next turn on. Full access is confirmed.

use super::command::{Desk, Slash};
use super::registry::ready;
use crate::lead::deed::{Deed, Pick, PickItem};
use crate::lead::editor::Choice;
use claw_agents::lead::LeadCommand;
use claw_agents::permission::{Permission, Reach};
use futures_util::future::BoxFuture;

pub(super) struct Permissions;

const MODES: [(&str, &str); 5] = [
    ("workspace-write", "changes the workspace inside the sandbox; asks for what leaves it"),
    ("read-only", "changes nothing"),
    ("plan", "changes nothing until a plan is accepted"),
    ("prompt", "asks for everything that is not reading"),
    ("danger-full-access", "anything on this machine, without a sandbox"),
];

fn set(permission: Permission) -> Deed {
    let order = Deed::Order(LeadCommand::SetPermission { permission });
    if permission.reach == Reach::DangerFullAccess {
        let question = "danger-full-access lets the model change anything on this machine. Switch to it?";
        Deed::Confirm { question: question.to_owned(), deed: Box::new(order) }
    } else {
        order
    }
}

fn wanted(name: &str, desk: &Desk) -> Deed {
    match name.parse::<Permission>() {
        Ok(permission) if desk.setup.settings.permissions.below_ceiling(permission) != permission => {
            Deed::Wrong(format!("{permission} is more than your administrator's policy allows"))
        }
        // Root wants its consent from the command line.
        Ok(permission) => match desk.setup.permission(Some(permission), false) {
            Ok(permission) => set(permission),
            Err(error) => Deed::Wrong(error.text().trim_end().to_owned()),
        },
        Err(error) => Deed::Wrong(error.to_string()),
    }
}

impl Slash for Permissions {
    fn name(&self) -> &'static str {
        "permissions"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["permission", "mode"]
    }

    fn args(&self) -> &'static str {
        "[MODE]"
    }

    fn about(&self) -> &'static str {
        "shows or switches what may be done"
    }

    fn values(&self, _: &Desk) -> Vec<Choice> {
        let choice =
            |(name, about): &(&str, &str)| Choice { insert: (*name).to_owned(), about: (*about).to_owned() };
        MODES.iter().map(choice).collect()
    }

    fn run(&self, args: String, desk: Desk) -> BoxFuture<'static, Vec<Deed>> {
        if !args.is_empty() {
            return ready([wanted(&args, &desk)]);
        }
        let items = MODES
            .iter()
            .map(|(name, about)| PickItem {
                text: (*name).to_owned(),
                about: (*about).to_owned(),
                deed: wanted(name, &desk),
            })
            .collect();
        let title = format!("Permission mode (now {})", desk.status.permission);
        ready([Deed::Pick(Pick { title, items })])
    }
}
