//! Writing a file for an agent: entirely old or entirely new, with its mode, through a symlink to its target.
//!
//! Hard links: the file gets a new inode, so other names of it keep the old content, and the result says so; this way a
//! name inside the workspace never changes a file outside. A folder that may not be written but whose file may: the
//! file is written in place, which is not atomic, and the result says so.

use crate::error::ToolError;
use crate::platform::open_resolved;
use claw_kernel::durable::{self, Mode, Sync};
use rustix::fs::{Access, OFlags};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What was special about a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// Other names that keep the old content.
    pub other_names: u64,
    /// Written in place, not atomically.
    pub in_place: bool,
}

impl Stored {
    /// For the model; empty where nothing was special.
    pub fn note(&self) -> String {
        let mut note = String::new();
        if self.other_names > 0 {
            note.push_str(&format!(
                "\nnote: {} other hard link(s) to it keep the old content",
                self.other_names
            ));
        }
        if self.in_place {
            note.push_str("\nnote: its folder is not writable, so it was written in place");
        }
        note
    }
}

/// Writes a resolved path. Parent folders are made.
pub fn store(path: &Path, bytes: &[u8]) -> Result<Stored, ToolError> {
    let failed = |source: io::Error| ToolError::Io { path: path.to_owned(), source };
    let before = match std::fs::metadata(path) {
        Ok(meta) => Some(meta),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    match &before {
        None => {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder).map_err(failed)?;
            }
        }
        // A rename would pass over the mode of the file itself.
        Some(_) => rustix::fs::access(path, Access::WRITE_OK).map_err(|errno| failed(errno.into()))?,
    }
    let held = Held::of(path).map_err(failed)?;
    let other_names = before.as_ref().map_or(0, |meta| meta.nlink().saturating_sub(1));
    match durable::replace(&held.path(), bytes, Mode::Keep, Sync::No) {
        Ok(()) => Ok(Stored { other_names, in_place: false }),
        Err(error) if before.is_some() && error.kind() == io::ErrorKind::PermissionDenied => {
            durable::append_in_place(&held.path(), bytes).map_err(failed)?;
            Ok(Stored { other_names: 0, in_place: true })
        }
        Err(error) => Err(failed(error)),
    }
}

/// The folder of a file, held open: whoever puts a symlink in its place meanwhile does not move the write.
struct Held {
    folder: OwnedFd,
    name: OsString,
}

impl Held {
    fn of(path: &Path) -> io::Result<Self> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
        };
        let folder = open_resolved(folder, OFlags::RDONLY | OFlags::DIRECTORY)?;
        Ok(Self { folder, name: name.to_owned() })
    }

    fn path(&self) -> PathBuf {
        let root = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };
        Path::new(root).join(self.folder.as_raw_fd().to_string()).join(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_folder_that_became_a_symlink_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let root = crate::files::paths::resolve(root.path());
        std::fs::create_dir_all(root.join("outside")).unwrap();
        symlink("outside", root.join("d")).unwrap();
        assert!(store(&root.join("d/x"), b"x").is_err());
        assert!(!root.join("outside/x").exists());
        store(&root.join("outside/x"), b"y").unwrap();
        assert_eq!(std::fs::read(root.join("outside/x")).unwrap(), b"y");
    }

    #[test]
    fn a_file_in_a_folder_without_write_permission_is_written_in_place() {
        let root = tempfile::tempdir().unwrap();
        let root = crate::files::paths::resolve(root.path());
        let (folder, file) = (root.join("ro"), root.join("ro/f"));
        store(&file, b"a long old text").unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o555)).unwrap();
        let stored = store(&file, b"new").unwrap();
        // Root passes over mode bits.
        assert_eq!(stored.in_place, !rustix::process::geteuid().is_root());
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o444)).unwrap();
        assert_eq!(store(&file, b"x").is_err(), !rustix::process::geteuid().is_root());
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}
