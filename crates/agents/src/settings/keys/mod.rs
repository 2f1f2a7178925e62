//! The keys of settings: one table, from which reading, near names and the reference page follow.

mod foreign;
mod permissions;
mod plugins;
mod providers;
mod sandbox;
mod table;
mod top;

pub use foreign::{FOREIGN, Foreign};
pub use table::{Joins, Key, Ty, Who};
pub use top::TOP;

pub use super::walk::{camel, is_private, known};
