//! What commands may touch, as data, and the one wall that is made from it.

use super::covered::{Cover, Covers};
use super::governed::{GOVERNING_GIT, Governed};
use super::hosts::Hosts;
use super::status::{FilesystemState, NetworkState, SandboxStatus};
use super::support::in_container;
use crate::files::paths;
use crate::platform::{ChildPlan, Wall};
use crate::process::{Scratch, try_mounts};
use rustix::io::Errno;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// None; in the write wall: no TCP.
    Off,
    /// These hosts, through a proxy; in the write wall: as `Off`.
    AllowList(Hosts),
    /// Free.
    On,
}

/// The most that is used of what the system has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Most {
    /// Nothing.
    Nothing,
    /// The write wall.
    WriteWall,
    /// All.
    #[default]
    Full,
}

/// Governing paths of a workspace, relative to it.
const GOVERNING: [&str; 3] = [".claw", ".claude", ".mcp.json"];

const NAMESPACE_LIMITS: [&str; 2] =
    ["/proc/sys/user/max_user_namespaces", "/proc/sys/user/max_mnt_namespaces"];

const NO_MOUNTS: &str =
    "no mounts: governing files that exist, and modes, owners and times of files, are not held";

/// What commands may touch. Share one for all agents of the same rights: it owns the wall and the temporary folder.
#[derive(Debug)]
pub struct SandboxPolicy {
    reach: Reach,
    pub(super) workspace: PathBuf,
    pub(super) extra: Vec<PathBuf>,
    pub(super) network: Network,
    governing: Vec<PathBuf>,
    most: Most,
    /// See [`SandboxPolicy::lent`].
    is_lent: bool,
    /// See [`SandboxPolicy::with_private_copy`].
    pub(super) is_copied: bool,
    pub(super) caches: Vec<PathBuf>,
    pub(super) visible: Vec<PathBuf>,
    pub(super) covers: Covers,
    environment: Vec<(OsString, OsString)>,
    scratch: OnceLock<Option<Scratch>>,
    pub(super) layers: OnceLock<Option<Scratch>>,
    wall: OnceLock<Option<Wall>>,
    status: OnceLock<SandboxStatus>,
    pub(super) house: Mutex<Option<super::home::Home>>,
}

