//! `/runs`: the runs of this project.

use super::command::{Desk, Slash};
use crate::error::ExpectedError;
use crate::lead::deed::Deed;
use crate::services::moved_runs;
use crate::terminal::figures::money;
use crate::terminal::paint::{Line, Style};
use claw_kernel::tasks;
use claw_orchestrator::rundir::{RunSummary, Runs as RunFolders, project_top};
use futures_util::future::BoxFuture;
use std::path::Path;

pub(super) struct Runs;

/// Runs that are listed.
const MOST: usize = 20;

fn summaries(folder: &Path) -> Result<Vec<RunSummary>, ExpectedError> {
    let runs = RunFolders::of_project(&project_top(folder), moved_runs().as_deref());
    runs.list().map_err(|error| crate::commands::run::folder_error(&error))
}

impl Slash for Runs {
    fn name(&self) -> &'static str {
        "runs"
    }

    fn about(&self) -> &'static str {
        "lists the newest runs of this project"
    }

    fn run(&self, _: String, desk: Desk) -> BoxFuture<'static, Vec<Deed>> {
        Box::pin(async move {
            let folder = desk.setup.cwd.clone();
            let all = match tasks::blocking("runs", move || summaries(&folder)).await {
                Ok(Ok(all)) => all,
                Ok(Err(error)) => return vec![Deed::Wrong(error.text().trim_end().to_owned())],
                Err(failed) => return vec![Deed::Wrong(failed.to_string())],
            };
            let theme = desk.looks();
            if all.is_empty() {
                return vec![Deed::Show(vec![Line::styled("no runs yet", theme.quiet)])];
            }
            let line = |run: &RunSummary| {
                let cost = run.usage.map(|usage| money(usage.usd)).unwrap_or_default();
                Line::styled(format!("{} ", run.file.run_id), theme.quiet)
                    .with(format!("{:<11} ", run.status.as_str()), theme.strong)
                    .with(format!("{} ", run.file.name), Style::PLAIN)
                    .with(cost, theme.quiet)
            };
            let mut lines: Vec<Line> = all.iter().take(MOST).map(line).collect();
            if all.len() > MOST {
                lines.push(Line::styled(format!("+ {} more: claw runs list", all.len() - MOST), theme.quiet));
            }
            vec![Deed::Show(lines)]
        })
    }
}
