//! What runs left: folders and branches, each with what would be lost. Listed first; then what nobody needs goes.

use super::error::WorktreeError;
use super::folder::Ground;
use super::record::{FolderRecord, RunFolders};
use super::repo::{Oid, Repo};
use crate::addr::StepAddr;
use crate::journal::record::RunStatus;
use crate::rundir::{RunSummary, Runs};
use claw_kernel::ids::RunId;
use claw_tools::sandbox::SandboxPolicy;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where to look.
#[derive(Clone, Debug)]
pub struct GcScope {
    /// The top of the git work tree.
    pub workspace: PathBuf,
    /// The project's runs.
    pub runs: Runs,
    /// Where folders of steps lie: `worktrees` in claw's state folder of the user.
    pub worktrees: PathBuf,
}

/// Whether the work of a branch is elsewhere, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchState {
    /// No branch of that name.
    Missing,
    /// Nothing was changed on it.
    Empty,
    /// All of its work is in HEAD: its commits, or what they change.
    Merged,
    /// HEAD does not have all of it.
    Unmerged,
}

impl BranchState {
    /// A word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Missing => "no branch",
            Self::Empty => "no work",
            Self::Merged => "merged",
            Self::Unmerged => "not merged",
        }
    }
}

/// One folder with its branch, or one of them.
#[derive(Clone, Debug, PartialEq)]
pub struct GcItem {
    /// Of which run.
    pub run: RunId,
    /// How that run stands; `None`: its folder is gone.
    pub run_status: Option<RunStatus>,
    /// A process works on the run: nothing of it is touched.
    pub is_held: bool,
    /// The step or group; `None` where only the branch tells of it.
    pub step: Option<StepAddr>,
    /// Last part of folder and branch.
    pub name: String,
    /// The folder, where it is there.
    pub folder: Option<PathBuf>,
    /// Bytes in the folder; 0 where there is none.
    pub bytes: u64,
    /// The branch.
    pub branch: String,
    /// What would be lost with it. Of a folder that is there: as its branch stands now, without what was not committed.
    pub state: BranchState,
}

impl GcItem {
    /// Whether the run may go on and would want the folder.
    fn may_go_on(&self) -> bool {
        match self.run_status {
            Some(RunStatus::Running | RunStatus::Paused | RunStatus::Interrupted) => true,
            Some(
                RunStatus::Succeeded
                | RunStatus::Failed
                | RunStatus::Partial
                | RunStatus::Stopped
                | RunStatus::Cancelled,
            )
            | None => false,
        }
    }

    /// Whether `clear` takes the folder away; `None` where there is none.
    pub fn folder_goes(&self, force: bool) -> Option<bool> {
        self.folder.as_ref()?;
        Some(!self.is_held && (force || !self.may_go_on()))
    }

    /// Whether `clear` takes the branch away; `None` where there is none. A folder's work is put on it first: what was
    /// not committed there may change the answer.
    pub fn branch_goes(&self, force: bool) -> Option<bool> {
        match self.state {
            BranchState::Missing => None,
            BranchState::Empty | BranchState::Merged => Some(!self.is_held && (force || !self.may_go_on())),
            BranchState::Unmerged => Some(!self.is_held && force),
        }
    }
}

/// What went and what stayed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GcDone {
    /// Folders that are gone.
    pub folders: Vec<PathBuf>,
    /// Branches that are gone, with the commit that they ended in.
    pub branches: Vec<(String, String)>,
    /// Bytes that the folders had.
    pub bytes: u64,
    /// What stayed, and why, for people.
    pub kept: Vec<(String, String)>,
}

