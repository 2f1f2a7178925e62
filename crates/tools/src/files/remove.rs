//! Removing a tree that a command made, however deep or wide: without recursion, with two open folders at most, and
//! never through a symlink. What lies below a folder is first moved up beside it, so that no path grows.
//!
//! Blocks: call it off the runtime's threads.

use claw_kernel::ids::RunId;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RawMode};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Entries after which it is given up.
const MOST: usize = 4_000_000;

/// Removes what is at a path: a file, a symlink (itself), or a folder with all below it. Nothing there: nothing to do.
/// Errors: something could not be removed, or there was too much; the rest stays.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    };
    let parent = match rustix::fs::open(parent, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        other => other?,
    };
    match remove(parent.as_fd(), &CString::new(name.as_bytes())?) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Removes an entry of an open folder: a file, a symlink (itself), or a folder with all below it. Errors: something
/// could not be removed, or there was too much; the rest stays.
pub(crate) fn remove(parent: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) => return Ok(()),
        // Linux says that it is a folder, others that it is not permitted.
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(errno) => return Err(errno.into()),
    }
    let top = open(parent, name)?;
    let mut tree = Flat { top: &top, prefix: RunId::fresh().to_string(), moved: 0, left: MOST };
    while tree.pass()? {}
    rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)?;
    Ok(())
}

/// Opens a folder to empty it; takes back a mode that keeps its owner out.
fn open(parent: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = match rustix::fs::openat(parent, name, flags | OFlags::RDONLY, Mode::empty()) {
        Err(Errno::ACCESS) => {
            open_up(parent, name);
            rustix::fs::openat(parent, name, flags | OFlags::RDONLY, Mode::empty())?
        }
        other => other?,
    };
    let mode = rustix::fs::fstat(&fd)?.st_mode;
    if mode & 0o700 != 0o700 {
        // Where that is refused, so is what follows.
        let _ = rustix::fs::fchmod(&fd, Mode::RWXU);
    }
    Ok(fd)
}

/// Through a descriptor: a symlink that took its place meanwhile is not followed.
#[cfg(target_os = "linux")]
fn open_up(parent: BorrowedFd<'_>, name: &CStr) {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if let Ok(fd) = rustix::fs::openat(parent, name, flags, Mode::empty()) {
        let _ = rustix::fs::chmod(format!("/proc/self/fd/{}", fd.as_raw_fd()), Mode::RWXU);
    }
}

#[cfg(not(target_os = "linux"))]
fn open_up(parent: BorrowedFd<'_>, name: &CStr) {
    let _ = rustix::fs::chmodat(parent, name, Mode::RWXU, AtFlags::SYMLINK_NOFOLLOW);
}

struct Flat<'t> {
    top: &'t OwnedFd,
    prefix: String,
    moved: u64,
    left: usize,
}

impl Flat<'_> {
    /// Empties every folder of the top one level; whether something was found there.
    fn pass(&mut self) -> io::Result<bool> {
        let mut found = false;
        let top = self.top;
        let mut entries = Dir::read_from(top)?;
        while let Some((name, is_folder)) = self.next(&mut entries)? {
            found = true;
            if !is_folder || rustix::fs::unlinkat(top, &name, AtFlags::REMOVEDIR).is_err() {
                self.entry(top.as_fd(), &name)?;
            }
        }
        Ok(found)
    }

    fn entry(&mut self, top: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
        match rustix::fs::unlinkat(top, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(errno) => return Err(errno.into()),
        }
        let folder = open(top, name)?;
        let mut entries = Dir::read_from(&folder)?;
        while let Some((name, is_folder)) = self.next(&mut entries)? {
            if is_folder {
                self.up(&folder, &name)?;
            } else {
                rustix::fs::unlinkat(&folder, &name, AtFlags::empty())?;
            }
        }
        // What is left (a folder whose listing changed while it was emptied) is for the next pass.
        match rustix::fs::unlinkat(top, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn up(&mut self, folder: &OwnedFd, name: &CStr) -> io::Result<()> {
        if rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR).is_ok() {
            return Ok(());
        }
        self.moved += 1;
        let to = format!("{}.{}", self.prefix, self.moved);
        match rustix::fs::renameat(folder, name, self.top, to.as_str()) {
            // To move a folder is to write into it.
            Err(Errno::ACCESS) => {
                open(folder.as_fd(), name)?;
                Ok(rustix::fs::renameat(folder, name, self.top, to.as_str())?)
            }
            other => Ok(other?),
        }
    }

    /// The next entry, and whether it is a folder.
    fn next(&mut self, entries: &mut Dir) -> io::Result<Option<(std::ffi::CString, bool)>> {
        while let Some(entry) = entries.read() {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            self.left =
                self.left.checked_sub(1).ok_or_else(|| io::Error::other("there is too much in it"))?;
            let is_folder = match entry.file_type() {
                FileType::Directory => true,
                // A file system that does not tell.
                FileType::Unknown => is_folder(entries, name),
                _ => false,
            };
            return Ok(Some((name.to_owned(), is_folder)));
        }
        Ok(None)
    }
}

fn is_folder(entries: &Dir, name: &CStr) -> bool {
    let Ok(fd) = entries.fd() else { return false };
    rustix::fs::statat(fd, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode as RawMode) == FileType::Directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, mkdirat};
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn chain(root: &std::path::Path, depth: usize) {
        let mut at = rustix::fs::openat(CWD, root, OFlags::DIRECTORY, Mode::empty()).unwrap();
        for _ in 0..depth {
            mkdirat(&at, "a", Mode::RWXU).unwrap();
            at = rustix::fs::openat(&at, "a", OFlags::DIRECTORY, Mode::empty()).unwrap();
        }
    }

    fn gone(root: &std::path::Path) {
        let parent = std::fs::File::open(root).unwrap();
        remove(parent.as_fd(), c"t").unwrap();
        assert!(root.join("t").symlink_metadata().is_err());
    }

    #[test]
    fn a_chain_of_any_depth_goes_without_a_deep_stack() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("t")).unwrap();
        chain(&root.path().join("t"), 20_000);
        gone(root.path());
    }

    #[test]
    fn a_tree_goes_and_what_its_symlinks_name_stays() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("out/deep")).unwrap();
        let tree = root.path().join("t");
        for n in 0..20 {
            let folder = tree.join(format!("{n}/x/y"));
            std::fs::create_dir_all(&folder).unwrap();
            symlink(root.path().join("out"), folder.join("l")).unwrap();
            symlink(root.path().join("out"), tree.join(format!("{n}/l"))).unwrap();
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o000)).unwrap();
        }
        gone(root.path());
        assert!(root.path().join("out/deep").exists());
        symlink("out", root.path().join("t")).unwrap();
        gone(root.path());
        assert!(root.path().join("out/deep").exists());
    }
}
