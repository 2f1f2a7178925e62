//! One folder: made from a commit, its work kept on its branch, taken away.

use super::base::Snapshot;
use super::error::WorktreeError;
use super::record::{FolderRecord, RunFolders};
use super::repo::{Oid, Repo};
use super::turn::{Kind, Turn};
use crate::scheduler::Folder;
use claw_kernel::durable::{self, Mode, Sync};
use claw_kernel::ids::RunId;
use claw_kernel::tasks;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Bytes of a patch that is written for people; the branch has all of it.
const MOST_PATCH: usize = 4 << 20;

/// What git knew of a folder, on its way out.
const GONE: &str = ".claw-gone.";

/// A folder in which steps work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenFolder {
    /// The folder.
    pub path: PathBuf,
    /// What its work is compared with.
    pub base: String,
    /// Keeps its work.
    pub branch: String,
    /// What commands there may write beside it: its own git folder, objects, the run's branches.
    pub writable: Vec<PathBuf>,
    /// What they may not in those.
    pub governing: Vec<PathBuf>,
}

/// A folder whose work is on its branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Closed {
    /// What its work is compared with.
    pub base: Oid,
    /// The end of its branch.
    pub tip: Oid,
    /// Why the folder is still there, for people; `None`: it is gone.
    pub kept: Option<String>,
}

/// A run's folders and the repository that they are of.
pub(super) struct Ground<'g> {
    pub(super) repo: &'g Repo,
    pub(super) folders: &'g RunFolders,
    pub(super) run: RunId,
}

