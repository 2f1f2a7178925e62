//! What commands may touch, as data, and the one wall that is made from it.

use super::governed::{GOVERNING_GIT, Governed};
use super::status::SandboxStatus;
use crate::files::paths;
use crate::platform::{ChildPlan, Wall};
use crate::process::Scratch;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// How far commands may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Nothing is written but the private temporary folder.
    ReadOnly,
    /// The workspace and the extra folders are written.
    WorkspaceWrite,
    /// No sandbox.
    Full,
}

/// The network of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// As far as the wall holds it: no TCP.
    Off,
    /// Free.
    On,
}

/// Governing paths of a workspace, relative to it.
const GOVERNING: [&str; 3] = [".claw", ".claude", ".mcp.json"];

const NO_MOUNTS: &str =
    "no mounts: governing files that exist, and modes, owners and times of files, are not held";

/// What commands may touch. Share one for all agents of the same rights: it owns the wall and the temporary folder.
#[derive(Debug)]
pub struct SandboxPolicy {
    reach: Reach,
    workspace: PathBuf,
    extra: Vec<PathBuf>,
    network: Network,
    governing: Vec<PathBuf>,
    scratch: OnceLock<Option<Scratch>>,
    wall: OnceLock<Option<Wall>>,
    status: OnceLock<SandboxStatus>,
    mounts_refused: AtomicBool,
}

impl SandboxPolicy {
    /// A policy over a workspace (absolute), network off.
    pub fn new(reach: Reach, workspace: impl Into<PathBuf>) -> Self {
        let workspace = paths::resolve(&workspace.into());
        let git = GOVERNING_GIT.iter().map(|name| workspace.join(".git").join(name));
        let governing = GOVERNING.iter().map(|name| workspace.join(name)).chain(git).collect();
        Self {
            reach,
            workspace,
            extra: Vec::new(),
            network: Network::Off,
            governing,
            scratch: OnceLock::new(),
            wall: OnceLock::new(),
            status: OnceLock::new(),
            mounts_refused: AtomicBool::new(false),
        }
    }

    /// No sandbox, network free.
    pub fn full(workspace: impl Into<PathBuf>) -> Self {
        Self::new(Reach::Full, workspace).with_network(Network::On)
    }

    /// More folders that may be written (absolute).
    pub fn with_writable(mut self, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        self.extra.extend(folders.into_iter().map(|folder| paths::resolve(&folder)));
        self
    }

    /// The network.
    pub fn with_network(mut self, network: Network) -> Self {
        self.network = network;
        self
    }

    /// More paths that govern (absolute): the running workflow file, claw's own state.
    pub fn with_governing(mut self, governing: impl IntoIterator<Item = PathBuf>) -> Self {
        self.governing.extend(governing.into_iter().map(|path| paths::resolve(&path)));
        self
    }

    /// How far commands reach.
    pub fn reach(&self) -> Reach {
        self.reach
    }

    /// Whether commands are held back at all.
    pub(crate) fn confines(&self) -> bool {
        match self.reach {
            Reach::ReadOnly | Reach::WorkspaceWrite => true,
            Reach::Full => false,
        }
    }

    /// The workspace, resolved.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// The network of commands.
    pub fn network(&self) -> Network {
        self.network
    }

    /// Whether a resolved path is, lies in, or holds something that governs: `.git` holds `.git/config`.
    pub fn is_governing(&self, path: &Path) -> bool {
        self.governing.iter().any(|governing| path.starts_with(governing))
            || (path != self.workspace
                && path.starts_with(&self.workspace)
                && self.governing.iter().any(|governing| governing.starts_with(path)))
    }

    /// Whether the policy lets a resolved path be written. Pure: for the gate, not the boundary.
    pub fn may_write(&self, path: &Path) -> bool {
        match self.reach {
            Reach::ReadOnly => false,
            Reach::WorkspaceWrite => {
                let inside =
                    path.starts_with(&self.workspace) || self.extra.iter().any(|e| path.starts_with(e));
                inside && !self.is_governing(path)
            }
            Reach::Full => true,
        }
    }

    /// What the running system holds of it. Leaves nothing behind: the temporary folder is made by the first job.
    pub fn status(&self) -> SandboxStatus {
        let probe = || {
            self.writable().map_or_else(
                || SandboxStatus::none("switched off"),
                |folders| Wall::build(&folders, self.network).status,
            )
        };
        let mut status = self.status.get_or_init(probe).clone();
        status.governors_held =
            status.is_walled() && !self.holds_root() && !self.mounts_refused.load(Ordering::Relaxed);
        if status.is_walled() && !status.governors_held {
            status.reason.get_or_insert_with(|| NO_MOUNTS.to_owned());
        }
        status
    }

