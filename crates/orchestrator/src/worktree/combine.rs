//! Branches put together, one after another, without a file of the workspace: trees in the object store, and a folder of
//! its own in which each result is verified.

use super::base::Temporary;
use super::error::WorktreeError;
use super::folder::Ground;
use super::folders::Folders;
use super::names::{branch_of, name_of};
use super::record::FolderRecord;
use super::repo::{Oid, Repo};
use crate::addr::StepAddr;
use crate::plan::model::Apply;
use crate::scheduler::Folder;
use claw_agents::services::Loan;
use claw_kernel::cancel::CancelToken;
use futures_util::future::BoxFuture;
use std::path::{Path, PathBuf};

/// What governs claw is not changed by a merge, wherever it lies.
const GOVERNING: [&str; 3] = [".claw", ".claude", ".mcp.json"];

/// What the command of `verify` says of a merged tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It stays.
    Good,
    /// The branch is taken back, for this reason.
    Bad(String),
}

/// Judges what lies in a folder.
pub(crate) type Verify<'v> =
    dyn Fn(PathBuf) -> BoxFuture<'v, Result<Verdict, WorktreeError>> + Send + Sync + 'v;

/// Why a branch was taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Spoilt {
    /// The same places were changed before it.
    Conflict(Vec<String>),
    /// It changes what governs claw.
    Governs(Vec<String>),
    /// `verify` failed behind it.
    Verify(String),
}

/// A branch that was taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TakenBack {
    pub step: StepAddr,
    pub branch: String,
    pub why: Spoilt,
}

/// The workspace as it was when the merge began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parent {
    pub(super) head: Oid,
    /// What the branches are merged into.
    pub(super) tree: Oid,
}

/// What came of it.
#[derive(Clone, Debug)]
pub(crate) struct Combined {
    pub(super) parent: Parent,
    pub(super) apply: Apply,
    pub(super) tree: Oid,
    /// For `squash` and `merge`, where there is something to commit.
    pub(super) commit: Option<Oid>,
    pub applied: Vec<StepAddr>,
    pub taken_back: Vec<TakenBack>,
}

impl Combined {
    /// Whether there is anything to land.
    pub(crate) fn changes_something(&self) -> bool {
        self.tree != self.parent.tree
    }

    /// The commit that HEAD becomes.
    pub(crate) fn commit(&self) -> Option<String> {
        self.commit.as_ref().map(ToString::to_string)
    }
}

/// Which step merges what.
pub(crate) struct Combining<'c, 'v> {
    pub step: &'c StepAddr,
    pub attempt: u32,
    pub branches: &'c [Folder],
    pub apply: Apply,
    pub verify: Option<&'c Verify<'v>>,
    pub token: &'c CancelToken,
}

impl Folders {
    /// Puts the branches together. Nothing of the workspace is changed.
    pub(crate) async fn combine(&self, what: &Combining<'_, '_>) -> Result<Combined, WorktreeError> {
        let repo = self.repo().await?;
        let parent = self.parent(what.apply).await?;
        let mut trial = None;
        let combined = self.fold(repo, what, parent, &mut trial).await;
        if let Some(trial) = trial {
            trial.remove(self, repo).await?;
        }
        combined
    }

    async fn fold(
        &self,
        repo: &Repo,
        what: &Combining<'_, '_>,
        parent: Parent,
        trial: &mut Option<Trial>,
    ) -> Result<Combined, WorktreeError> {
        let (tree, head) = (parent.tree.clone(), parent.head.clone());
        let mut combined = Combined {
            parent,
            apply: what.apply,
            tree,
            commit: None,
            applied: Vec::new(),
            taken_back: Vec::new(),
        };
        let mut last = head;
        for folder in what.branches {
            if what.token.is_cancelled() {
                return Err(WorktreeError::Cancelled);
            }
            let branch = branch_of(self.run.id(), &folder.owner, folder.attempt);
            let Some((base, tip)) = self.work(folder).await? else {
                return Err(WorktreeError::BranchGone { branch });
            };
            let tried = self.add(repo, what, &combined, (&base, &tip), trial).await?;
            let step = folder.owner.clone();
            match tried {
                Err(why) => combined.taken_back.push(TakenBack { step, branch, why }),
                Ok(tree) => {
                    if what.apply == Apply::Merge && tree != combined.tree {
                        let message = format!("Merge branch '{branch}'\n");
                        last = repo.commit_tree(&tree, &[&last, &tip], &message).await?;
                        combined.commit = Some(last.clone());
                    }
                    combined.tree = tree;
                    combined.applied.push(step);
                }
            }
        }
        if what.apply == Apply::Squash && combined.tree != combined.parent.tree {
            let names: String = combined.applied.iter().map(|step| format!("- {step}\n")).collect();
            let message = format!(
                "{}: work of {} step(s)\n\n{names}\nRun {}.\n",
                what.step,
                combined.applied.len(),
                self.run.id()
            );
            combined.commit =
                Some(repo.commit_tree(&combined.tree, &[&combined.parent.head], &message).await?);
        }
        Ok(combined)
    }

