//! `/add-dir`: one more folder to work in.

use super::command::{Desk, Slash};
use super::registry::ready;
use crate::lead::deed::Deed;
use claw_agents::lead::LeadCommand;
use futures_util::future::BoxFuture;

pub(super) struct AddDir;

impl Slash for AddDir {
    fn name(&self) -> &'static str {
        "add-dir"
    }

    fn args(&self) -> &'static str {
        "FOLDER"
    }

    fn about(&self) -> &'static str {
        "adds a folder in which files may be read and written"
    }

    fn run(&self, args: String, desk: Desk) -> BoxFuture<'static, Vec<Deed>> {
        if args.is_empty() {
            return ready([Deed::Wrong("which folder? write /add-dir FOLDER".to_owned())]);
        }
        let path = desk.setup.typed_path(&args);
        if !path.is_dir() {
            return ready([Deed::Wrong(format!("{} is no folder", path.display()))]);
        }
        ready([Deed::Order(LeadCommand::AddDir { path })])
    }
}
