//! `/theme`: colours.

use super::command::{Desk, Slash};
use super::registry::ready;
use crate::lead::deed::{Deed, Pick, PickItem};
use crate::lead::editor::Choice;
use crate::terminal::paint::ThemeName;
use futures_util::future::BoxFuture;

pub(super) struct Theme;

impl Slash for Theme {
    fn name(&self) -> &'static str {
        "theme"
    }

    fn args(&self) -> &'static str {
        "[dark|light|none]"
    }

    fn about(&self) -> &'static str {
        "chooses the colours"
    }

    fn values(&self, _: &Desk) -> Vec<Choice> {
        ThemeName::NAMES
            .iter()
            .map(|name| Choice { insert: (*name).to_owned(), about: String::new() })
            .collect()
    }

    fn run(&self, args: String, desk: Desk) -> BoxFuture<'static, Vec<Deed>> {
        if args.is_empty() {
            let item = |name: &&str| PickItem {
                text: (*name).to_owned(),
                about: String::new(),
                deed: Deed::Theme(name.parse().unwrap_or_default()),
            };
            let items = ThemeName::NAMES.iter().map(item).collect();
            return ready([Deed::Pick(Pick { title: format!("Theme (now {})", desk.theme.word()), items })]);
        }
        match args.parse() {
            Ok(name) => ready([Deed::Theme(name)]),
            Err(error) => ready([Deed::Wrong(format!("{error}"))]),
        }
    }
}
