//! The repository of a workspace: where it is, what its commits and branches are.

use super::error::WorktreeError;
use super::git::{Call, Git};
use claw_tools::sandbox::SandboxPolicy;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of an object: 40 or 64 hex digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Oid(String);

/// A text that names no object.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not the name of an object")]
pub(crate) struct NotAnOid(String);

impl TryFrom<String> for Oid {
    type Error = NotAnOid;
    fn try_from(text: String) -> Result<Self, NotAnOid> {
        let is_oid = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_oid { Ok(Self(text)) } else { Err(NotAnOid(text)) }
    }
}

impl From<Oid> for String {
    fn from(oid: Oid) -> Self {
        oid.0
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<OsStr> for Oid {
    fn as_ref(&self) -> &OsStr {
        OsStr::new(&self.0)
    }
}

impl AsRef<str> for Oid {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// The repository of a workspace.
#[derive(Clone, Debug)]
pub(crate) struct Repo {
    /// The workspace.
    pub(super) top: PathBuf,
    /// Of this work tree.
    pub(super) git_dir: PathBuf,
    /// Of the repository.
    pub(super) common: PathBuf,
    pub(super) git: Git,
}

impl Repo {
    /// Finds it. Errors: there is none, or the workspace is not the top of its work tree.
    pub(crate) async fn open(workspace: &Path, policy: Arc<SandboxPolicy>) -> Result<Self, WorktreeError> {
        let top = workspace.canonicalize().map_err(WorktreeError::io(workspace))?;
        let git = Git::new(&top, policy);
        let asked =
            ["rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir", "--show-toplevel"];
        let ran = git.call(asked).run().await?;
        if ran.code != 0 {
            return Err(WorktreeError::NotARepository { path: top, said: ran.said });
        }
        let text = String::from_utf8(ran.out.clone()).map_err(|_| ran.unreadable())?;
        let [git_dir, common, found] = text.lines().collect::<Vec<_>>()[..] else {
            return Err(ran.unreadable());
        };
        let found = Path::new(found).canonicalize().map_err(WorktreeError::io(found))?;
        if found != top {
            return Err(WorktreeError::NotTheTop { path: top, top: found });
        }
        let real = |path: &str| Path::new(path).canonicalize().map_err(WorktreeError::io(path));
        let (git_dir, common) = (real(git_dir)?, real(common)?);
        let known = git.call(["config", "--get-regexp", r"^user\.(name|email)$"]).run().await?;
        let known = String::from_utf8_lossy(&known.out).into_owned();
        let git = if known.contains("user.name ") && known.contains("user.email ") {
            git
        } else {
            ["AUTHOR", "COMMITTER"].iter().fold(git, |git, who| {
                git.with(&format!("GIT_{who}_NAME"), "claw")
                    .with(&format!("GIT_{who}_EMAIL"), "claw@localhost")
            })
        };
        Ok(Self { git: git.with("GIT_DIR", &git_dir), top, git_dir, common })
    }

    /// A call that works on the repository and on no files.
    pub(super) fn call<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Call<'_> {
        self.git.call(arguments).env("GIT_WORK_TREE", &self.top)
    }

    /// A call on the files of a folder, with an index of its own: nothing of that folder's own git files is looked at.
    pub(super) fn call_on<S: AsRef<OsStr>>(
        &self,
        folder: &Path,
        index: &Path,
        arguments: impl IntoIterator<Item = S>,
    ) -> Call<'_> {
        let git_dir = if folder == self.top { &self.git_dir } else { &self.common };
        // The last value of a variable holds.
        self.git
            .call(arguments)
            .at(folder)
            .env("GIT_DIR", git_dir)
            .env("GIT_WORK_TREE", folder)
            .env("GIT_INDEX_FILE", index)
    }

    /// The commit that the workspace stands on.
    pub(crate) async fn head(&self) -> Result<Oid, WorktreeError> {
        let head = self.commit("HEAD").await?;
        head.ok_or_else(|| WorktreeError::NoCommit { path: self.top.clone() })
    }

    /// The commit that a name leads to, where it does.
    pub(super) async fn commit(&self, name: &str) -> Result<Option<Oid>, WorktreeError> {
        let asked = format!("{name}^{{commit}}");
        let ran = self.call(["rev-parse", "--verify", "--quiet", &asked]).run().await?;
        if ran.code != 0 {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&ran.out).trim().to_owned();
        Oid::try_from(text).map(Some).map_err(|_| ran.unreadable())
    }

    /// The last commit of a branch, where that is there.
    pub(crate) async fn tip(&self, branch: &str) -> Result<Option<Oid>, WorktreeError> {
        self.commit(&format!("refs/heads/{branch}")).await
    }

    /// The tree of a commit.
    pub(super) async fn tree(&self, commit: &Oid) -> Result<Oid, WorktreeError> {
        oid("rev-parse", self.call(["rev-parse", "--verify", &format!("{commit}^{{tree}}")]).line().await?)
    }

    /// Makes a commit that no branch names yet.
    pub(super) async fn commit_tree(
        &self,
        tree: &Oid,
        parents: &[&Oid],
        message: &str,
    ) -> Result<Oid, WorktreeError> {
        let mut arguments = vec!["commit-tree".to_owned(), tree.to_string()];
        arguments.extend(parents.iter().flat_map(|parent| ["-p".to_owned(), parent.to_string()]));
        arguments.extend(["-F".to_owned(), "-".to_owned()]);
        oid("commit-tree", self.call(arguments).stdin(message).line().await?)
    }

    /// Whether all of `old` is in `new`.
    pub(super) async fn is_ancestor(&self, old: &Oid, new: &Oid) -> Result<bool, WorktreeError> {
        if old == new {
            return Ok(true);
        }
        let ran = self.call(["merge-base", "--is-ancestor", old.as_ref(), new.as_ref()]).run().await?;
        match ran.code {
            0 => Ok(true),
            1 => Ok(false),
            _ => Err(ran.failed()),
        }
    }

    /// Moves a branch; made where `old` is none.
    pub(super) async fn move_branch(
        &self,
        branch: &str,
        new: &Oid,
        old: Option<&Oid>,
        why: &str,
    ) -> Result<(), WorktreeError> {
        let name = format!("refs/heads/{branch}");
        let zero = "0".repeat(AsRef::<str>::as_ref(new).len());
        let old = old.map_or(zero.as_str(), |old| old.as_ref());
        self.call(["update-ref", "-m", why, &name, new.as_ref(), old]).done().await
    }

    /// Where two histories part.
    pub(super) async fn fork_point(&self, one: &Oid, other: &Oid) -> Result<Option<Oid>, WorktreeError> {
        let ran = self.call(["merge-base", one.as_ref(), AsRef::<str>::as_ref(other)]).run().await?;
        match ran.code {
            0 => {
                let text = String::from_utf8_lossy(&ran.out).trim().to_owned();
                oid("merge-base", text).map(Some)
            }
            1 => Ok(None),
            _ => Err(ran.failed()),
        }
    }

    /// Takes a branch away, if it still ends there.
    pub(super) async fn drop_branch(&self, branch: &str, tip: &Oid) -> Result<(), WorktreeError> {
        let name = format!("refs/heads/{branch}");
        self.call(["update-ref", "-d", &name, tip.as_ref()]).done().await
    }

    /// What a change from `base` to `theirs` makes of `ours`, all of them trees. The inner error: the files in which
    /// both changed the same place. No file and no index is touched.
    pub(super) async fn merged(
        &self,
        base: &Oid,
        ours: &Oid,
        theirs: &Oid,
    ) -> Result<Result<Oid, Vec<PathBuf>>, WorktreeError> {
        // git finds the base in the history, so it gets one that says it.
        let root = self.commit_tree(base, &[], "base").await?;
        let ours = self.commit_tree(ours, &[&root], "ours").await?;
        let theirs = self.commit_tree(theirs, &[&root], "theirs").await?;
        let asked = ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages"];
        let asked = asked.into_iter().chain([ours.as_ref(), theirs.as_ref()]);
        let ran = self.call(asked).run().await?;
        if ran.code > 1 || ran.missing > 0 {
            return Err(ran.failed());
        }
        let end = ran.out.iter().position(|byte| *byte == 0).unwrap_or(ran.out.len());
        let (tree, files) = ran.out.split_at(end);
        if ran.code == 1 {
            return Ok(Err(super::git::names(files)));
        }
        Ok(Ok(oid("merge-tree", String::from_utf8_lossy(tree).trim().to_owned())?))
    }

    /// Names of the files in which two commits or trees differ.
    pub(super) async fn changed(&self, from: &Oid, to: &Oid) -> Result<Vec<PathBuf>, WorktreeError> {
        let asked = ["diff-tree", "-r", "-z", "--no-renames", "--name-only", from.as_ref(), to.as_ref()];
        Ok(super::git::names(&self.call(asked).bytes().await?))
    }
}

/// A line that must name an object.
pub(super) fn oid(what: &str, line: String) -> Result<Oid, WorktreeError> {
    Oid::try_from(line).map_err(|_| WorktreeError::Unreadable { what: what.to_owned() })
}
