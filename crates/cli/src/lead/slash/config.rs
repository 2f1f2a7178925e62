//! `/config`: the settings that count, each with its place.

use super::command::{Desk, Slash};
use super::registry::ready;
use crate::commands::config;
use crate::lead::deed::Deed;
use crate::terminal::paint::Line;
use futures_util::future::BoxFuture;

pub(super) struct Config;

/// Lines that are shown above the input; more go to the pager.
const MOST: usize = 40;

impl Slash for Config {
    fn name(&self) -> &'static str {
        "config"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["settings"]
    }

    fn args(&self) -> &'static str {
        "[SECTION]"
    }

    fn about(&self) -> &'static str {
        "shows the settings that count, each with its place"
    }

    fn run(&self, args: String, desk: Desk) -> BoxFuture<'static, Vec<Deed>> {
        let section = (!args.is_empty()).then_some(args.as_str());
        match config::listed(&desk.setup.origin, section) {
            Ok(text) if text.trim().is_empty() => {
                ready([Deed::Show(vec![Line::styled("nothing is set", desk.looks().quiet)])])
            }
            Ok(text) if text.lines().count() > MOST => {
                ready([Deed::Page { title: "settings".to_owned(), text }])
            }
            Ok(text) => ready([Deed::Show(text.lines().map(Line::plain).collect())]),
            Err(error) => ready([Deed::Wrong(error.text().trim_end().to_owned())]),
        }
    }
}