/// Lists what runs of this project left, by run and name. Changes nothing.
///
/// # Errors
/// Where the workspace is in no repository, or git refuses.
pub async fn list(scope: &GcScope) -> Result<Vec<GcItem>, WorktreeError> {
    let repo = open(scope).await?;
    let mut found = BTreeMap::new();
    for (run, record) in records(scope, &repo) {
        found.insert((run, record.name()), Some(record));
    }
    for (run, name) in branches(&repo).await? {
        found.entry((run, name)).or_insert(None);
    }
    let head = repo.head().await?;
    let mut items = Vec::with_capacity(found.len());
    for ((run, name), record) in found {
        items.push(item(scope, &repo, &head, (run, name), record).await?);
    }
    Ok(items)
}

/// Takes away folders that nobody needs, after their work is on their branches, and branches whose work is in HEAD. With
/// `force` also branches whose work is nowhere else, and folders of runs that may go on. Never anything of a run that a
/// process works on: its lock is looked at again.
///
/// # Errors
/// Where git refuses; what could not be taken away alone is in `GcDone::kept`.
pub async fn clear(scope: &GcScope, items: &[GcItem], force: bool) -> Result<GcDone, WorktreeError> {
    let repo = open(scope).await?;
    let head = repo.head().await?;
    let mut done = GcDone::default();
    for listed in items {
        let run = crate::rundir::RunDir::at(scope.runs.folder(), listed.run);
        // Held while its things go, so that nobody starts to work on it; a run whose folder is gone has no lock.
        let lock = if run.root().is_dir() {
            match crate::rundir::take_lock(&run, None) {
                Ok(lock) => Some(lock),
                Err(error) => {
                    done.kept.push((listed.branch.clone(), error.to_string()));
                    continue;
                }
            }
        } else {
            None
        };
        let ground = RunFolders::of(&scope.worktrees, listed.run);
        if let Err(error) = clear_one(scope, &repo, &head, &ground, listed, force, &mut done).await {
            done.kept.push((listed.branch.clone(), error.to_string()));
        }
        drop(lock);
    }
    Ok(done)
}

async fn open(scope: &GcScope) -> Result<Repo, WorktreeError> {
    Repo::open(&scope.workspace, Arc::new(SandboxPolicy::full(&scope.workspace))).await
}

/// Those whose workspace belongs to the same repository.
fn records(scope: &GcScope, repo: &Repo) -> Vec<(RunId, FolderRecord)> {
    let Ok(entries) = scope.worktrees.read_dir() else { return Vec::new() };
    let runs = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<RunId>().ok());
    let ours = |record: &FolderRecord| {
        let inside = record.git_dir.as_ref().is_some_and(|dir| dir.starts_with(&repo.common));
        record.workspace == repo.top || inside
    };
    runs.flat_map(|run| {
        RunFolders::of(&scope.worktrees, run).all().into_iter().map(move |record| (run, record))
    })
    .filter(|(_, record)| ours(record))
    .collect()
}

/// Run and last part of all branches below `claw/`.
async fn branches(repo: &Repo) -> Result<Vec<(RunId, String)>, WorktreeError> {
    let asked = ["for-each-ref", "--format=%(refname:lstrip=3)", "refs/heads/claw/"];
    let text = repo.call(asked).line().await?;
    let parse = |line: &str| {
        let (run, name) = line.split_once('/')?;
        Some((run.parse().ok()?, name.to_owned()))
    };
    Ok(text.lines().filter_map(parse).collect())
}

async fn item(
    scope: &GcScope,
    repo: &Repo,
    head: &Oid,
    (run, name): (RunId, String),
    record: Option<FolderRecord>,
) -> Result<GcItem, WorktreeError> {
    let summary = scope.runs.open(run).ok().map(|(dir, file)| RunSummary::of(dir, file));
    let is_held = crate::rundir::holder(&crate::rundir::RunDir::at(scope.runs.folder(), run)).is_held();
    let folder = RunFolders::of(&scope.worktrees, run).folder(&name);
    let folder = folder.is_dir().then_some(folder);
    let bytes = match &folder {
        Some(folder) => size(folder).await,
        None => 0,
    };
    let branch = format!("claw/{run}/{name}");
    let state = state(repo, head, &branch, record.as_ref().map(|record| &record.base)).await?;
    Ok(GcItem {
        run,
        run_status: summary.map(|summary| summary.status),
        is_held,
        step: record.map(|record| record.owner),
        name,
        folder,
        bytes,
        branch,
        state,
    })
}

