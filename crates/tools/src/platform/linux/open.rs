//! Opening a path that was resolved before: a symlink that was put into it meanwhile is an error, not followed.

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Opens a resolved path. Where the kernel does not know how to refuse symlinks, only the last part is held.
pub(crate) fn open_resolved(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::CLOEXEC;
    match rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Err(Errno::NOSYS | Errno::PERM) => rustix::fs::open(path, flags | OFlags::NOFOLLOW, Mode::empty()),
        other => other,
    }
}
