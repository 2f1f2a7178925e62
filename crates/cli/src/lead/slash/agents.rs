//! `/agents`: the agents of the session: what they do, a word to one of them, the end of one.

use super::command::{Desk, Slash};
use super::registry::ready;
use crate::lead::deed::Deed;
use crate::lead::editor::Choice;
use crate::terminal::figures::{money, tokens};
use crate::terminal::paint::{Line, Style};
use claw_agents::children::Background;
use claw_orchestrator::report::board::Row;
use claw_orchestrator::report::event::StepState;
use futures_util::future::BoxFuture;

pub(super) struct Agents;

/// Rows that are listed.
const MOST: usize = 40;

fn state_of(row: &Row) -> &'static str {
    match &row.state {
        Some(StepState::Ended { state, .. }) => state.as_str(),
        Some(StepState::Running) => "works",
        Some(StepState::Waiting(_)) => "waits",
        Some(StepState::Ready { .. }) => "queued",
        None => "not begun",
    }
}

fn rows(desk: &Desk) -> Vec<Row> {
    desk.board.as_ref().map(|board| board.rows(|row| row.label != "claw")).unwrap_or_default()
}

fn list(desk: &Desk) -> Deed {
    let theme = desk.looks();
    let rows = rows(desk);
    if rows.is_empty() {
        return Deed::Show(vec![Line::styled("no agents were started in this session", theme.quiet)]);
    }
    let hidden = rows.len().saturating_sub(MOST);
    let mut lines: Vec<Line> = rows
        .iter()
        .skip(hidden)
        .map(|row| {
            let up = row.usage.input + row.usage.cache_read + row.usage.cache_write;
            let spent = format!("  ↑{} ↓{} {}", tokens(up), tokens(row.usage.output), money(row.usage.usd));
            Line::styled(format!("{:<8} ", row.step), theme.quiet)
                .with(format!("{:<10} ", state_of(row)), theme.strong)
                .with(&row.label, Style::PLAIN)
                .with(spent, theme.quiet)
        })
        .collect();
    if hidden > 0 {
        lines.insert(0, Line::styled(format!("+ {hidden} earlier ones"), theme.quiet));
    }
    Deed::Show(lines)
}

impl Slash for Agents {
    fn name(&self) -> &'static str {
        "agents"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["tasks"]
    }

    fn args(&self) -> &'static str {
        "[stop AGENT | tell AGENT TEXT]"
    }

    fn about(&self) -> &'static str {
        "lists the session's agents; stops one, says something to one"
    }

    fn values(&self, desk: &Desk) -> Vec<Choice> {
        let at_work =
            rows(desk).into_iter().filter(|row| !matches!(row.state, Some(StepState::Ended { .. })));
        at_work
            .flat_map(|row| {
                ["stop", "tell"]
                    .map(|word| Choice { insert: format!("{word} {}", row.step), about: row.label.clone() })
            })
            .collect()
    }

    fn run(&self, args: String, desk: Desk) -> BoxFuture<'static, Vec<Deed>> {
        let (word, rest) = args.split_once(' ').unwrap_or((&args, ""));
        let rest = rest.trim().to_owned();
        match word {
            "" | "list" => ready([list(&desk)]),
            "stop" if !rest.is_empty() => Box::pin(async move { vec![told(desk.team.stop(rest).await)] }),
            "tell" => match rest.split_once(' ') {
                Some((agent, text)) => {
                    let (agent, text) = (agent.to_owned(), text.trim().to_owned());
                    Box::pin(async move { vec![told(desk.team.message(agent, text).await)] })
                }
                None => ready([Deed::Wrong("write /agents tell AGENT TEXT".to_owned())]),
            },
            _ => ready([Deed::Wrong(
                "write /agents, /agents stop AGENT or /agents tell AGENT TEXT".to_owned(),
            )]),
        }
    }
}

fn told(said: claw_agents::children::ChildSaid) -> Deed {
    if said.is_error { Deed::Wrong(said.text) } else { Deed::Show(vec![Line::plain(said.text)]) }
}