    /// Removes the temporary folder. Later jobs get none. Blocks as long as that takes; most are empty.
    pub fn close(&self) {
        if let Some(scratch) = self.scratch.get_or_init(|| None) {
            scratch.close();
        }
    }

    /// The temporary folder of this policy's commands, made when it is first asked for; none where none can be made.
    pub(crate) fn scratch(&self) -> Option<&Scratch> {
        self.scratch.get_or_init(|| Scratch::make().ok()).as_ref()
    }

    fn wall(&self) -> Option<&Wall> {
        let build = || {
            let mut folders = self.writable()?;
            folders.extend(self.scratch().map(|scratch| scratch.path().to_owned()));
            Some(Wall::build(&folders, self.network))
        };
        self.wall.get_or_init(build).as_ref()
    }

    /// The folders of the user that commands write; none: all.
    fn writable(&self) -> Option<Vec<PathBuf>> {
        match self.reach {
            Reach::Full => None,
            Reach::ReadOnly => Some(Vec::new()),
            Reach::WorkspaceWrite => {
                Some([std::slice::from_ref(&self.workspace), self.extra.as_slice()].concat())
            }
        }
    }

    /// What governs, as it is before a command; nothing to watch where commands cannot write it or may.
    pub(crate) fn governed(&self) -> Governed {
        match self.reach {
            Reach::WorkspaceWrite if self.status().is_walled() => {
                Governed::look(&self.writable().unwrap_or_default(), &self.governing)
            }
            Reach::WorkspaceWrite | Reach::ReadOnly | Reach::Full => Governed::default(),
        }
    }

    /// Whether commands get mounts of their own.
    pub(crate) fn may_mount(&self) -> bool {
        self.confines() && self.status().governors_held
    }

    /// The root cannot be put back over itself.
    fn holds_root(&self) -> bool {
        self.workspace.parent().is_none() || self.extra.iter().any(|path| path.parent().is_none())
    }

    /// How a child that works in `folder` is confined; without `mounts` only by what needs none.
    pub(crate) fn child(&self, folder: &Path, governed: &Governed, mounts: bool) -> ChildPlan {
        let plan = ChildPlan::new(folder);
        let Some(wall) = self.wall() else { return plan };
        let plan = walled(plan, wall);
        if !mounts || !self.may_mount() {
            return plan;
        }
        let mut writable = match self.reach {
            Reach::WorkspaceWrite => vec![self.workspace.as_path()],
            Reach::ReadOnly | Reach::Full => Vec::new(),
        };
        if !writable.is_empty() {
            writable.extend(self.extra.iter().map(PathBuf::as_path).filter(|path| path.exists()));
        }
        writable.extend(self.scratch().map(Scratch::path));
        plan.with_mounts(writable, governed.pins())
    }

    /// The system does not let a child mount: later children are started without. Whether that is news.
    pub(crate) fn mounts_were_refused(&self) -> bool {
        !self.mounts_refused.swap(true, Ordering::Relaxed)
    }
}

#[cfg(target_os = "linux")]
fn walled(plan: ChildPlan, wall: &Wall) -> ChildPlan {
    match &wall.ruleset {
        Some(ruleset) => plan.with_wall(std::sync::Arc::clone(ruleset), wall.filter),
        None => plan,
    }
}

#[cfg(not(target_os = "linux"))]
fn walled(plan: ChildPlan, _wall: &Wall) -> ChildPlan {
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_governs_is_not_writable_and_neither_is_what_holds_it() {
        let policy = SandboxPolicy::new(Reach::WorkspaceWrite, "/w");
        for path in [
            "/w/.claw/x",
            "/w/.mcp.json",
            "/w/.git/commondir",
            "/w/.git",
            "/w/.git/config.worktree",
            "/w-evil/x",
            "/x",
        ] {
            assert!(!policy.may_write(Path::new(path)), "{path}");
        }
        for path in ["/w/x", "/w/.git/index", "/w/.clawx", "/w/sub/.claw/x"] {
            assert!(policy.may_write(Path::new(path)), "{path}");
        }
        assert!(!SandboxPolicy::new(Reach::ReadOnly, "/w").may_write(Path::new("/w/x")));
    }
}
