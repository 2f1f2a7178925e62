//! The folders of one run as its steps ask for them: each is made once, lent to the sandbox, closed once.

use super::error::WorktreeError;
use super::folder::{Closed, Ground, OpenFolder};
use super::names::{branch_of, name_of};
use super::record::RunFolders;
use super::repo::{Oid, Repo};
use crate::rundir::RunDir;
use crate::scheduler::Folder;
use claw_agents::permission::Reach;
use claw_agents::services::{AgentServices, Loan};
use claw_tools::sandbox::SandboxPolicy;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OnceCell, OwnedMutexGuard, Semaphore};

/// Folders that are made at once: each reads and writes the whole tree.
const AT_ONCE: usize = 4;

/// The folders of one run.
pub(crate) struct Folders {
    pub(super) run: RunDir,
    pub(super) workspace: PathBuf,
    pub(super) worktrees: PathBuf,
    pub(super) agents: Arc<AgentServices>,
    repo: OnceCell<Repo>,
    gates: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    room: Semaphore,
}

impl Folders {
    /// `worktrees`: where folders of all runs lie.
    pub(crate) fn new(run: RunDir, workspace: &Path, worktrees: &Path, agents: Arc<AgentServices>) -> Self {
        Self {
            run,
            workspace: workspace.to_owned(),
            worktrees: worktrees.to_owned(),
            agents,
            repo: OnceCell::new(),
            gates: Mutex::default(),
            room: Semaphore::new(AT_ONCE),
        }
    }

    fn policy(&self) -> Arc<SandboxPolicy> {
        self.agents.sandboxes.policy(Reach::DangerFullAccess, &self.workspace, &[])
    }

    pub(super) async fn repo(&self) -> Result<&Repo, WorktreeError> {
        self.repo.get_or_try_init(|| Repo::open(&self.workspace, self.policy())).await
    }

    pub(super) fn folders(&self) -> RunFolders {
        RunFolders::of(&self.worktrees, self.run.id())
    }

    /// Whoever makes, fills or closes a folder is alone with it.
    async fn gate(&self, name: &str) -> OwnedMutexGuard<()> {
        let gate = {
            let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(gates.entry(name.to_owned()).or_default())
        };
        gate.lock_owned().await
    }

    /// The folder of a step, made where it is not there. `shared`: others work there, too, and it outlives this step.
    pub(crate) async fn open(&self, folder: &Folder, shared: bool) -> Result<OpenFolder, WorktreeError> {
        let _gate = self.gate(&name_of(&folder.owner, folder.attempt)).await;
        let repo = self.repo().await?;
        // Never closed.
        let _room = self.room.acquire().await;
        let folders = self.folders();
        let ground = Ground { repo, folders: &folders, run: self.run.id() };
        let open = ground.open(folder, shared).await?;
        let loan = Loan { writable: open.writable.clone(), governing: open.governing.clone() };
        self.agents.sandboxes.lend(&open.path, loan);
        Ok(open)
    }

    /// Nobody works there any more: the work goes to its branch and its difference to `patch.diff`, the folder away.
    /// `None`: there never was one.
    pub(crate) async fn close(&self, folder: &Folder) -> Result<Option<Closed>, WorktreeError> {
        let name = name_of(&folder.owner, folder.attempt);
        let _gate = self.gate(&name).await;
        let folders = self.folders();
        let Some(record) = folders.load(&name)? else { return Ok(None) };
        let repo = self.repo().await?;
        let path = folders.folder(&name);
        if !path.is_dir() {
            let ground = Ground { repo, folders: &folders, run: self.run.id() };
            return ground.close(&record).await.map(Some);
        }
        self.agents.sandboxes.take_back(&path);
        let ground = Ground { repo, folders: &folders, run: self.run.id() };
        let closed = ground.close(&record).await?;
        ground.patch(&closed, &self.run.node(&folder.owner, folder.attempt).join("patch.diff")).await?;
        Ok(Some(closed))
    }

    /// What a step left on its branch: where it began, and its end.
    pub(super) async fn work(&self, folder: &Folder) -> Result<Option<(Oid, Oid)>, WorktreeError> {
        if let Some(closed) = self.close(folder).await? {
            return Ok(Some((closed.base, closed.tip)));
        }
        let repo = self.repo().await?;
        let branch = branch_of(self.run.id(), &folder.owner, folder.attempt);
        let Some(tip) = repo.tip(&branch).await? else { return Ok(None) };
        let base = repo.fork_point(&repo.head().await?, &tip).await?;
        Ok(base.map(|base| (base, tip)))
    }

    /// What a process left that is gone: folders of single attempts are closed, those of groups stay for who goes on
    /// there. Notes for people.
    pub(crate) async fn sweep(&self) -> Vec<String> {
        let folders = self.folders();
        let there = |name: &str| folders.folder(name).is_dir();
        let mut notes = Vec::new();
        for record in folders.all().into_iter().filter(|record| !record.shared && there(&record.name())) {
            let swept = self.sweep_one(&record).await;
            let path = folders.folder(&record.name());
            match swept {
                Ok(None) => {}
                Ok(Some(why)) => notes.push(format!("{} stays: {why}", path.display())),
                Err(error) => notes.push(format!("{} stays: {error}", path.display())),
            }
        }
        if let Err(error) = self.unlist_gone().await {
            notes.push(format!("git still lists folders that are gone: {error}"));
        }
        notes
    }

    async fn unlist_gone(&self) -> Result<(), WorktreeError> {
        let folders = self.folders();
        if !folders.root.is_dir() {
            return Ok(());
        }
        let ground = Ground { repo: self.repo().await?, folders: &folders, run: self.run.id() };
        ground.unlist_gone().await
    }

    async fn sweep_one(&self, record: &super::record::FolderRecord) -> Result<Option<String>, WorktreeError> {
        if record.is_scratch {
            let folders = self.folders();
            let ground = Ground { repo: self.repo().await?, folders: &folders, run: self.run.id() };
            ground.remove(record, &folders.folder(&record.name())).await?;
            folders.forget(&record.name());
            return Ok(None);
        }
        let folder = Folder {
            owner: record.owner.clone(),
            attempt: record.attempt,
            base: crate::plan::model::Base::ParentHead,
            goes_on_from: None,
        };
        Ok(self.close(&folder).await?.and_then(|closed| closed.kept))
    }
}
