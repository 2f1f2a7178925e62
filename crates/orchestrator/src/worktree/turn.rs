//! One at a time, across tasks and processes: git reads what another git has half made.

use super::error::WorktreeError;
use claw_kernel::digest::Digest;
use claw_kernel::durable::{self, FileLock, Owner};
use claw_kernel::{clock, tasks};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tokio::sync::{Mutex, MutexGuard};

/// In this process first: whoever waits for a file blocks a thread, and there are few of them.
static ADD: Mutex<()> = Mutex::const_new(());
static LAND: Mutex<()> = Mutex::const_new(());

/// For what.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// The list of work trees of a repository is changed.
    Add,
    /// A merge lands in a workspace.
    Land,
}

/// Held until it is dropped.
pub(super) struct Turn {
    _file: FileLock,
    _here: MutexGuard<'static, ()>,
}

impl Turn {
    /// Waits for it. `of`: the repository, or the workspace.
    pub(super) async fn take(kind: Kind, worktrees: &Path, of: &Path) -> Result<Self, WorktreeError> {
        let (mutex, word) = match kind {
            Kind::Add => (&ADD, "add"),
            Kind::Land => (&LAND, "land"),
        };
        let here = mutex.lock().await;
        durable::private_dir(worktrees).map_err(WorktreeError::io(worktrees))?;
        let path =
            worktrees.join(format!("{}.{word}.lock", &Digest::of(of.as_os_str().as_bytes()).hex()[..16]));
        let owner = Owner { pid: std::process::id(), since: clock::now(), socket: None };
        let at = path.clone();
        let file = tasks::blocking("lock", move || FileLock::wait(&path, &owner)).await;
        let file = file.map_err(io::Error::other).map_err(WorktreeError::io(at))??;
        Ok(Self { _file: file, _here: here })
    }
}
