//! `/memory`: the memory files that the model is given.

use super::command::{Desk, Slash};
use super::registry::ready;
use crate::lead::deed::Deed;
use crate::terminal::paint::{Line, Style};
use claw_agents::system_prompt::load_memory;
use futures_util::future::BoxFuture;

pub(super) struct Memory;

impl Slash for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn about(&self) -> &'static str {
        "lists the memory files that the model is given"
    }

    fn run(&self, _: String, desk: Desk) -> BoxFuture<'static, Vec<Deed>> {
        let theme = desk.looks();
        let memory = load_memory(&desk.setup.cwd, &crate::services::memory_folders());
        if memory.files.is_empty() {
            let words = "no memory files; /init writes a CLAUDE.md";
            return ready([Deed::Show(vec![Line::styled(words, theme.quiet)])]);
        }
        let mut lines: Vec<Line> = memory
            .files
            .iter()
            .map(|path| {
                let size = path.metadata().map_or(0, |meta| meta.len());
                Line::plain(path.display().to_string()).with(format!("  {size} bytes"), theme.quiet)
            })
            .collect();
        lines.push(Line::styled(format!("{} bytes are given to the model", memory.text.len()), Style::PLAIN));
        ready([Deed::Show(lines)])
    }
}
