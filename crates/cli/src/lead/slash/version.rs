//! `/version`: which claw this is.

use super::command::{Desk, Slash};
use super::registry::ready;
use crate::lead::deed::Deed;
use crate::terminal::paint::Line;
use futures_util::future::BoxFuture;

pub(super) struct Version;

impl Slash for Version {
    fn name(&self) -> &'static str {
        "version"
    }

    fn about(&self) -> &'static str {
        "shows the version of claw"
    }

    fn run(&self, _: String, _: Desk) -> BoxFuture<'static, Vec<Deed>> {
        ready([Deed::Show(vec![Line::plain(format!("claw {}", env!("CARGO_PKG_VERSION")))])])
    }
}
