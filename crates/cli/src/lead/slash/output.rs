//! `/output`: whole results of earlier calls.

use super::command::{Desk, Slash};
use super::registry::ready;
use crate::lead::deed::{Deed, Pick, PickItem};
use futures_util::future::BoxFuture;

pub(super) struct Output;

impl Slash for Output {
    fn name(&self) -> &'static str {
        "output"
    }

    fn about(&self) -> &'static str {
        "shows the whole result of an earlier call in the pager"
    }

    fn run(&self, _: String, desk: Desk) -> BoxFuture<'static, Vec<Deed>> {
        if desk.kept.is_empty() {
            return ready([Deed::Wrong("no tool was used yet".to_owned())]);
        }
        let item = |(title, text): &(String, String)| PickItem {
            text: title.clone(),
            about: format!("{} lines", text.lines().count()),
            deed: Deed::Page { title: title.clone(), text: text.clone() },
        };
        let items = desk.kept.iter().map(item).collect();
        ready([Deed::Pick(Pick { title: "Result of which call?".to_owned(), items })])
    }
}
