//! Where each file of a run lies. The only place that knows.

use crate::addr::StepAddr;
use claw_kernel::ids::RunId;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The folder of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDir {
    root: PathBuf,
    id: RunId,
}

impl RunDir {
    /// The folder of that run below the folder of runs, made or not.
    pub fn at(runs: &Path, id: RunId) -> Self {
        Self { root: runs.join(id.to_string()), id }
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Which run.
    pub fn id(&self) -> RunId {
        self.id
    }

    /// Written once.
    pub fn run_json(&self) -> PathBuf {
        self.root.join("run.json")
    }

    /// What a take was given, from 1.
    pub fn take(&self, take: u32) -> PathBuf {
        self.root.join("takes").join(take.to_string())
    }

    /// The truth.
    pub fn journal(&self) -> PathBuf {
        self.root.join("journal.jsonl")
    }

    /// Damaged lines that a person accepted as lost.
    pub fn journal_damaged(&self) -> PathBuf {
        self.root.join("journal.damaged")
    }

    /// Last lines that never became whole.
    pub fn journal_torn(&self) -> PathBuf {
        self.root.join("journal.torn")
    }

    /// The report for people.
    pub fn report(&self) -> PathBuf {
        self.root.join("report.md")
    }

    /// Held by the process that works on the run.
    pub fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    /// The folder of one attempt.
    pub fn node(&self, step: &StepAddr, attempt: u32) -> PathBuf {
        self.below_nodes(step, attempt, "")
    }

    /// The folder above the attempts of all children of a step.
    pub fn node_of_children(&self, step: &StepAddr) -> PathBuf {
        self.root.join("nodes").join(step.to_string())
    }

    /// The manifest of one attempt.
    pub fn manifest(&self, step: &StepAddr, attempt: u32) -> PathBuf {
        self.below_nodes(step, attempt, "/manifest.json")
    }

    /// The session log of one attempt.
    pub fn transcript(&self, step: &StepAddr, attempt: u32) -> PathBuf {
        self.below_nodes(step, attempt, "/transcript.jsonl")
    }

    /// What one attempt gave, for people; JSON outputs: for machines.
    pub fn output(&self, step: &StepAddr, attempt: u32, json: bool) -> PathBuf {
        self.below_nodes(step, attempt, if json { "/output.json" } else { "/output.md" })
    }

    /// What a command wrote to its standard output.
    pub fn stdout(&self, step: &StepAddr, attempt: u32) -> PathBuf {
        self.below_nodes(step, attempt, "/stdout")
    }

    /// What a command wrote to its standard error.
    pub fn stderr(&self, step: &StepAddr, attempt: u32) -> PathBuf {
        self.below_nodes(step, attempt, "/stderr")
    }

    /// In one piece: paths are made many times for each step.
    fn below_nodes(&self, step: &StepAddr, attempt: u32, file: &str) -> PathBuf {
        const NODES: &str = "/nodes/";
        let (root, folder) = (self.root.as_os_str(), step.folder(attempt));
        let mut path = OsString::with_capacity(root.len() + NODES.len() + folder.len() + file.len());
        path.push(root);
        path.push(NODES);
        path.push(folder);
        path.push(file);
        path.into()
    }

    /// Where an output that is too long for the journal lies, relative to the run's folder.
    pub fn big_output(step: &StepAddr, attempt: u32) -> String {
        format!("outputs/{}.json", step.folder(attempt))
    }
}
