//! A merged difference goes into the workspace as one step: prepared aside, written down, carried out; after a kill
//! finished or taken back, never half there.

use super::base::Temporary;
use super::combine::{Combined, shown};
use super::error::WorktreeError;
use super::folders::Folders;
use super::images::{Image, RawName, look, open_top};
use super::landing_file::{HeadMove, LandingEntry, LandingFile, LandingFolder, Mark};
use super::put::{self, Way, bring};
use super::repo::{Oid, Repo};
use super::turn::{Kind, Turn};
use crate::addr::StepAddr;
use crate::journal::record::EndState;
use crate::rundir::RunDir;
use claw_kernel::digest::Digest;
use claw_kernel::durable;
use claw_kernel::tasks;
use claw_tools::sandbox::SandboxPolicy;
use rustix::fs::{AtFlags, CWD};
use serde_json::Value;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// For an index that is in use.
const LOOKS: u32 = 40;
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// One landing.
pub(crate) struct Landing {
    folder: LandingFolder,
    file: LandingFile,
    repo: Repo,
    /// No other merge lands in this workspace meanwhile.
    _turn: Option<Turn>,
}

impl Folders {
    /// An attempt of a merge begins: a kill from here on leaves a sign of it.
    pub(crate) fn mark(&self, step: &StepAddr, attempt: u32, key: Digest) -> Result<(), WorktreeError> {
        let mark = Mark { step: step.clone(), attempt, key };
        LandingFolder::of(&self.run, step, attempt).mark(&mark)
    }

    /// Makes all ready and writes it down. Nothing of the workspace is changed yet. Errors: the workspace is not what it
    /// was when the merge began.
    pub(crate) async fn prepare(
        &self,
        step: &StepAddr,
        attempt: u32,
        combined: &Combined,
        output: Value,
    ) -> Result<Landing, WorktreeError> {
        let repo = self.repo().await?;
        let folder = LandingFolder::of(&self.run, step, attempt);
        let turn = Turn::take(Kind::Land, &self.worktrees, &repo.top).await?;
        let changes = changes(repo, &combined.parent.tree, &combined.tree).await?;
        self.stage(repo, &folder, combined, &changes).await?;
        let (top, store) = (repo.top.clone(), folder.clone());
        let files = tasks::blocking("landing", move || images(&top, &store, changes)).await;
        let files = files.map_err(io::Error::other).map_err(WorktreeError::io(&folder.root))??;
        let now = self.parent(combined.apply).await;
        match now {
            Ok(now) if now == combined.parent => {}
            Ok(now) => {
                let what = if now.head == combined.parent.head { "files" } else { "HEAD" };
                return Err(WorktreeError::ParentChanged { what: what.to_owned() });
            }
            Err(WorktreeError::NotClean { files, .. }) => {
                return Err(WorktreeError::ParentChanged { what: files.join(", ") });
            }
            Err(error) => return Err(error),
        }
        let head = combined
            .commit
            .as_ref()
            .map(|to| HeadMove { from: combined.parent.head.clone(), to: to.clone() });
        let file = LandingFile::new(head, files, output);
        folder.save(&file)?;
        Ok(Landing { folder, file, repo: repo.clone(), _turn: Some(turn) })
    }

    /// The files as they will be, written by git below the landing's folder.
    async fn stage(
        &self,
        repo: &Repo,
        folder: &LandingFolder,
        combined: &Combined,
        changes: &[Change],
    ) -> Result<(), WorktreeError> {
        let own = self.folders();
        own.make()?;
        let index = Temporary(own.scratch("landing"));
        repo.call_on(&repo.top, &index.0, ["read-tree", combined.tree.as_ref()]).done().await?;
        let mut names = Vec::new();
        for change in changes.iter().filter(|change| change.is_there) {
            names.extend_from_slice(change.path.as_os_str().as_bytes());
            names.push(0);
        }
        let after = folder.after();
        durable::private_dir(&after).map_err(WorktreeError::io(&after))?;
        let mut prefix = OsString::from("--prefix=");
        prefix.push(&after);
        prefix.push("/");
        let arguments = ["checkout-index".into(), prefix, "-f".into(), "-z".into(), "--stdin".into()];
        repo.call_on(&repo.top, &index.0, arguments).stdin(names).done().await
    }
}

