//! What the records of a session tell beside its messages. Pure.

use super::raw::Mark;
use super::record::{Record, Was};
use claw_kernel::clock::Timestamp;
use claw_kernel::ids::{AgentId, RunId, SessionId};
use claw_providers::message::Block;
use std::collections::HashSet;
use std::path::PathBuf;

/// Characters of a title.
const MOST_TITLE: usize = 80;

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The first record of a session.
    pub head: Option<Head>,
    /// The model of the last process.
    pub model: Option<String>,
    /// The user's name for it.
    pub name: Option<String>,
    /// The beginning of the first prompt.
    pub title: Option<String>,
    /// Prompts that are in the history, oldest first.
    pub prompts: Vec<Mark>,
    /// The highest number of a prompt.
    pub last_prompt: u32,
    /// What files were, in the order of the writes.
    pub snapshots: Vec<Snapshot>,
    /// Agents that it started.
    pub agents: Vec<StartedAgent>,
    /// The run of its agents.
    pub team: Option<RunId>,
    /// Ends of agents that the model was told of.
    pub told_ends: HashSet<(RunId, u32)>,
    /// Repairs that people have been told of.
    pub told: HashSet<String>,
    /// How often the history was compacted.
    pub compactions: u32,
}

/// How a session began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its id.
    pub id: SessionId,
    /// When.
    pub at: Timestamp,
    /// Its workspace then.
    pub folder: PathBuf,
    /// What it was made from.
    pub from: Option<String>,
}

/// A file before a tool changed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// During which prompt.
    pub prompt: u32,
    /// Which.
    pub path: PathBuf,
    /// What it was.
    pub was: Was,
}

/// An agent of the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartedAgent {
    /// Which.
    pub agent: AgentId,
    /// The call that asked for it.
    pub call: String,
    /// Its name.
    pub label: String,
    /// Its manifest.
    pub manifest: PathBuf,
}

impl Facts {
    /// Of a prompt; the first that has words counts.
    pub(super) fn title(&mut self, content: &[Block]) {
        if self.title.is_none() {
            self.title = first_line(content);
        }
    }

    pub(super) fn take(&mut self, record: Record) {
        match record {
            Record::Session { id, at, folder, model, name, from } => {
                self.head.get_or_insert(Head { id, at, folder, from });
                self.model = Some(model).filter(|model| !model.is_empty()).or_else(|| self.model.take());
                self.name = name.or_else(|| self.name.take());
            }
            Record::Named { name } => self.name = (!name.is_empty()).then_some(name),
            Record::Snapshot { prompt, path, was } => self.snapshots.push(Snapshot { prompt, path, was }),
            Record::Agent { agent, call, label, manifest } => {
                self.agents.push(StartedAgent { agent, call, label, manifest });
            }
            Record::Team { run } => self.team = Some(run),
            Record::Repaired { said } => self.told.extend(said),
            Record::Closed { .. }
            | Record::Prompt { .. }
            | Record::Permission { .. }
            | Record::Meta { .. }
            | Record::Message { .. }
            | Record::Usage { .. }
            | Record::Abandoned { .. }
            | Record::End(_)
            | Record::Said { .. }
            | Record::Told { .. }
            | Record::Compaction { .. }
            | Record::Rewound { .. } => {}
        }
    }
}

/// The first line with words, cut.
pub(crate) fn first_line(content: &[Block]) -> Option<String> {
    let line =
        content.iter().filter_map(Block::as_text).flat_map(str::lines).find(|l| !l.trim().is_empty())?;
    let line = line.trim();
    if line.chars().count() <= MOST_TITLE {
        return Some(line.to_owned());
    }
    Some(line.chars().take(MOST_TITLE - 1).chain(['…']).collect())
}
