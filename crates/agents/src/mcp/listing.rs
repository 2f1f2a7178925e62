//! Whole lists out of pages, bounded whatever a server says.

use super::connect::chain;
use super::fault::{McpFault, Phase};
use super::offer::Warning;
use rmcp::model::{PaginatedRequestParams, Prompt, Resource, Tool};
use rmcp::service::{Peer, RoleClient, ServiceError};
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::timeout;

/// Pages and items of one list.
const MOST_PAGES: usize = 50;
const MOST_ITEMS: usize = 1_000;

/// Takes pages until there are no more. Pure.
struct Pages<T> {
    what: &'static str,
    items: Vec<T>,
    seen: HashSet<String>,
    pages: usize,
    warnings: Vec<Warning>,
}

impl<T> Pages<T> {
    fn new(what: &'static str) -> Self {
        Self { what, items: Vec::new(), seen: HashSet::new(), pages: 0, warnings: Vec::new() }
    }

    /// The cursor of the page to ask for next. A cursor is opaque: an empty one is one.
    fn take(&mut self, items: Vec<T>, next: Option<String>) -> Option<String> {
        let what = self.what;
        self.pages += 1;
        self.items.extend(items);
        if self.items.len() > MOST_ITEMS {
            self.items.truncate(MOST_ITEMS);
            self.warnings.push(Warning(format!("the list of {what} is cut after {MOST_ITEMS}")));
            return None;
        }
        let next = next?;
        if !self.seen.insert(next.clone()) {
            self.warnings
                .push(Warning(format!("the list of {what} comes back to the same page: it ends there")));
            return None;
        }
        if self.pages >= MOST_PAGES {
            self.warnings.push(Warning(format!("the list of {what} is cut after {MOST_PAGES} pages")));
            return None;
        }
        Some(next)
    }
}

macro_rules! whole_list {
    ($name:ident, $item:ty, $ask:ident, $field:ident, $what:literal) => {
        #[doc = concat!("All ", $what, ".")]
        pub(super) async fn $name(
            peer: &Peer<RoleClient>,
            limit: Duration,
        ) -> Result<(Vec<$item>, Vec<Warning>), McpFault> {
            let all = async {
                let mut pages = Pages::new($what);
                let mut cursor: Option<String> = None;
                loop {
                    let params = cursor.take().map(|cursor| {
                        let mut params = PaginatedRequestParams::default();
                        params.cursor = Some(cursor);
                        params
                    });
                    let page = peer.$ask(params).await.map_err(|error| fault(&error, Phase::List))?;
                    match pages.take(page.$field, page.next_cursor) {
                        Some(next) => cursor = Some(next),
                        None => return Ok((pages.items, pages.warnings)),
                    }
                }
            };
            timeout(limit, all).await.unwrap_or(Err(McpFault::Silent { phase: Phase::List, after: limit }))
        }
    };
}

whole_list!(all_tools, Tool, list_tools, tools, "tools");
whole_list!(all_resources, Resource, list_resources, resources, "resources");
whole_list!(all_prompts, Prompt, list_prompts, prompts, "prompts");

/// A failed exchange.
pub(super) fn fault(error: &ServiceError, phase: Phase) -> McpFault {
    match error {
        ServiceError::McpError(error) => McpFault::Refused {
            phase,
            said: format!("it answered with error {}: {}", error.code.0, bounded(&error.message)),
        },
        ServiceError::TransportClosed => McpFault::Gone { phase, how: String::new() },
        ServiceError::Timeout { timeout } => McpFault::Silent { phase, after: *timeout },
        ServiceError::UnexpectedResponse => {
            McpFault::Refused { phase, said: "its answer has a wrong shape".to_owned() }
        }
        other => McpFault::Refused { phase, said: chain(other) },
    }
}

fn bounded(text: &str) -> String {
    text.chars().take(4_000).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_end_when_there_are_no_more_when_they_repeat_and_when_there_are_too_many() {
        let mut plain = Pages::new("tools");
        assert_eq!(plain.take(vec![1], Some(String::new())), Some(String::new()));
        assert_eq!(plain.take(vec![2], None), None);
        assert_eq!((plain.items, plain.warnings.len()), (vec![1, 2], 0));
        let mut same = Pages::new("tools");
        assert!(same.take(vec![1], Some("8".into())).is_some());
        assert!(same.take(vec![1], Some("8".into())).is_none());
        assert_eq!(same.warnings.len(), 1);
        let mut endless = Pages::new("tools");
        let pages = (0..).take_while(|at| endless.take(vec![*at], Some(format!("c{at}"))).is_some()).count();
        assert_eq!((pages, endless.warnings.len()), (MOST_PAGES - 1, 1));
    }
}