impl Ground<'_> {
    /// Makes a folder, or takes the one that is there.
    pub(super) async fn open(&self, folder: &Folder, shared: bool) -> Result<OpenFolder, WorktreeError> {
        self.folders.make()?;
        let name = super::names::name_of(&folder.owner, folder.attempt);
        let mut record = match self.folders.load(&name)? {
            Some(record) => record,
            None => {
                let from = self.start(folder).await?;
                let new = FolderRecord::new(self.run, &folder.owner, folder.attempt, &self.repo.top, from);
                let new = FolderRecord { shared, ..new };
                self.folders.save(&new)?;
                new
            }
        };
        let path = self.folders.folder(&name);
        let git_dir = match &record.git_dir {
            Some(git_dir) if path.join(".git").is_file() && git_dir.is_dir() => git_dir.clone(),
            Some(_) | None => {
                let made = self.make(&record, &path).await?;
                record.git_dir = Some(made.clone());
                self.folders.save(&record)?;
                made
            }
        };
        self.opened(&record, path, git_dir)
    }

    /// What it is compared with, and what its branch begins with.
    async fn start(&self, folder: &Folder) -> Result<(Oid, Oid), WorktreeError> {
        if let Some(earlier) = folder.goes_on_from {
            let name = super::names::name_of(&folder.owner, earlier);
            if let Some(record) = self.folders.load(&name)? {
                let closed = self.close(&record).await?;
                return Ok((closed.base, closed.tip));
            }
        }
        let base = self.repo.base(folder.base, self.folders.scratch("index")).await?;
        Ok((base.clone(), base))
    }

    /// A kill may have left any part of it.
    async fn make(&self, record: &FolderRecord, path: &Path) -> Result<PathBuf, WorktreeError> {
        let branch = record.branch();
        if self.repo.tip(&branch).await?.is_none() {
            let why = "claw: a folder of its own";
            self.repo.move_branch(&branch, &record.start, None, why).await?;
        }
        self.add(path, &branch, &[]).await
    }

    /// A new work tree at `path`, on a branch; with `--detach` as a further option on a commit. Gives its own git folder.
    pub(super) async fn add(&self, path: &Path, on: &str, more: &[&str]) -> Result<PathBuf, WorktreeError> {
        remove_tree(path).await?;
        let options = ["worktree", "add", "-q", "--no-checkout", "-f", "-f"];
        let options = options.iter().chain(more).map(OsStr::new);
        let arguments = options.chain([path.as_os_str(), OsStr::new(on)]);
        let turn = Turn::take(Kind::Add, self.worktrees(), &self.repo.common).await?;
        self.repo.call(arguments).done().await?;
        let git_dir = own_git_dir(self.repo, path)?;
        drop(turn);
        let filled = self.repo.call(["read-tree", "--reset", "-u", "HEAD"]).at(path);
        filled.env("GIT_DIR", &git_dir).env("GIT_WORK_TREE", path).done().await?;
        Ok(git_dir)
    }

    /// Where folders of all runs lie.
    fn worktrees(&self) -> &Path {
        self.folders.root.parent().unwrap_or(&self.folders.root)
    }

    fn opened(
        &self,
        record: &FolderRecord,
        path: PathBuf,
        git_dir: PathBuf,
    ) -> Result<OpenFolder, WorktreeError> {
        let common = &self.repo.common;
        let refs = format!("heads/claw/{}", self.run);
        let folders = [common.join("refs").join(&refs), common.join("logs/refs").join(&refs)];
        for folder in &folders {
            std::fs::create_dir_all(folder).map_err(WorktreeError::io(folder))?;
        }
        let governing = vec![git_dir.join("gitdir"), common.join("objects/info/alternates")];
        let writable = [git_dir, common.join("objects")].into_iter().chain(folders).collect();
        Ok(OpenFolder { path, base: record.base.to_string(), branch: record.branch(), writable, governing })
    }

    /// Puts the work on the branch, then takes the folder away, unless something in it would be lost.
    pub(super) async fn close(&self, record: &FolderRecord) -> Result<Closed, WorktreeError> {
        let path = self.folders.folder(&record.name());
        let branch = record.branch();
        let tip = self.repo.tip(&branch).await?;
        if !path.is_dir() {
            let never_was = record.git_dir.is_none().then(|| record.start.clone());
            let tip = tip.or(never_was).ok_or(WorktreeError::BranchGone { branch })?;
            return Ok(Closed { base: record.base.clone(), tip, kept: None });
        }
        let before = tip.clone().unwrap_or_else(|| record.start.clone());
        let Some(git_dir) = &record.git_dir else {
            // It was never whole, so nobody worked there: what is not in it was not taken away.
            self.remove(record, &path).await?;
            return Ok(Closed { base: record.base.clone(), tip: before, kept: None });
        };
        let known = git_dir.join("index");
        let state = self.repo.snapshot(&path, &known, &before, self.folders.scratch("index")).await?;
        let tip = self.commit(record, &state, tip.as_ref(), &before).await?;
        let kept = self.would_be_lost(&state, &record.base).await?;
        if kept.is_none() {
            self.remove(record, &path).await?;
        }
        Ok(Closed { base: record.base.clone(), tip, kept })
    }

    async fn commit(
        &self,
        record: &FolderRecord,
        state: &Snapshot,
        tip: Option<&Oid>,
        before: &Oid,
    ) -> Result<Oid, WorktreeError> {
        let branch = record.branch();
        let why = format!("claw: {}, attempt {}", record.owner, record.attempt);
        let aside = self.commits_beside(record, before).await?;
        if aside.is_none() && self.repo.tree(before).await? == state.tree {
            if tip.is_none() {
                self.repo.move_branch(&branch, before, None, &why).await?;
            }
            return Ok(before.clone());
        }
        let parents: Vec<&Oid> = std::iter::once(before).chain(aside.as_ref()).collect();
        let message = format!("{why}\n\nRun {}.\n", record.run);
        let commit = self.repo.commit_tree(&state.tree, &parents, &message).await?;
        self.repo.move_branch(&branch, &commit, tip, &why).await?;
        Ok(commit)
    }

    /// Commits that were made there beside the branch: they are kept, too.
    async fn commits_beside(&self, record: &FolderRecord, tip: &Oid) -> Result<Option<Oid>, WorktreeError> {
        let Some(git_dir) = &record.git_dir else { return Ok(None) };
        let Ok(Some(text)) = read_small(&git_dir.join("HEAD")) else { return Ok(None) };
        let Ok(head) = Oid::try_from(text.trim().to_owned()) else { return Ok(None) };
        let Some(head) = self.repo.commit(head.as_ref()).await? else { return Ok(None) };
        let known = self.repo.is_ancestor(&head, tip).await?;
        Ok((!known).then_some(head))
    }

    async fn would_be_lost(&self, state: &Snapshot, base: &Oid) -> Result<Option<String>, WorktreeError> {
        if let Some(left_out) = &state.left_out {
            return Ok(Some(format!("git could not take in all of it: {left_out}")));
        }
        let before = self.repo.inner(base).await?;
        let new: Vec<String> = self
            .repo
            .inner(&state.tree)
            .await?
            .iter()
            .filter(|path| !before.contains(path))
            .map(|path| path.display().to_string())
            .collect();
        Ok((!new.is_empty())
            .then(|| format!("there are repositories of their own in it: {}", new.join(", "))))
    }

    /// The folder, then what git knows of it.
    pub(super) async fn remove(&self, record: &FolderRecord, path: &Path) -> Result<(), WorktreeError> {
        // A kill may have come before it was on record.
        let found = own_git_dir(self.repo, path).ok();
        // As a whole: of a folder that is half removed somebody might think that its files were taken away on purpose.
        let aside = self.folders.scratch("gone");
        match rustix::fs::rename(path, &aside) {
            Ok(()) => remove_tree(&aside).await?,
            Err(rustix::io::Errno::NOENT) => {}
            Err(errno) => return Err(WorktreeError::io(path)(errno.into())),
        }
        match record.git_dir.as_ref().or(found.as_ref()) {
            Some(git_dir) => self.unlist(git_dir).await,
            None => Ok(()),
        }
    }

    /// Git knows it no longer.
    async fn unlist(&self, git_dir: &Path) -> Result<(), WorktreeError> {
        let common = &self.repo.common;
        if git_dir.parent() != Some(&common.join("worktrees")) {
            return Ok(());
        }
        let turn = Turn::take(Kind::Add, self.worktrees(), common).await?;
        // At once, for whoever lists the work trees meanwhile.
        let aside = common.join(format!("{GONE}{:012x}", fastrand::u64(..) >> 16));
        match rustix::fs::rename(git_dir, &aside) {
            Ok(()) => remove_tree(&aside).await?,
            Err(rustix::io::Errno::NOENT) => {}
            Err(errno) => return Err(WorktreeError::io(git_dir)(errno.into())),
        }
        drop(turn);
        // The last one takes the folder of them with it, as git does.
        let _ = std::fs::remove_dir(common.join("worktrees"));
        Ok(())
    }

    /// A kill came between a folder's end and the end of what git knows of it. A commit that is on no branch stays known.
    pub(super) async fn unlist_gone(&self) -> Result<(), WorktreeError> {
        let is_aside =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"."));
        for aside in entries(&self.folders.root).iter().filter(|path| is_aside(path)) {
            remove_tree(aside).await?;
        }
        let common = &self.repo.common;
        let turn = Turn::take(Kind::Add, self.worktrees(), common).await?;
        for aside in entries(common) {
            if aside.file_name().is_some_and(|name| name.as_bytes().starts_with(GONE.as_bytes())) {
                remove_tree(&aside).await?;
            }
        }
        drop(turn);
        for git_dir in entries(&common.join("worktrees")) {
            let Ok(Some(text)) = read_small(&git_dir.join("gitdir")) else { continue };
            let Some(path) = Path::new(text.trim_end()).parent() else { continue };
            let is_ours = path.parent() == Some(&self.folders.root);
            if !is_ours || path.exists() {
                continue;
            }
            let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
            let is_scratch = match self.folders.load(name)? {
                Some(record) => record.is_scratch,
                None => false,
            };
            let Ok(Some(head)) = read_small(&git_dir.join("HEAD")) else { continue };
            if is_scratch || head.starts_with("ref: refs/heads/claw/") {
                self.unlist(&git_dir).await?;
            }
        }
        Ok(())
    }

    /// The difference for people; no file where there is none.
    pub(super) async fn patch(&self, closed: &Closed, into: &Path) -> Result<(), WorktreeError> {
        if closed.base == closed.tip {
            return Ok(());
        }
        let asked = [
            "diff-tree",
            "-p",
            "--binary",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--no-renames",
            "--full-index",
            "--src-prefix=a/",
            "--dst-prefix=b/",
            closed.base.as_ref(),
            closed.tip.as_ref(),
        ];
        let ran = self.repo.call(asked).keep(2 * MOST_PATCH).run().await?;
        if ran.code != 0 {
            return Err(ran.failed());
        }
        let (mut bytes, missing) = (ran.out, ran.missing);
        if bytes.is_empty() {
            return Ok(());
        }
        let over = bytes.len().saturating_sub(MOST_PATCH) as u64 + missing;
        if over > 0 {
            bytes.truncate(MOST_PATCH);
            bytes.extend_from_slice(
                format!("\n[… {over} bytes left out; the branch has all of it …]\n").as_bytes(),
            );
        }
        let folder = into.parent().unwrap_or(into);
        durable::private_dir(folder).map_err(WorktreeError::io(folder))?;
        durable::replace(into, &bytes, Mode::Private, Sync::No).map_err(WorktreeError::io(into))
    }
}

