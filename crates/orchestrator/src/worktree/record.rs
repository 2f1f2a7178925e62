//! What claw knows of a folder that it made: written before the folder is, in claw's own state, where no agent writes.

use super::error::WorktreeError;
use super::names::{branch_of, name_of};
use super::repo::Oid;
use crate::addr::StepAddr;
use claw_kernel::durable::{self, Mode, Sync};
use claw_kernel::ids::RunId;
use serde::{Deserialize, Serialize};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Of this program.
const SCHEMA: u32 = 1;
/// A record is short.
const MOST: u64 = 1 << 20;

/// One folder and its branch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct FolderRecord {
    pub(super) schema: u32,
    pub(super) run: RunId,
    /// The step or group that works there.
    pub(super) owner: StepAddr,
    pub(super) attempt: u32,
    /// Several steps work there: it outlives each of them.
    pub(super) shared: bool,
    /// A merge is tried there: nothing in it is work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_scratch: bool,
    /// Whose workspace it was made from.
    pub(super) workspace: PathBuf,
    /// What its work is compared with.
    pub(super) base: Oid,
    /// What its branch began with: the base, or the work of an earlier attempt.
    pub(super) start: Oid,
    /// The folder's own git folder, once it is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) git_dir: Option<PathBuf>,
}

impl FolderRecord {
    pub(super) fn new(
        run: RunId,
        owner: &StepAddr,
        attempt: u32,
        workspace: &Path,
        from: (Oid, Oid),
    ) -> Self {
        let (base, start) = from;
        let (owner, workspace) = (owner.clone(), workspace.to_owned());
        Self {
            schema: SCHEMA,
            run,
            owner,
            attempt,
            shared: false,
            is_scratch: false,
            workspace,
            base,
            start,
            git_dir: None,
        }
    }

    pub(super) fn branch(&self) -> String {
        branch_of(self.run, &self.owner, self.attempt)
    }

    pub(super) fn name(&self) -> String {
        name_of(&self.owner, self.attempt)
    }
}

/// The folders of one run in claw's state.
#[derive(Clone, Debug)]
pub(super) struct RunFolders {
    pub(super) root: PathBuf,
}

impl RunFolders {
    pub(super) fn of(worktrees: &Path, run: RunId) -> Self {
        Self { root: worktrees.join(run.to_string()) }
    }

    pub(super) fn folder(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.root.join(format!("{name}.json"))
    }

    /// A name for a file or folder that nobody else uses. The owner of the run clears what a killed process left.
    pub(super) fn scratch(&self, what: &str) -> PathBuf {
        self.root.join(format!(".{what}.{:012x}", fastrand::u64(..) >> 16))
    }

    pub(super) fn make(&self) -> Result<(), WorktreeError> {
        durable::private_dir(&self.root).map_err(WorktreeError::io(&self.root))
    }

    pub(super) fn save(&self, record: &FolderRecord) -> Result<(), WorktreeError> {
        self.make()?;
        let path = self.file(&record.name());
        let bytes = serde_json::to_vec_pretty(record)
            .map_err(|source| WorktreeError::Shape { path: path.clone(), source })?;
        durable::replace(&path, &bytes, Mode::Private, Sync::Yes).map_err(WorktreeError::io(&path))
    }

    pub(super) fn load(&self, name: &str) -> Result<Option<FolderRecord>, WorktreeError> {
        let path = self.file(name);
        let mut bytes = Vec::new();
        match std::fs::File::open(&path).and_then(|file| file.take(MOST).read_to_end(&mut bytes)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(WorktreeError::Io { path, source }),
        }
        serde_json::from_slice(&bytes).map(Some).map_err(|source| WorktreeError::Shape { path, source })
    }

    /// All of this run, by name; those that are damaged are left out.
    pub(super) fn all(&self) -> Vec<FolderRecord> {
        let Ok(entries) = self.root.read_dir() else { return Vec::new() };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> =
            names.filter_map(|name| Some(name.strip_suffix(".json")?.to_owned())).collect();
        names.sort_unstable();
        let load = |name: &String| {
            let record = self.load(name).ok().flatten()?;
            // A record names its own file, so no other folder is ever touched through it.
            (record.name() == *name && self.root.ends_with(record.run.to_string())).then_some(record)
        };
        names.iter().filter_map(load).collect()
    }

    /// The record goes when its branch has; the folder of the run with the last of them.
    pub(super) fn forget(&self, name: &str) {
        let _ = std::fs::remove_file(self.file(name));
        // Not empty: others are there.
        let _ = std::fs::remove_dir(&self.root);
    }
}
