//! `/session`: the sessions of this folder: listed, changed to, copied, named, removed.

use super::command::{Desk, Slash};
use super::registry::ready;
use super::resume::{others, words};
use crate::lead::deed::Deed;
use crate::lead::editor::Choice;
use crate::terminal::paint::{Line, Style};
use claw_agents::lead::LeadCommand;
use claw_agents::session::Reference;
use futures_util::future::BoxFuture;

pub(super) struct Session;

const WORDS: [(&str, &str); 5] = [
    ("list", "the sessions of this folder"),
    ("switch", "SESSION: goes on with another one"),
    ("fork", "goes on with a copy of this one"),
    ("rename", "NAME: gives this one a name"),
    ("delete", "SESSION: removes another one"),
];

async fn list(desk: Desk) -> Vec<Deed> {
    let theme = desk.looks();
    match others(&desk).await {
        Err(deed) => vec![deed],
        Ok(all) if all.is_empty() => {
            vec![Deed::Show(vec![Line::styled("no other session in this folder", theme.quiet)])]
        }
        Ok(all) => {
            let line = |session| -> Line {
                let session: &claw_agents::session::Listed = session;
                Line::styled(format!("{}  ", session.id), theme.quiet).with(words(session), Style::PLAIN)
            };
            vec![Deed::Show(all.iter().take(30).map(line).collect())]
        }
    }
}

async fn delete(desk: Desk, typed: String) -> Vec<Deed> {
    let store = desk.setup.sessions();
    let found = match store.find(&Reference::read(&typed, &desk.setup.cwd)) {
        Ok(found) => found,
        Err(error) => return vec![Deed::Wrong(error.to_string())],
    };
    match store.delete(found).await {
        Ok(()) => vec![Deed::Show(vec![Line::plain("removed")])],
        Err(error) => vec![Deed::Wrong(error.to_string())],
    }
}

impl Slash for Session {
    fn name(&self) -> &'static str {
        "session"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["sessions"]
    }

    fn args(&self) -> &'static str {
        "[list | switch | fork | rename | delete]"
    }

    fn about(&self) -> &'static str {
        "lists, changes, copies, names and removes sessions"
    }

    fn values(&self, _: &Desk) -> Vec<Choice> {
        WORDS
            .iter()
            .map(|(word, about)| Choice { insert: (*word).to_owned(), about: (*about).to_owned() })
            .collect()
    }

    fn run(&self, args: String, desk: Desk) -> BoxFuture<'static, Vec<Deed>> {
        let (word, rest) = args.split_once(' ').unwrap_or((&args, ""));
        let rest = rest.trim().to_owned();
        match (word, rest.is_empty()) {
            ("" | "list", _) => Box::pin(list(desk)),
            ("switch", false) => ready([Deed::Resume(rest)]),
            ("fork", _) => ready([Deed::Fork]),
            ("rename", _) => ready([Deed::Order(LeadCommand::Rename { name: rest })]),
            ("delete", false) => Box::pin(delete(desk, rest)),
            _ => ready([Deed::Wrong(
                "write /session list, switch SESSION, fork, rename NAME or delete SESSION".to_owned(),
            )]),
        }
    }
}
