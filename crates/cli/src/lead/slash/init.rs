//! `/init`: settings, ignore lines and a CLAUDE.md for the project, as `claw init` makes them.

use super::command::{Desk, Slash};
use crate::commands::init;
use crate::lead::deed::Deed;
use crate::terminal::paint::Line;
use claw_kernel::tasks;
use futures_util::future::BoxFuture;

pub(super) struct Init;

impl Slash for Init {
    fn name(&self) -> &'static str {
        "init"
    }

    fn about(&self) -> &'static str {
        "writes settings, ignore lines and a CLAUDE.md for the project"
    }

    fn run(&self, _: String, desk: Desk) -> BoxFuture<'static, Vec<Deed>> {
        let folder = desk.setup.cwd.clone();
        Box::pin(async move {
            match tasks::blocking("init", move || init::begin(&folder)).await {
                Ok(Ok(done)) => {
                    vec![Deed::Show(done.iter().map(|file| Line::plain(file.to_string())).collect())]
                }
                Ok(Err(error)) => vec![Deed::Wrong(error.text().trim_end().to_owned())],
                Err(failed) => vec![Deed::Wrong(failed.to_string())],
            }
        })
    }
}
