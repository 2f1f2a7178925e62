//! `/skills`: what agents can load here.

use super::command::{Desk, Slash};
use crate::lead::deed::Deed;
use crate::terminal::paint::{Line, Style};
use claw_kernel::tasks;
use futures_util::future::BoxFuture;

pub(super) struct Skills;

impl Slash for Skills {
    fn name(&self) -> &'static str {
        "skills"
    }

    fn about(&self) -> &'static str {
        "lists the skills that agents can load here"
    }

    fn run(&self, _: String, desk: Desk) -> BoxFuture<'static, Vec<Deed>> {
        Box::pin(async move {
            let theme = desk.looks();
            let setup = desk.setup.clone();
            let library = match tasks::blocking("skills", move || setup.library_now()).await {
                Ok(library) => library,
                Err(failed) => return vec![Deed::Wrong(failed.to_string())],
            };
            let skills = library.skills().iter().filter(|entry| entry.hidden_by.is_none());
            let mut lines: Vec<Line> = skills
                .map(|entry| {
                    Line::styled(format!("{:<24} ", entry.item.name), theme.strong)
                        .with(format!("{:<9} ", entry.source.to_string()), theme.quiet)
                        .with(entry.item.description.lines().next().unwrap_or_default(), Style::PLAIN)
                })
                .collect();
            if lines.is_empty() {
                let words = "no skills here; a skill is a file skills/NAME/SKILL.md in .claw, .claude or your own folder";
                lines.push(Line::styled(words, theme.quiet));
            }
            vec![Deed::Show(lines)]
        })
    }
}