/// A path in which two trees differ.
struct Change {
    path: PathBuf,
    was_there: bool,
    is_there: bool,
}

/// Without repositories inside: they are left alone.
async fn changes(repo: &Repo, from: &Oid, to: &Oid) -> Result<Vec<Change>, WorktreeError> {
    let asked = ["diff-tree", "-r", "-z", "--no-renames", "--raw", from.as_ref(), to.as_ref()];
    let bytes = repo.call(asked).bytes().await?;
    let mut parts = bytes.split(|byte| *byte == 0).filter(|part| !part.is_empty());
    let mut found = Vec::new();
    while let (Some(modes), Some(path)) = (parts.next(), parts.next()) {
        let text = String::from_utf8_lossy(modes);
        let mut words = text.trim_start_matches(':').split(' ');
        let (Some(old), Some(new)) = (words.next(), words.next()) else {
            return Err(WorktreeError::Unreadable { what: "diff-tree".to_owned() });
        };
        if old != "160000" && new != "160000" {
            let path = PathBuf::from(OsString::from_vec(path.to_vec()));
            found.push(Change { path, was_there: old != "000000", is_there: new != "000000" });
        }
    }
    Ok(found)
}

/// What stands in the workspace is kept aside; what will stand there is on the disk. Blocks.
fn images(
    top: &Path,
    store: &LandingFolder,
    changes: Vec<Change>,
) -> Result<Vec<LandingEntry>, WorktreeError> {
    let io = |path: &Path| WorktreeError::io(path.to_owned());
    let top_fd = open_top(top).map_err(io(top))?;
    let after = store.after();
    let after_fd = open_top(&after).map_err(io(&after))?;
    let before = store.root.join("before");
    durable::private_dir(&before).map_err(io(&before))?;
    let mut in_the_way = Vec::new();
    let mut entries = Vec::with_capacity(changes.len());
    for (at, change) in changes.iter().enumerate() {
        let path = top.join(&change.path);
        let (was, bytes) = look(top_fd.as_fd(), &change.path).map_err(io(&path))?;
        match (&was, change.was_there) {
            (Image::File { .. }, true) => keep(&store.before(at), &bytes).map_err(io(&path))?,
            (Image::Link { .. }, true) | (Image::Absent, false) => {}
            // A folder that the merge replaces by a file: what git knows in it goes, the rest keeps it there.
            (Image::Other, false) => {}
            (Image::File { .. } | Image::Link { .. }, false) => in_the_way.push(change.path.clone()),
            (Image::Absent | Image::Other, true) => {
                return Err(WorktreeError::ParentChanged { what: change.path.display().to_string() });
            }
        }
        let was = if was == Image::Other { Image::Absent } else { was };
        let will = if change.is_there {
            look(after_fd.as_fd(), &change.path).map_err(io(&path))?.0
        } else {
            Image::Absent
        };
        if let Image::File { .. } = &will {
            let staged = after.join(&change.path);
            File::open(&staged).and_then(|file| file.sync_data()).map_err(io(&staged))?;
        }
        let will = with_mode_of(&was, will);
        entries.push(LandingEntry { path: RawName::of(change.path.as_os_str()), before: was, after: will });
    }
    if in_the_way.is_empty() {
        Ok(entries)
    } else {
        Err(WorktreeError::InTheWay { files: shown(&in_the_way) })
    }
}

fn keep(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = match durable::create_stream(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            std::fs::remove_file(path)?;
            durable::create_stream(path)?
        }
        other => other?,
    };
    file.write_all(bytes)?;
    file.sync_data()
}

/// A file keeps its permissions, but whether it is a program.
fn with_mode_of(was: &Image, will: Image) -> Image {
    match (was, will) {
        (Image::File { mode, .. }, Image::File { mode: new, sha256 }) => {
            let is_program = new & 0o100 != 0;
            let programs = (mode & 0o444) >> 2;
            let mode = if is_program { mode | programs } else { mode & !0o111 };
            Image::File { mode, sha256 }
        }
        (_, will) => will,
    }
}

