//! A private temporary folder, gone with its owner.

use claw_kernel::ids::RunId;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A folder that only this user enters, with an unguessable name.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    next: AtomicU64,
}

impl Scratch {
    /// Makes one among the system's temporary files.
    pub(crate) fn make() -> io::Result<Self> {
        let name = format!("claw-{}", RunId::fresh().to_string().to_lowercase());
        Self::at(crate::files::paths::resolve(&std::env::temp_dir()).join(name))
    }

    fn at(path: PathBuf) -> io::Result<Self> {
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self { path, next: AtomicU64::new(0) })
    }

    /// A folder of its own below this one.
    pub(crate) fn child(&self) -> io::Result<Self> {
        Self::at(self.path.join(self.next.fetch_add(1, Ordering::Relaxed).to_string()))
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Most are empty: one system call.
        if rustix::fs::rmdir(&self.path).is_err() {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
