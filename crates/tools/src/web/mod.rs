//! The web as a model sees it: pages as Markdown, results of a search.
//!
//! Owns which addresses are open to a model: the check is on the address that is connected to, at every hop. Knows nothing
//! of rules or of who asks.

mod address;
mod cache;
mod clean;
mod client;
mod error;
mod fetch;
mod lookup;
mod page;
mod search;
#[cfg(test)]
mod tests;

pub use address::{is_public, judge};
pub use client::WebConfig;
pub use error::WebError;
pub use fetch::{Fetched, Web};
pub use lookup::{Lookup, SystemLookup};
pub use page::Page;
pub use search::{Hit, SearchService};
