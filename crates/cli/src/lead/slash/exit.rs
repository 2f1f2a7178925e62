//! `/exit`: the end.

use super::command::{Desk, Slash};
use super::registry::ready;
use crate::lead::deed::Deed;
use futures_util::future::BoxFuture;

pub(super) struct Exit;

impl Slash for Exit {
    fn name(&self) -> &'static str {
        "exit"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["quit"]
    }

    fn about(&self) -> &'static str {
        "ends claw; the session can be gone on with"
    }

    fn run(&self, _: String, _: Desk) -> BoxFuture<'static, Vec<Deed>> {
        ready([Deed::Quit])
    }
}
