//! `/export`: the session as a file.

use super::command::{Desk, Slash};
use super::registry::ready;
use crate::lead::deed::Deed;
use crate::lead::editor::Choice;
use crate::terminal::paint::Line;
use claw_agents::session::{ExportForm, export};
use claw_kernel::durable::{self, Mode, Sync};
use claw_kernel::tasks;
use futures_util::future::BoxFuture;
use std::path::Path;

pub(super) struct Export;

fn write(from: &Path, to: &Path, form: ExportForm) -> std::io::Result<()> {
    if to.exists() {
        return Err(std::io::ErrorKind::AlreadyExists.into());
    }
    durable::replace(to, export(&std::fs::read(from)?, form).as_bytes(), Mode::Keep, Sync::Yes)
}

impl Slash for Export {
    fn name(&self) -> &'static str {
        "export"
    }

    fn args(&self) -> &'static str {
        "[FILE.md | FILE.json]"
    }

    fn about(&self) -> &'static str {
        "writes the session to a new file, as Markdown or JSON"
    }

    fn values(&self, desk: &Desk) -> Vec<Choice> {
        let Some(view) = &desk.view else { return Vec::new() };
        let choice =
            |ending| Choice { insert: format!("session-{}.{ending}", view.session), about: String::new() };
        ["md", "json"].map(choice).into()
    }

    fn run(&self, args: String, desk: Desk) -> BoxFuture<'static, Vec<Deed>> {
        let Some(view) = desk.view.clone() else {
            return ready([Deed::Wrong("there is no session yet".to_owned())]);
        };
        let name = if args.is_empty() { format!("session-{}.md", view.session) } else { args };
        let to = desk.setup.typed_path(&name);
        let is_json = to.extension().is_some_and(|ending| ending == "json");
        let form = if is_json { ExportForm::Json } else { ExportForm::Markdown };
        Box::pin(async move {
            let (from, place) = (view.path.clone(), to.clone());
            match tasks::blocking("export", move || write(&from, &place, form)).await {
                Ok(Ok(())) => vec![Deed::Show(vec![Line::plain(format!("written to {}", to.display()))])],
                Ok(Err(error)) => vec![Deed::Wrong(format!("cannot write {}: {error}", to.display()))],
                Err(failed) => vec![Deed::Wrong(failed.to_string())],
            }
        })
    }
}
