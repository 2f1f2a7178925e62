//! `/rewind`: back to before a prompt, messages and files.

use super::command::{Desk, Slash};
use super::registry::ready;
use crate::lead::deed::{Deed, Pick, PickItem};
use claw_agents::lead::{LeadCommand, Rewinding};
use futures_util::future::BoxFuture;

pub(super) struct Rewind;

fn back(prompt: u32) -> Deed {
    let choice = |text: &str, about: &str, what| PickItem {
        text: text.to_owned(),
        about: about.to_owned(),
        deed: Deed::Order(LeadCommand::Rewind { prompt, what }),
    };
    Deed::Pick(Pick {
        title: format!("Back to before prompt {prompt}: what?"),
        items: vec![
            choice("messages and files", "files that claw's own tools changed since", Rewinding::Both),
            choice("messages", "files stay as they are", Rewinding::Messages),
            choice("files", "the conversation stays as it is", Rewinding::Files),
        ],
    })
}

impl Slash for Rewind {
    fn name(&self) -> &'static str {
        "rewind"
    }

    fn args(&self) -> &'static str {
        "[PROMPT]"
    }

    fn about(&self) -> &'static str {
        "goes back to before a prompt: messages, files or both"
    }

    fn run(&self, args: String, desk: Desk) -> BoxFuture<'static, Vec<Deed>> {
        if args.is_empty() {
            if desk.prompts.is_empty() {
                return ready([Deed::Wrong("nothing was said yet".to_owned())]);
            }
            let items = desk.prompts.iter().rev().map(|(number, text)| PickItem {
                text: format!("{number}"),
                about: text.clone(),
                deed: back(*number),
            });
            let title = "Go back to before which prompt?".to_owned();
            return ready([Deed::Pick(Pick { title, items: items.collect() })]);
        }
        match args.parse() {
            Ok(prompt) if desk.prompts.iter().any(|(number, _)| *number == prompt) => ready([back(prompt)]),
            Ok(_) | Err(_) => ready([Deed::Wrong(format!("there is no prompt {args}; /rewind lists them"))]),
        }
    }
}