impl Landing {
    /// Carries it out. A workspace that somebody changes meanwhile is brought back to what it was, but for that change.
    pub(crate) async fn carry_out(&self) -> Result<(), WorktreeError> {
        match self.finish().await {
            Ok(()) => Ok(()),
            Err(error) => {
                self.take_back().await?;
                // It never was: nobody finishes it later.
                self.folder.withdraw()?;
                Err(error)
            }
        }
    }

    async fn finish(&self) -> Result<(), WorktreeError> {
        let alone = self.files(Way::Finish, usize::MAX).await?;
        if !alone.is_empty() {
            return Err(WorktreeError::ParentChanged { what: shown(&alone).join(", ") });
        }
        self.index().await?;
        self.head().await
    }

    async fn take_back(&self) -> Result<(), WorktreeError> {
        self.files(Way::TakeBack, usize::MAX).await?;
        if let Some(HeadMove { from, to }) = &self.file.head {
            self.move_index(to, from).await?;
        }
        Ok(())
    }

    /// Off the runtime's threads. Gives what was left alone.
    pub(super) async fn files(&self, way: Way, most: usize) -> Result<Vec<PathBuf>, WorktreeError> {
        let (top, store, entries) = (self.repo.top.clone(), self.folder.clone(), self.file.files.clone());
        let work = move || {
            let fd = open_top(&top)?;
            bring(fd.as_fd(), &store, &entries, way, most)
        };
        let brought = tasks::blocking("landing", work).await.map_err(io::Error::other).and_then(|done| done);
        brought.map_err(WorktreeError::io(&self.repo.top))
    }

    pub(super) async fn index(&self) -> Result<(), WorktreeError> {
        match &self.file.head {
            Some(HeadMove { from, to }) => self.move_index(from, to).await,
            None => Ok(()),
        }
    }

    /// What the index has of one commit becomes what the other has; what else was staged stays.
    async fn move_index(&self, from: &Oid, to: &Oid) -> Result<(), WorktreeError> {
        let repo = &self.repo;
        let real = repo.git_dir.join("index");
        let new = repo
            .git_dir
            .join(format!("index.{}", self.folder.root.file_name().unwrap_or_default().display()));
        let new = Temporary(new);
        let lock = repo.git_dir.join("index.lock");
        drop_own_lock(&new.0, &lock);
        let _ = std::fs::remove_file(&new.0);
        std::fs::copy(&real, &new.0).map_err(WorktreeError::io(&real))?;
        repo.call_on(&repo.top, &new.0, ["read-tree", "-i", "-m", from.as_ref(), to.as_ref()]).done().await?;
        // Its exit code tells of files that differ: they are the user's own.
        repo.call_on(&repo.top, &new.0, ["update-index", "-q", "--refresh"]).run().await?;
        File::open(&new.0).and_then(|file| file.sync_data()).map_err(WorktreeError::io(&new.0))?;
        lock_index(&new.0, &lock).await?;
        rustix::fs::rename(&lock, &real).map_err(io::Error::from).map_err(WorktreeError::io(&real))
    }

    pub(super) async fn head(&self) -> Result<(), WorktreeError> {
        let Some(HeadMove { from, to }) = &self.file.head else { return Ok(()) };
        if self.repo.head().await? == *to {
            return Ok(());
        }
        let moved = ["update-ref", "-m", "claw: merge", "HEAD", to.as_ref(), from.as_ref()];
        self.repo.call(moved).done().await
    }

