//! The file that makes a landing one step: once it is there, all that is needed to finish or to take back is beside it.

use super::error::WorktreeError;
use super::images::{Image, RawName, is_plain};
use super::names::name_of;
use super::repo::Oid;
use crate::addr::StepAddr;
use crate::rundir::RunDir;
use claw_kernel::digest::Digest;
use claw_kernel::durable::{self, Mode, Sync};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Of this program.
const SCHEMA: u32 = 1;
/// A list that is longer is none of ours.
const MOST: u64 = 1 << 30;

/// Which attempt works on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Mark {
    pub(super) step: StepAddr,
    pub(super) attempt: u32,
    /// The step's content.
    pub(super) key: Digest,
}

/// The difference that goes into the workspace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct LandingFile {
    pub(super) schema: u32,
    /// What HEAD was and becomes; `None`: nothing is committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) head: Option<HeadMove>,
    pub(super) files: Vec<LandingEntry>,
    /// What the step gives.
    pub(super) output: Value,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct HeadMove {
    pub(super) from: Oid,
    pub(super) to: Oid,
}

/// One path, before and after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct LandingEntry {
    pub(super) path: RawName,
    pub(super) before: Image,
    pub(super) after: Image,
}

/// The folder of one landing in a run.
#[derive(Clone, Debug)]
pub(super) struct LandingFolder {
    pub(super) root: PathBuf,
}

impl LandingFolder {
    fn all(run: &RunDir) -> PathBuf {
        run.root().join("landing")
    }

    pub(super) fn of(run: &RunDir, step: &StepAddr, attempt: u32) -> Self {
        Self { root: Self::all(run).join(name_of(step, attempt)) }
    }

    /// Those that a process left.
    pub(super) fn list(run: &RunDir) -> Vec<Self> {
        let Ok(entries) = Self::all(run).read_dir() else { return Vec::new() };
        let mut found: Vec<Self> =
            entries.filter_map(|entry| Some(Self { root: entry.ok()?.path() })).collect();
        found.sort_by(|one, other| one.root.cmp(&other.root));
        found
    }

    /// Bytes of a file as it was: by its place in the list.
    pub(super) fn before(&self, at: usize) -> PathBuf {
        self.root.join("before").join(at.to_string())
    }

    /// What a file is called until it takes its place: always the same, so that whoever comes after a kill finds it.
    pub(super) fn beside(&self, at: usize) -> String {
        let mut names = self.root.iter().rev();
        let (step, _, run) = (names.next(), names.next(), names.next());
        let both = [run, step].map(|name| name.unwrap_or_default().as_bytes()).join(&b'/');
        format!(".claw-landing.{}.{at}", &Digest::of(both).hex()[..12])
    }

    /// The files as they will be.
    pub(super) fn after(&self) -> PathBuf {
        self.root.join("after")
    }

    fn mark_path(&self) -> PathBuf {
        self.root.join("step.json")
    }

    fn file_path(&self) -> PathBuf {
        self.root.join("landing.json")
    }

    /// From now on a kill leaves a sign of this attempt.
    pub(super) fn mark(&self, mark: &Mark) -> Result<(), WorktreeError> {
        durable::private_dir(&self.root).map_err(WorktreeError::io(&self.root))?;
        write(&self.mark_path(), mark)
    }

    pub(super) fn marked(&self) -> Result<Option<Mark>, WorktreeError> {
        read(&self.mark_path())
    }

    /// All that it names is on the disk: from now on it is finished or taken back.
    pub(super) fn save(&self, file: &LandingFile) -> Result<(), WorktreeError> {
        write(&self.file_path(), file)
    }

    /// Errors: it names paths that no merge has.
    pub(super) fn load(&self) -> Result<Option<LandingFile>, WorktreeError> {
        let path = self.file_path();
        let Some(file) = read::<LandingFile>(&path)? else { return Ok(None) };
        if file.schema == SCHEMA && file.files.iter().all(|entry| is_plain(&entry.path.name())) {
            return Ok(Some(file));
        }
        let source = io::Error::new(io::ErrorKind::InvalidData, "it is no landing of this version of claw");
        Err(WorktreeError::Io { path, source })
    }

    /// It is no landing any more.
    pub(super) fn withdraw(&self) -> Result<(), WorktreeError> {
        let path = self.file_path();
        std::fs::remove_file(&path).map_err(WorktreeError::io(path))
    }

    /// It is over, and on record.
    pub(super) fn forget(&self) -> Result<(), WorktreeError> {
        // First what makes it one: the rest is of no use to anybody then.
        for path in [self.file_path(), self.mark_path()] {
            match std::fs::remove_file(&path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(WorktreeError::Io { path, source });
                }
                Ok(()) | Err(_) => {}
            }
        }
        claw_tools::files::remove::remove_tree(&self.root).map_err(WorktreeError::io(&self.root))?;
        if let Some(all) = self.root.parent() {
            // Not empty: another merge is under way.
            let _ = std::fs::remove_dir(all);
        }
        Ok(())
    }
}

impl LandingFile {
    pub(super) fn new(head: Option<HeadMove>, files: Vec<LandingEntry>, output: Value) -> Self {
        Self { schema: SCHEMA, head, files, output }
    }
}

fn write(path: &Path, value: &impl Serialize) -> Result<(), WorktreeError> {
    let bytes = serde_json::to_vec_pretty(value)
        .map_err(|source| WorktreeError::Shape { path: path.to_owned(), source })?;
    durable::replace(path, &bytes, Mode::Private, Sync::Yes).map_err(WorktreeError::io(path))
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Option<T>, WorktreeError> {
    let mut bytes = Vec::new();
    match std::fs::File::open(path).and_then(|file| file.take(MOST).read_to_end(&mut bytes)) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(WorktreeError::Io { path: path.to_owned(), source }),
    }
    let shape = |source| WorktreeError::Shape { path: path.to_owned(), source };
    serde_json::from_slice(&bytes).map(Some).map_err(shape)
}
