//! Systems without the guards of Linux: a process group for each job, no wall, orphans outside the group are not
//! found, a kill of claw leaves its children.

use crate::sandbox::{Network, SandboxStatus};
use rustix::process::{Pid, Signal};
use std::path::{Path, PathBuf};

/// How a child is confined: not at all.
#[derive(Debug, Default)]
pub(crate) struct ChildPlan;

impl ChildPlan {
    /// A child that works in `folder`.
    pub(crate) fn new(_folder: &Path) -> Self {
        Self
    }

    /// Not here.
    pub(crate) fn with_mounts<'p>(
        self,
        _writable: Vec<&'p Path>,
        _pins: impl IntoIterator<Item = (&'p Path, bool)>,
    ) -> Self {
        self
    }
}

/// A session of its own.
pub(crate) fn prepare(command: &mut tokio::process::Command, _plan: ChildPlan) {
    let child = || rustix::process::setsid().map(drop).map_err(std::io::Error::from);
    // SAFETY: one system call, nothing allocated.
    unsafe {
        command.pre_exec(child);
    }
}

/// There are no mounts to rehearse.
pub(crate) fn rehearse(command: &mut tokio::process::Command, _plan: ChildPlan) {
    let child = || Err(std::io::Error::from(rustix::io::Errno::NOSYS));
    // SAFETY: nothing is called or allocated.
    unsafe {
        command.pre_exec(child);
    }
}

/// Not here.
pub(crate) fn adopt_orphans() {}

/// No wall.
#[derive(Debug)]
pub(crate) struct Wall {
    /// What holds: nothing.
    pub(crate) status: SandboxStatus,
}

impl Wall {
    /// Says that there is none.
    pub(crate) fn build(_writable: &[PathBuf], _network: Network) -> Self {
        Self { status: SandboxStatus::none("claw has a write wall on Linux only") }
    }
}

/// The process group of a job.
#[derive(Debug)]
pub(crate) struct Group {
    leader: Pid,
}

impl Group {
    /// The group of a main process.
    pub(crate) fn new(leader: u32, _mark: String) -> Option<Self> {
        Some(Self { leader: i32::try_from(leader).ok().and_then(Pid::from_raw)? })
    }

    /// A signal to the group.
    pub(crate) fn signal_all(&self, signal: Signal) {
        let _ = rustix::process::kill_process_group(self.leader, signal);
    }

    /// Ends what is left in the group; how many is not known.
    pub(crate) async fn end_left_behind(&self) -> usize {
        usize::from(rustix::process::kill_process_group(self.leader, Signal::KILL).is_ok())
    }

    /// The group cannot be watched: ready at once where it is empty, never where it is not.
    pub(crate) async fn gone(&self) {
        if rustix::process::test_kill_process_group(self.leader).is_ok() {
            std::future::pending().await
        }
    }
}

/// Opens a resolved path; only its last part is held against symlinks.
pub(crate) fn open_resolved(
    path: &Path,
    flags: rustix::fs::OFlags,
) -> Result<std::os::fd::OwnedFd, rustix::io::Errno> {
    use rustix::fs::{Mode, OFlags};
    rustix::fs::open(path, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty())
}
