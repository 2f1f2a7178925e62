//! A private temporary folder, gone with its owner.

use crate::files::remove::remove;
use claw_kernel::ids::RunId;
use claw_kernel::tasks;
use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;
use std::ffi::CString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A folder that only this user enters, with an unguessable name.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    next: AtomicU64,
    gone: AtomicBool,
}

impl Scratch {
    /// Makes one among the system's temporary files.
    pub(crate) fn make() -> io::Result<Self> {
        let name = format!("claw-{}", RunId::fresh().to_string().to_lowercase());
        Self::at(crate::files::paths::resolve(&std::env::temp_dir()).join(name))
    }

    fn at(path: PathBuf) -> io::Result<Self> {
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self { path, next: AtomicU64::new(0), gone: AtomicBool::new(false) })
    }

    /// A folder of its own below this one.
    pub(crate) fn child(&self) -> io::Result<Self> {
        Self::at(self.path.join(self.next.fetch_add(1, Ordering::Relaxed).to_string()))
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the folder now, however much is in it. Blocks. What cannot be removed stays and is logged.
    pub(crate) fn close(&self) {
        if self.is_gone() {
            return;
        }
        self.gone.store(true, Ordering::Relaxed);
        remove_logged(&self.path);
    }

    /// The same off the runtime's threads, where there is something in it.
    pub(crate) async fn clear(self) {
        if self.is_gone() {
            return;
        }
        self.gone.store(true, Ordering::Relaxed);
        let path = self.path.clone();
        let _ = tasks::blocking("scratch", move || remove_logged(&path)).await;
    }

    /// Removes a few empty folders, places that a sandbox had something on.
    fn is_emptied(&self) -> bool {
        let entries = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        entries.take(16).all(|entry| rustix::fs::unlinkat(CWD, entry.path(), AtFlags::REMOVEDIR).is_ok())
    }

    /// Most are empty: one system call.
    fn is_gone(&self) -> bool {
        if !self.gone.load(Ordering::Relaxed) {
            let remove = || rustix::fs::unlinkat(CWD, &self.path, AtFlags::REMOVEDIR);
            let removed = match remove() {
                Err(Errno::NOTEMPTY | Errno::EXIST) if self.is_emptied() => remove(),
                other => other,
            };
            if matches!(removed, Ok(()) | Err(Errno::NOENT)) {
                self.gone.store(true, Ordering::Relaxed);
            }
        }
        self.gone.load(Ordering::Relaxed)
    }
}

fn remove_logged(path: &Path) {
    let removed = match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => std::fs::File::open(parent)
            .and_then(|parent| remove(parent.as_fd(), &CString::new(name.as_bytes())?)),
        (_, _) => Ok(()),
    };
    if let Err(error) = removed {
        tracing::warn!(path = %path.display(), %error, "a temporary folder of a command could not be removed");
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.is_gone() {
            return;
        }
        let path = std::mem::take(&mut self.path);
        // A call that was dropped: the tree may be large, and this may be a thread of the runtime.
        if tokio::runtime::Handle::try_current().is_ok() {
            tasks::spawn("scratch", tasks::blocking("scratch", move || remove_logged(&path)));
        } else {
            remove_logged(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_folder_with_something_in_it_goes_when_it_is_cleared_closed_or_dropped() {
        let top = Scratch::make().unwrap();
        let fill = |scratch: &Scratch| std::fs::create_dir_all(scratch.path().join("a/b/c")).unwrap();
        let (one, two) = (top.child().unwrap(), top.child().unwrap());
        fill(&one);
        fill(&two);
        let path = one.path().to_owned();
        one.clear().await;
        assert!(!path.exists() && two.path().exists());
        top.close();
        assert!(!top.path().exists() && top.child().is_err());
        let other = Scratch::make().unwrap();
        fill(&other);
        let path = other.path().to_owned();
        std::thread::scope(|scope| scope.spawn(move || drop(other)).join().unwrap());
        assert!(!path.exists());
    }
}
