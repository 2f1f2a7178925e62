//! The state of a work tree as a tree of git, taken through a temporary index: the real index and the files stay as they
//! are.

use super::error::WorktreeError;
use super::git::names;
use super::repo::{Oid, Repo, oid};
use crate::plan::model::Base;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// An index that is longer is not taken over; all files are read then.
const MOST_INDEX: u64 = 1 << 30;
/// claw's own folder is no part of the work.
const OWN: &str = ".claw";

/// What a work tree holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Snapshot {
    pub(super) tree: Oid,
    /// What git could not take in: a repository inside, a file that cannot be read. For people.
    pub(super) left_out: Option<String>,
}

/// A file that goes with its owner.
pub(super) struct Temporary(pub(super) PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
        let mut lock = self.0.clone().into_os_string();
        lock.push(".lock");
        let _ = std::fs::remove_file(lock);
    }
}

impl Repo {
    /// Takes the state of `folder`: all that is not ignored, and of `.claw/` what stands in `commit`. `known`: an index
    /// that tells which files did not change. `scratch`: where the temporary one lies.
    pub(super) async fn snapshot(
        &self,
        folder: &Path,
        known: &Path,
        commit: &Oid,
        scratch: PathBuf,
    ) -> Result<Snapshot, WorktreeError> {
        let index = Temporary(scratch);
        let index = &index.0;
        if !copy_index(known, index) {
            self.call_on(folder, index, ["read-tree", commit.as_ref()]).done().await?;
        }
        let ignored = self.call_on(folder, index, ["check-ignore", "-q", OWN]).run().await?.code == 0;
        let mut arguments = vec!["add", "-A", "--ignore-errors", "--", "."];
        if !ignored {
            // One that is ignored must not be named.
            arguments.push(":(top,exclude,literal).claw");
        }
        let mut added = self.call_on(folder, index, &arguments).run().await?;
        if added.code == 128 {
            // What the index told was no index.
            let _ = std::fs::remove_file(index);
            self.call_on(folder, index, ["read-tree", commit.as_ref()]).done().await?;
            added = self.call_on(folder, index, &arguments).run().await?;
        }
        let left_out = match added.code {
            0 => None,
            1 => Some(added.said),
            _ => return Err(added.failed()),
        };
        self.call_on(folder, index, ["reset", "-q", commit.as_ref(), "--", OWN]).done().await?;
        let tree = oid("write-tree", self.call_on(folder, index, ["write-tree"]).line().await?)?;
        Ok(Snapshot { tree, left_out })
    }

    /// The present state of the workspace.
    pub(super) async fn parent_state(&self, head: &Oid, scratch: PathBuf) -> Result<Snapshot, WorktreeError> {
        self.snapshot(&self.top, &self.git_dir.join("index"), head, scratch).await
    }

    /// The commit that a fresh folder starts from.
    pub(super) async fn base(&self, base: Base, scratch: PathBuf) -> Result<Oid, WorktreeError> {
        let head = self.head().await?;
        match base {
            Base::ParentHead => Ok(head),
            Base::ParentDirty => {
                let state = self.parent_state(&head, scratch).await?;
                if state.tree == self.tree(&head).await? {
                    return Ok(head);
                }
                self.commit_tree(
                    &state.tree,
                    &[&head],
                    "claw: the workspace as it was, with what was not committed",
                )
                .await
            }
        }
    }

    /// Tracked files that are not as HEAD has them.
    pub(super) async fn changes(&self) -> Result<Vec<PathBuf>, WorktreeError> {
        let asked = ["diff-index", "-z", "--name-only", "--no-renames", "--ignore-submodules", "HEAD", "--"];
        let index = self.git_dir.join("index");
        let staged = ["diff-index", "--cached", "-z", "--name-only", "--no-renames", "HEAD", "--"];
        let mut found = Vec::new();
        for asked in [&asked[..], &staged[..]] {
            found.extend(names(&self.call_on(&self.top, &index, asked).bytes().await?));
        }
        found.retain(|path| !path.starts_with(OWN));
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// Repositories inside a tree: what is in them git does not take in.
    pub(super) async fn inner(&self, tree: &Oid) -> Result<Vec<PathBuf>, WorktreeError> {
        let bytes = self.call(["ls-tree", "-r", "-z", tree.as_ref()]).bytes().await?;
        let lines = bytes.split(|byte| *byte == 0).filter(|line| line.starts_with(b"160000 "));
        Ok(lines.filter_map(|line| line.splitn(2, |byte| *byte == b'\t').nth(1)).flat_map(names).collect())
    }
}

/// An agent may have put anything there: only a plain file is copied, with its time, by which git knows what may have
/// changed since.
fn copy_index(from: &Path, to: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(fd) = rustix::fs::open(from, flags, Mode::empty()) else { return false };
    let mut file = File::from(fd);
    let Ok(meta) = file.metadata() else { return false };
    if !meta.is_file() || meta.len() > MOST_INDEX {
        return false;
    }
    let mut bytes = Vec::new();
    let copied = file.by_ref().take(MOST_INDEX).read_to_end(&mut bytes).and_then(|_| {
        use std::io::Write;
        let mut copy = claw_kernel::durable::create_stream(to)?;
        copy.write_all(&bytes)?;
        copy.set_modified(meta.modified()?)
    });
    copied.is_ok()
}