/// What HEAD has of a branch. Without a record its base is where it left HEAD's history.
async fn state(
    repo: &Repo,
    head: &Oid,
    branch: &str,
    base: Option<&Oid>,
) -> Result<BranchState, WorktreeError> {
    let Some(tip) = repo.tip(branch).await? else { return Ok(BranchState::Missing) };
    let base = match base {
        Some(base) => base.clone(),
        None => match repo.fork_point(head, &tip).await? {
            Some(base) => base,
            None => return Ok(BranchState::Unmerged),
        },
    };
    let (was, is) = (repo.tree(&base).await?, repo.tree(&tip).await?);
    if was == is {
        // Commits that took each other back are work as well; they are in no tree.
        return Ok(BranchState::Empty);
    }
    if repo.is_ancestor(&tip, head).await? {
        return Ok(BranchState::Merged);
    }
    let there = repo.tree(head).await?;
    let adds_nothing = repo.merged(&was, &there, &is).await?.is_ok_and(|tree| tree == there);
    Ok(if adds_nothing { BranchState::Merged } else { BranchState::Unmerged })
}

async fn clear_one(
    scope: &GcScope,
    repo: &Repo,
    head: &Oid,
    folders: &RunFolders,
    listed: &GcItem,
    force: bool,
    done: &mut GcDone,
) -> Result<(), WorktreeError> {
    let record = folders.load(&listed.name)?.filter(|record| record.name() == listed.name);
    let ground = Ground { repo, folders, run: listed.run };
    // The lock is ours: whoever was listed as its holder is not there any more.
    let free = GcItem { is_held: false, ..listed.clone() };
    if free.folder_goes(force) == Some(true)
        && let (Some(record), Some(path)) = (&record, &listed.folder)
    {
        let kept = if record.is_scratch {
            ground.remove(record, path).await?;
            None
        } else {
            ground.close(record).await?.kept
        };
        match kept {
            Some(why) => done.kept.push((path.display().to_string(), why)),
            None => {
                done.folders.push(path.clone());
                done.bytes += listed.bytes;
            }
        }
    }
    let still_there = folders.folder(&listed.name).is_dir();
    let now = state(repo, head, &listed.branch, record.as_ref().map(|record| &record.base)).await?;
    match (GcItem { state: now, ..free }).branch_goes(force) {
        _ if still_there => {
            let why = format!("its folder is still there, and its run {} may go on", listed.run);
            done.kept.push((listed.branch.clone(), why));
        }
        Some(true) => {
            if let Some(tip) = repo.tip(&listed.branch).await? {
                repo.drop_branch(&listed.branch, &tip).await?;
                done.branches.push((listed.branch.clone(), tip.to_string()));
            }
            folders.forget(&listed.name);
        }
        Some(false) if now == BranchState::Unmerged => {
            done.kept.push((listed.branch.clone(), "its work is not in HEAD".to_owned()));
        }
        Some(false) => {
            done.kept.push((listed.branch.clone(), format!("its run {} may go on", listed.run)));
        }
        None => folders.forget(&listed.name),
    }
    // A run that is gone altogether leaves an empty folder at most.
    let _ = std::fs::remove_dir(scope.worktrees.join(listed.run.to_string()));
    Ok(())
}

/// Bytes of all files below a folder.
async fn size(folder: &Path) -> u64 {
    let folder = folder.to_owned();
    let sum = move || {
        let walk = ignore::WalkBuilder::new(folder).standard_filters(false).follow_links(false).build();
        walk.filter_map(|entry| entry.ok()?.metadata().ok())
            .filter(|meta| meta.is_file())
            .map(|meta| meta.len())
            .sum()
    };
    claw_kernel::tasks::blocking("size", sum).await.unwrap_or(0)
}
