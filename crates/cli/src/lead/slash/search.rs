//! `/search`: words in what was said in the sessions of this folder.

use super::command::{Desk, Slash};
use super::registry::ready;
use super::resume::words;
use crate::lead::deed::{Deed, Pick, PickItem};
use claw_kernel::tasks;
use futures_util::future::BoxFuture;

pub(super) struct Search;

impl Slash for Search {
    fn name(&self) -> &'static str {
        "search"
    }

    fn args(&self) -> &'static str {
        "WORDS"
    }

    fn about(&self) -> &'static str {
        "searches prompts and answers of all sessions of this folder"
    }

    fn run(&self, args: String, desk: Desk) -> BoxFuture<'static, Vec<Deed>> {
        if args.is_empty() {
            return ready([Deed::Wrong("for what? write /search WORDS".to_owned())]);
        }
        Box::pin(async move {
            let store = desk.setup.sessions();
            let wanted = args.clone();
            let hits = match tasks::blocking("search", move || store.search(&wanted)).await {
                Ok(Ok(hits)) => hits,
                Ok(Err(error)) => return vec![Deed::Wrong(error.to_string())],
                Err(failed) => return vec![Deed::Wrong(failed.to_string())],
            };
            if hits.is_empty() {
                return vec![Deed::Wrong(format!("`{args}` was not said in any session of this folder"))];
            }
            let item = |hit: &claw_agents::session::Hit| PickItem {
                text: hit.text.clone(),
                about: words(&hit.session),
                deed: Deed::Resume(hit.session.id.to_string()),
            };
            let items = hits.iter().map(item).collect();
            vec![Deed::Pick(Pick { title: format!("`{args}`: go on with which session?"), items })]
        })
    }
}
