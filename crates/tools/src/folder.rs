//! The folder an agent works in: where it started, and where `bash` has gone since.

use crate::files::paths;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

/// An agent's own working folder. `bash` carries it on; the process's folder never changes.
#[derive(Debug)]
pub struct WorkingFolder {
    root: PathBuf,
    current: RwLock<PathBuf>,
}

impl WorkingFolder {
    /// Starts at the workspace's root (absolute).
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self::at_resolved(paths::resolve(&root.into()))
    }

    /// As [`Self::new`], for a root that is resolved: spares a look at each of its parts.
    pub fn at_resolved(root: PathBuf) -> Self {
        Self { current: RwLock::new(root.clone()), root }
    }

    /// The workspace's root, resolved.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the agent is now; the root, when that folder is gone.
    pub fn current(&self) -> PathBuf {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner).clone();
        if current.is_dir() { current } else { self.root.clone() }
    }

    /// Moves on; what is no folder is not followed.
    pub fn move_to(&self, folder: PathBuf) {
        if folder.is_absolute() && folder.is_dir() {
            *self.current.write().unwrap_or_else(PoisonError::into_inner) = folder;
        }
    }

    /// A path as the model typed it: absolute, symlinks and `..` resolved.
    pub fn resolve(&self, typed: &str) -> PathBuf {
        paths::resolve(&paths::absolute(typed, &self.current()))
    }

    /// A path as it is shown: relative to the current folder when it lies below it.
    pub fn shown<'p>(&self, path: &'p Path) -> std::borrow::Cow<'p, str> {
        let current = self.current();
        match path.strip_prefix(&current) {
            // A slash at the end, which marks folders, is not a part of `below`.
            Ok(below) if !below.as_os_str().is_empty() => {
                let slash = path.as_os_str().as_encoded_bytes().ends_with(b"/");
                if slash { format!("{}/", below.display()).into() } else { below.to_string_lossy() }
            }
            Ok(_) | Err(_) => path.to_string_lossy(),
        }
    }
}