    /// The workspace as it stands: what `patch` merges into has what is not committed; the others want it clean.
    pub(super) async fn parent(&self, apply: Apply) -> Result<Parent, WorktreeError> {
        let repo = self.repo().await?;
        let head = repo.head().await?;
        let name = match apply {
            Apply::Patch => {
                let folders = self.folders();
                folders.make()?;
                let tree = repo.parent_state(&head, folders.scratch("index")).await?.tree;
                return Ok(Parent { head, tree });
            }
            Apply::Squash => "squash",
            Apply::Merge => "merge",
        };
        let changes = repo.changes().await?;
        if !changes.is_empty() {
            return Err(WorktreeError::NotClean { apply: name, files: shown(&changes) });
        }
        let tree = repo.tree(&head).await?;
        Ok(Parent { head, tree })
    }

    /// The tree with one more branch in it.
    async fn add(
        &self,
        repo: &Repo,
        what: &Combining<'_, '_>,
        so_far: &Combined,
        (base, tip): (&Oid, &Oid),
        trial: &mut Option<Trial>,
    ) -> Result<Result<Oid, Spoilt>, WorktreeError> {
        let (was, is) = (repo.tree(base).await?, repo.tree(tip).await?);
        if was == is {
            return Ok(Ok(so_far.tree.clone()));
        }
        let governing: Vec<PathBuf> =
            repo.changed(&was, &is).await?.into_iter().filter(|path| governs(path)).collect();
        if !governing.is_empty() {
            return Ok(Err(Spoilt::Governs(shown(&governing))));
        }
        let tree = match repo.merged(&was, &so_far.tree, &is).await? {
            Ok(tree) => tree,
            Err(files) => return Ok(Err(Spoilt::Conflict(shown(&files)))),
        };
        let Some(verify) = what.verify else { return Ok(Ok(tree)) };
        if trial.is_none() {
            *trial = Some(Trial::make(self, repo, what, &so_far.parent).await?);
        }
        let Some(made) = trial else { return Ok(Ok(tree)) };
        made.fill(repo, &tree).await?;
        Ok(match verify(made.path.clone()).await? {
            Verdict::Good => Ok(tree),
            Verdict::Bad(said) => Err(Spoilt::Verify(said)),
        })
    }
}

fn governs(path: &Path) -> bool {
    path.iter().any(|part| GOVERNING.iter().any(|name| part.eq_ignore_ascii_case(name)))
}

pub(super) fn shown(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.display().to_string()).collect()
}

/// The folder in which merged trees are verified.
struct Trial {
    path: PathBuf,
    index: Temporary,
    record: FolderRecord,
}

impl Trial {
    async fn make(
        folders: &Folders,
        repo: &Repo,
        what: &Combining<'_, '_>,
        parent: &Parent,
    ) -> Result<Self, WorktreeError> {
        let own = folders.folders();
        let name = name_of(what.step, what.attempt);
        let path = own.folder(&name);
        let from = (parent.head.clone(), parent.head.clone());
        let new = FolderRecord::new(folders.run.id(), what.step, what.attempt, &repo.top, from);
        let mut record = FolderRecord { is_scratch: true, ..new };
        own.save(&record)?;
        let ground = Ground { repo, folders: &own, run: folders.run.id() };
        record.git_dir = Some(ground.add(&path, parent.head.as_ref(), &["--detach"]).await?);
        own.save(&record)?;
        // Nothing of git is open to the command.
        folders.agents.sandboxes.lend(&path, Loan::default());
        let index = Temporary(own.scratch("trial"));
        let trial = Self { path, index, record };
        repo.call_on(&trial.path, &trial.index.0, ["read-tree", parent.head.as_ref()]).done().await?;
        // Its exit code tells that a file differs: then it is written again.
        repo.call_on(&trial.path, &trial.index.0, ["update-index", "-q", "--refresh"]).run().await?;
        Ok(trial)
    }

    /// What the last command left goes, but what is ignored: it saves the next one time.
    async fn fill(&self, repo: &Repo, tree: &Oid) -> Result<(), WorktreeError> {
        repo.call_on(&self.path, &self.index.0, ["clean", "-ffdq"]).done().await?;
        repo.call_on(&self.path, &self.index.0, ["read-tree", "--reset", "-u", tree.as_ref()]).done().await
    }

    async fn remove(self, folders: &Folders, repo: &Repo) -> Result<(), WorktreeError> {
        folders.agents.sandboxes.take_back(&self.path);
        let own = folders.folders();
        let ground = Ground { repo, folders: &own, run: folders.run.id() };
        ground.remove(&self.record, &self.path).await?;
        own.forget(&self.record.name());
        Ok(())
    }
}