impl SandboxPolicy {
    /// A policy over a workspace (absolute), network off.
    pub fn new(reach: Reach, workspace: impl Into<PathBuf>) -> Self {
        let workspace = paths::resolve(&workspace.into());
        let git = GOVERNING_GIT.iter().map(|name| workspace.join(".git").join(name));
        let governing = GOVERNING.iter().map(|name| workspace.join(name)).chain(git).collect();
        let mut covers = Covers::default();
        covers.add([Cover::environment(&workspace)]);
        Self {
            reach,
            workspace,
            extra: Vec::new(),
            network: Network::Off,
            governing,
            most: Most::Full,
            is_lent: false,
            is_copied: false,
            caches: Vec::new(),
            visible: Vec::new(),
            covers,
            environment: Vec::new(),
            scratch: OnceLock::new(),
            layers: OnceLock::new(),
            wall: OnceLock::new(),
            status: OnceLock::new(),
            house: Mutex::default(),
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

    /// The workspace is a folder of claw's own state that it lent to an agent: what governs because it lies above that
    /// folder does not govern what is in it.
    pub fn lent(mut self) -> Self {
        self.is_lent = true;
        self
    }

    /// The most that is used of what the system has.
    pub fn with_most(mut self, most: Most) -> Self {
        self.most = most;
        self
    }

    /// Files and folders that commands do not see, beside key material of the user and `.env*` of the workspace.
    pub fn with_masked(mut self, covers: impl IntoIterator<Item = Cover>) -> Self {
        self.covers.add(covers);
        self
    }

    /// Files and folders (absolute) that stay visible with all below them, whatever covers them.
    pub fn with_visible(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let paths: Vec<PathBuf> = paths.into_iter().map(|path| paths::resolve(&path)).collect();
        self.covers.leave(paths.iter().cloned());
        self.visible.extend(paths);
        self
    }

    /// Folders (absolute) that commands write without a trace: a layer over them is thrown away with the policy. Those
    /// that are not there, or are written anyway, count for nothing.
    pub fn with_caches(mut self, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        self.caches.extend(folders.into_iter().map(|folder| paths::resolve(&folder)));
        self
    }

    /// Commands write a copy of the workspace that is thrown away with the policy. Without the full sandbox, or where the
    /// system has no such layers, the workspace is read-only: the status says which. For [`Reach::ReadOnly`].
    pub fn with_private_copy(mut self) -> Self {
        self.is_copied = true;
        self
    }

    /// More variables of commands. Names of keys are left out.
    pub fn with_environment(mut self, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let fit = |(name, _): &(OsString, OsString)| !crate::process::is_secret(name);
        self.environment.extend(variables.into_iter().filter(fit));
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
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Variables that commands have beside the usual ones.
    pub(crate) fn environment(&self) -> impl Iterator<Item = (OsString, OsString)> {
        self.environment.iter().cloned().chain(self.proxy_environment())
    }

    /// Whether a resolved path is, lies in, or holds something that governs: `.git` holds `.git/config`.
    pub fn is_governing(&self, path: &Path) -> bool {
        let lent = |governing: &Path| {
            self.is_lent && self.workspace.starts_with(governing) && path.starts_with(&self.workspace)
        };
        self.governing.iter().any(|governing| path.starts_with(governing) && !lent(governing))
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
        self.status.get_or_init(|| self.probe()).clone()
    }

    fn probe(&self) -> SandboxStatus {
        let Some(folders) = self.writable() else { return SandboxStatus::none("switched off") };
        let lack = self.lacks_full();
        let mut status = match self.most {
            Most::Nothing => SandboxStatus::none("switched off by the settings"),
            Most::Full if lack.is_none() => super::home::status(&self.network),
            Most::Full | Most::WriteWall => self.probe_wall(&folders, lack.as_deref()),
        };
        status.supported = lack.is_none();
        status.enabled = self.most != Most::Nothing;
        status.active = status.is_walled();
        status.in_container = in_container();
        status.network = match (&self.network, status.active) {
            (Network::On, _) | (_, false) => NetworkState::On,
            (Network::Off, true) => NetworkState::Off,
            (Network::AllowList(_), true) => NetworkState::AllowList,
        };
        status.filesystem = match self.reach {
            Reach::Full => FilesystemState::Off,
            Reach::ReadOnly if self.is_copied && self.is_full_of(&status) => FilesystemState::PrivateCopy,
            Reach::ReadOnly => FilesystemState::ReadOnly,
            Reach::WorkspaceWrite if self.extra.is_empty() => FilesystemState::WorkspaceOnly,
            Reach::WorkspaceWrite => FilesystemState::AllowList,
        };
        status
    }

    fn is_full_of(&self, status: &SandboxStatus) -> bool {
        status.kind == super::WallKind::Full
    }

    /// Whether commands get rooms of their own.
    pub(crate) fn is_full(&self) -> bool {
        self.confines() && self.is_full_of(&self.status())
    }

    fn probe_wall(&self, folders: &[PathBuf], lack: Option<&str>) -> SandboxStatus {
        let mut status = Wall::build(folders, &self.network).status;
        status.governors_held = status.is_walled() && !self.holds_root() && self.system_mounts();
        if status.is_walled() && !status.governors_held {
            status.reason.get_or_insert_with(|| NO_MOUNTS.to_owned());
        }
        let why = match (lack, self.most) {
            (Some(lack), _) => Some(lack.to_owned()),
            (None, Most::WriteWall) => Some("held to the write wall by the settings".to_owned()),
            (None, Most::Full | Most::Nothing) => None,
        };
        status.reason =
            [why, status.reason].into_iter().flatten().reduce(|one, other| format!("{one}; {other}"));
        status
    }

    /// Why there is no full sandbox; none: there is one.
    fn lacks_full(&self) -> Option<String> {
        if self.holds_root() {
            return Some("the whole file system is the workspace".to_owned());
        }
        super::support::lacks_rooms().map(str::to_owned)
    }

    /// Tried once, before the first command, with nothing that a command could take away. Only a plain no counts: any
    /// other failure is no reason to start commands that are held less.
    fn system_mounts(&self) -> bool {
        let plan = ChildPlan::new(Path::new("/")).with_mounts(self.stays_writable(), []);
        match try_mounts(plan) {
            Err(error) if is_refusal(&error) => {
                tracing::warn!(%error, "commands are started without mounts of their own");
                false
            }
            Ok(()) | Err(_) => true,
        }
    }

    /// Removes the temporary folder. Later jobs get none. Blocks as long as that takes; most are empty.
    pub fn close(&self) {
        *self.house.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = None;
        for scratch in [&self.scratch, &self.layers] {
            if let Some(scratch) = scratch.get_or_init(|| None) {
                scratch.close();
            }
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
            Some(Wall::build(&folders, &self.network))
        };
        self.wall.get_or_init(build).as_ref()
    }

    /// The folders of the user that commands write; none: all.
    pub(super) fn writable(&self) -> Option<Vec<PathBuf>> {
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

    /// What stays writable where mounts hold the rest, but the temporary folder.
    fn stays_writable(&self) -> Vec<&Path> {
        match self.reach {
            Reach::WorkspaceWrite => {
                let extra = self.extra.iter().map(PathBuf::as_path).filter(|path| path.exists());
                std::iter::once(self.workspace.as_path()).chain(extra).collect()
            }
            Reach::ReadOnly | Reach::Full => Vec::new(),
        }
    }

    /// How a child that works in `folder` is confined. Errors: there should be a room for it, and there is none.
    pub(crate) fn child(&self, folder: &Path, governed: &Governed) -> io::Result<ChildPlan> {
        if self.is_full() {
            self.room(folder, governed)
        } else {
            Ok(self.walled(ChildPlan::new(folder), governed))
        }
    }

    fn walled(&self, plan: ChildPlan, governed: &Governed) -> ChildPlan {
        if self.most == Most::Nothing {
            return plan;
        }
        let Some(wall) = self.wall() else { return plan };
        let plan = walled(plan, wall);
        if !self.may_mount() {
            return plan;
        }
        let mut writable = self.stays_writable();
        // A policy that was closed has none any more.
        writable.extend(self.scratch().map(Scratch::path).filter(|path| path.exists()));
        plan.with_mounts(writable, governed.pins())
    }
}

/// Whether the system has no mounts for us, as opposed to having none at this moment.
fn is_refusal(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    match errno {
        Some(Errno::PERM | Errno::ACCESS | Errno::NOSYS | Errno::INVAL) => true,
        // The limit of namespaces: none at all, or used up by others.
        Some(Errno::NOSPC) => NAMESPACE_LIMITS
            .iter()
            .any(|path| std::fs::read(path).is_ok_and(|limit| limit.trim_ascii() == b"0")),
        Some(_) | None => false,
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
    fn a_lent_folder_is_written_although_it_lies_in_what_governs() {
        let policy = || SandboxPolicy::new(Reach::WorkspaceWrite, "/s/w/a").with_governing(["/s".into()]);
        assert!(!policy().may_write(Path::new("/s/w/a/x")));
        let lent = policy().lent().with_writable(["/s/w/b".into()]);
        assert!(lent.may_write(Path::new("/s/w/a/x")));
        for path in ["/s/w/a/.claw/x", "/s/w/a/.git", "/s/w/b/x", "/s/key"] {
            assert!(!lent.may_write(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn only_a_plain_no_of_the_system_is_a_reason_to_start_without_mounts() {
        let says = |errno: Errno| is_refusal(&io::Error::from(errno));
        assert!(says(Errno::PERM) && says(Errno::NOSYS));
        for errno in [Errno::NOENT, Errno::NOTDIR, Errno::STALE, Errno::AGAIN, Errno::NOMEM, Errno::MFILE] {
            assert!(!says(errno), "{errno:?}");
        }
    }

    #[test]
    fn a_workspace_that_is_gone_does_not_switch_the_mounts_off() {
        let policy = SandboxPolicy::new(Reach::WorkspaceWrite, "/nowhere/at/all");
        assert!(policy.system_mounts() || !SandboxPolicy::new(Reach::ReadOnly, "/").system_mounts());
    }

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
