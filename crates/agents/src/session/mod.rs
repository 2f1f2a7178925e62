//! Sessions on disk: where they lie, who holds one, what they hold.
//!
//! Owns finding, opening, forking, listing, exporting, searching and the snapshots of files. Must not know models or
//! what a conversation does next. A session file is input: no right ever comes from it.

mod error;
mod export;
mod foreign;
mod import;
mod keeper;
mod list;
mod open;
mod search;
mod store;

pub use error::SessionError;
pub use export::{ExportForm, export};
pub use keeper::FileKeeper;
pub use list::Listed;
pub(crate) use open::Held;
pub use open::OpenSession;
pub use search::Hit;
pub use store::{Found, Reference, Store};
