//! Writing a file for an agent: entirely old or entirely new, with its mode, through a symlink to its target.
//!
//! Hard links: the file gets a new inode, so other names of it keep the old content, and the result says so; this way a
//! name inside the workspace never changes a file outside. A folder that may not be written but whose file may: the
//! file is written in place, which is not atomic, and the result says so.

use crate::error::ToolError;
use crate::platform::open_resolved;
use claw_kernel::durable::{self, Mode, Sync};
use rustix::fs::{Access, AtFlags, FileType, OFlags, RawMode, Stat};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
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

/// Writes a resolved path. Parent folders are made. No symlink is followed on the way, whoever puts one there meanwhile.
pub fn store(path: &Path, bytes: &[u8]) -> Result<Stored, ToolError> {
    let failed = |source: io::Error| ToolError::Io { path: path.to_owned(), source };
    let held = Held::of(path).map_err(failed)?;
    let before = held.stat().map_err(failed)?;
    if before.is_some() {
        // A rename would pass over the mode of the file itself.
        rustix::fs::accessat(&held.folder, &held.name, Access::WRITE_OK, AtFlags::EACCESS)
            .map_err(|errno| failed(errno.into()))?;
    }
    let links = std::fs::symlink_metadata(held.path()).map_or(0, |meta| meta.nlink());
    match durable::replace(&held.path(), bytes, Mode::Keep, Sync::No) {
        Ok(()) => Ok(Stored { other_names: links.saturating_sub(1), in_place: false }),
        Err(error) if before.is_some() && error.kind() == io::ErrorKind::PermissionDenied => {
            held.write_in_place(bytes).map_err(failed)?;
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
        Ok(Self { folder: make_folders(folder)?, name: name.to_owned() })
    }

    /// What the name stands for; none: nothing. Errors: it is a symlink, though the path was resolved.
    fn stat(&self) -> io::Result<Option<Stat>> {
        match rustix::fs::statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode as RawMode) == FileType::Symlink => {
                Err(Errno::LOOP.into())
            }
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    fn write_in_place(&self, bytes: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.folder, &self.name, flags, rustix::fs::Mode::empty())?;
        let mut file = File::from(file);
        if !file.metadata()?.is_file() {
            return Err(Errno::INVAL.into());
        }
        file.set_len(0)?;
        file.write_all(bytes)
    }

    fn path(&self) -> PathBuf {
        let root = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };
        Path::new(root).join(self.folder.as_raw_fd().to_string()).join(&self.name)
    }
}

/// Opens a resolved folder, and makes what of it is not there. Each part is made in the one that is held open.
fn make_folders(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut missing = Vec::new();
    let mut at = path;
    let mut folder = loop {
        match open_resolved(at, flags) {
            Err(Errno::NOENT) => {
                let (Some(parent), Some(name)) = (at.parent(), at.file_name()) else {
                    return Err(Errno::NOENT.into());
                };
                missing.push(name);
                at = parent;
            }
            other => break other?,
        }
    };
    for name in missing.into_iter().rev() {
        match rustix::fs::mkdirat(&folder, name, rustix::fs::Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        folder = rustix::fs::openat(&folder, name, flags, rustix::fs::Mode::empty())?;
    }
    Ok(folder)
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
    fn ten_thousand_writes_while_the_folder_is_exchanged_for_a_symlink_stay_inside() {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use std::sync::atomic::{AtomicBool, Ordering};
        let root = tempfile::tempdir().unwrap();
        let root = crate::files::paths::resolve(root.path());
        let (inside, outside, other) = (root.join("w/d"), root.join("outside"), root.join("w/other"));
        std::fs::create_dir_all(&inside).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        symlink("../outside", &other).unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    renameat_with(CWD, &inside, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                }
            });
            let mut stored = 0;
            for n in 0..10_000 {
                stored += usize::from(store(&inside.join(format!("new-{}/x", n % 7)), b"x").is_ok());
                stored += usize::from(store(&inside.join("x"), b"x").is_ok());
            }
            over.store(true, Ordering::Relaxed);
            assert!(stored > 0);
        });
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    }

    #[test]
    fn a_name_that_became_a_symlink_is_not_written_through() {
        let root = tempfile::tempdir().unwrap();
        let root = crate::files::paths::resolve(root.path());
        store(&root.join("theirs"), b"old").unwrap();
        symlink("theirs", root.join("mine")).unwrap();
        assert!(store(&root.join("mine"), b"new").is_err());
        assert!(store(&root.join("mine/below"), b"new").is_err());
        assert!(store(Path::new("/proc/self/cwd/x"), b"new").is_err());
        assert_eq!(std::fs::read(root.join("theirs")).unwrap(), b"old");
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
