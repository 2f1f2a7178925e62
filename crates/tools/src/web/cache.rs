//! Pages of the last quarter of an hour, in bounded memory.

use super::page::Page;
use indexmap::IndexMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long a page is good.
pub(super) const GOOD: Duration = Duration::from_secs(15 * 60);
/// Pages that are kept.
const MOST: usize = 64;
/// Bytes of all pages together.
const MOST_BYTES: usize = 32 << 20;

#[derive(Debug, Default)]
pub(super) struct Cache {
    pages: Mutex<IndexMap<String, (Instant, Arc<Page>)>>,
}

impl Cache {
    pub(super) fn get(&self, address: &str) -> Option<Arc<Page>> {
        let pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, page) = pages.get(address)?;
        (since.elapsed() < GOOD).then(|| Arc::clone(page))
    }

    pub(super) fn put(&self, address: &str, page: &Arc<Page>) {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.retain(|known, (since, _)| known != address && since.elapsed() < GOOD);
        let mut bytes: usize = pages.values().map(|(_, page)| page.text.len()).sum();
        bytes += page.text.len();
        while (bytes > MOST_BYTES || pages.len() >= MOST)
            && let Some((_, (_, oldest))) = pages.shift_remove_index(0)
        {
            bytes -= oldest.text.len();
        }
        if bytes <= MOST_BYTES {
            pages.insert(address.to_owned(), (Instant::now(), Arc::clone(page)));
        }
    }
}
