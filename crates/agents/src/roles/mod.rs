//! What agents there are: the built-in roles, one file each, and the catalog that finds them by name.
//!
//! Owns prompts and tool sets. Must not know who runs them.

mod catalog;
mod claude_code_guide;
mod explore;
mod general_purpose;
mod lead;
mod plan;
mod sets;
mod statusline_setup;
mod verification;

pub use catalog::{Added, Catalog, UnknownAgent};
pub(crate) use lead::LEAD;
pub use lead::lead;
pub(crate) use verification::NAME as VERIFICATION;