    /// After a kill: what is whole is finished; where somebody went on in the workspace, what was begun is taken back.
    async fn settle(&self) -> Result<Fate, WorktreeError> {
        let moved = match &self.file.head {
            Some(HeadMove { from, to }) => {
                let now = self.repo.head().await?;
                // Nothing is left to be done but what a person may have undone since.
                let is_done = self.repo.is_ancestor(to, &now).await?;
                if is_done {
                    return Ok(Fate::Finished(self.file.output.clone()));
                }
                now != *from
            }
            None => false,
        };
        let (top, entries) = (self.repo.top.clone(), self.file.files.clone());
        let look = move || put::standing(open_top(&top)?.as_fd(), &entries);
        let standing = tasks::blocking("landing", look).await.map_err(io::Error::other).and_then(|done| done);
        let standing = standing.map_err(WorktreeError::io(&self.repo.top))?;
        if moved {
            self.files(Way::TakeBack, usize::MAX).await?;
            return Ok(Fate::TakenBack("HEAD was moved meanwhile".to_owned()));
        }
        if standing.waiting > 0 && !standing.foreign.is_empty() {
            self.take_back().await?;
            return Ok(Fate::TakenBack(format!(
                "{} was changed meanwhile",
                shown(&standing.foreign).join(", ")
            )));
        }
        // What somebody changed after all of it was there stays as they made it.
        let alone = self.files(Way::Finish, usize::MAX).await?;
        if alone.len() > standing.foreign.len() {
            self.take_back().await?;
            return Ok(Fate::TakenBack(format!("{} was changed meanwhile", shown(&alone).join(", "))));
        }
        self.index().await?;
        self.head().await?;
        Ok(Fate::Finished(self.file.output.clone()))
    }
}

/// Another command of git may hold it for a moment: there is nothing that tells when it is free.
async fn lock_index(new: &Path, lock: &Path) -> Result<(), WorktreeError> {
    for _ in 0..LOOKS {
        match rustix::fs::linkat(CWD, new, CWD, lock, AtFlags::empty()) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::EXIST) => tokio::time::sleep(BETWEEN_LOOKS).await,
            Err(errno) => return Err(WorktreeError::Io { path: lock.to_owned(), source: errno.into() }),
        }
    }
    Err(WorktreeError::IndexLocked { lock: lock.to_owned() })
}

/// A kill between the link and the rename leaves a lock that is the new index itself.
fn drop_own_lock(own: &Path, lock: &Path) {
    let same = match (own.symlink_metadata(), lock.symlink_metadata()) {
        (Ok(own), Ok(lock)) => own.ino() == lock.ino() && own.dev() == lock.dev(),
        (Ok(_) | Err(_), _) => false,
    };
    if same {
        let _ = std::fs::remove_file(lock);
    }
}

/// What became of a merge whose process is gone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fate {
    /// Nothing of it had reached the workspace.
    Untouched,
    /// All of it is in the workspace; what the step gives.
    Finished(Value),
    /// None of it is there; why.
    TakenBack(String),
}

/// A merge whose process is gone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recovered {
    pub step: StepAddr,
    pub attempt: u32,
    pub key: Digest,
    pub fate: Fate,
}

/// Finishes or takes back what a killed process left half way. To be called by the owner of the run before it starts
/// anything; each is to be put on record, then [`forget`] it. `ended`: how the journal says that an attempt ended.
pub(crate) async fn recover(
    run: &RunDir,
    workspace: &Path,
    policy: Arc<SandboxPolicy>,
    ended: impl Fn(&StepAddr, u32) -> Option<EndState>,
) -> Result<Vec<Recovered>, WorktreeError> {
    let mut recovered = Vec::new();
    for folder in LandingFolder::list(run) {
        let Some(Mark { step, attempt, key }) = folder.marked()? else {
            folder.forget()?;
            continue;
        };
        let known = ended(&step, attempt);
        let file = if known == Some(EndState::Succeeded) { None } else { folder.load()? };
        let fate = match file {
            None => Fate::Untouched,
            Some(file) => {
                let repo = Repo::open(workspace, Arc::clone(&policy)).await?;
                let landing = Landing { folder: folder.clone(), file, repo, _turn: None };
                match known {
                    None => landing.settle().await?,
                    Some(_) => {
                        landing.take_back().await?;
                        Fate::Untouched
                    }
                }
            }
        };
        if known.is_some() {
            folder.forget()?;
        } else {
            recovered.push(Recovered { step, attempt, key, fate });
        }
    }
    Ok(recovered)
}

/// The end of that attempt is on record.
pub(crate) fn forget(run: &RunDir, step: &StepAddr, attempt: u32) -> Result<(), WorktreeError> {
    LandingFolder::of(run, step, attempt).forget()
}