/// What lies in a folder; nothing where there is none.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let found = folder.read_dir().into_iter().flatten();
    found.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// The git folder of a work tree that was just made.
fn own_git_dir(repo: &Repo, path: &Path) -> Result<PathBuf, WorktreeError> {
    let file = path.join(".git");
    let text = read_small(&file).map_err(WorktreeError::io(&file))?.unwrap_or_default();
    let named = text.trim().strip_prefix("gitdir: ").map(|dir| path.join(dir));
    let found = named.and_then(|dir| dir.canonicalize().ok());
    let found = found.filter(|dir| dir.parent() == Some(&repo.common.join("worktrees")));
    found.ok_or_else(|| WorktreeError::Unreadable { what: "worktree add".to_owned() })
}

fn read_small(path: &Path) -> io::Result<Option<String>> {
    use rustix::fs::{Mode, OFlags};
    use std::io::Read;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = std::fs::File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut text = String::new();
    file.take(4096).read_to_string(&mut text)?;
    Ok(Some(text))
}

/// However deep or wide, and whatever its modes are.
pub(super) async fn remove_tree(path: &Path) -> Result<(), WorktreeError> {
    let what = path.to_owned();
    let removed = tasks::blocking("remove", move || claw_tools::files::remove::remove_tree(&what)).await;
    removed.map_err(io::Error::other).and_then(|removed| removed).map_err(WorktreeError::io(path))
}
