//! What a slash command is, and what it can look at.

use super::super::deed::Deed;
use super::super::editor::Choice;
use super::super::status::Status;
use crate::services::Setup;
use crate::terminal::paint::{Theme, ThemeName};
use claw_agents::lead::{LeadView, Reckoning};
use claw_orchestrator::report::board::Board;
use claw_orchestrator::run::SessionTeam;
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// The state of things when a command is given.
#[derive(Clone)]
pub(in crate::lead) struct Desk {
    /// Folder, providers, tools.
    pub(in crate::lead) setup: Arc<Setup>,
    /// As in the status line.
    pub(in crate::lead) status: Status,
    /// The session as it was opened.
    pub(in crate::lead) view: Option<Arc<LeadView>>,
    /// The prompts so far: number and first line.
    pub(in crate::lead) prompts: Vec<(u32, String)>,
    /// What was spent.
    pub(in crate::lead) reckoning: Option<Reckoning>,
    /// Messages that wait, calls that run: nothing of it when idle.
    pub(in crate::lead) is_idle: bool,
    /// Whole results, newest first: title and text.
    pub(in crate::lead) kept: Vec<(String, String)>,
    /// The theme.
    pub(in crate::lead) theme: ThemeName,
    /// What the session's agents do, where there are some.
    pub(in crate::lead) board: Option<Arc<Board>>,
    /// The way to them.
    pub(in crate::lead) team: SessionTeam,
}

impl Desk {
    /// What the theme looks like.
    pub(in crate::lead) fn looks(&self) -> Theme {
        self.theme.theme()
    }
}

/// A slash command.
pub(in crate::lead) trait Slash: Send + Sync {
    /// Without its sign.
    fn name(&self) -> &'static str;

    /// Other names.
    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    /// What may follow, as help shows it.
    fn args(&self) -> &'static str {
        ""
    }

    /// What it does, in a few words.
    fn about(&self) -> &'static str;

    /// What its argument can be.
    fn values(&self, _desk: &Desk) -> Vec<Choice> {
        Vec::new()
    }

    /// Does it.
    fn run(&self, args: String, desk: Desk) -> BoxFuture<'static, Vec<Deed>>;
}
