//! The system calls that make mounts, for a child between fork and exec: prepared memory only, nothing allocated.

use super::child::check;
use std::ffi::{CStr, c_int, c_ulong};
use std::io;

/// No file descriptor.
pub(super) const NONE: c_int = -1;

/// `mount` without a file system: binds, remounts, propagation.
pub(super) fn mount(source: Option<&CStr>, target: &CStr, flags: c_ulong) -> io::Result<()> {
    let source = source.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: C strings that live through the call; the kernel accepts null for what these flags do not use.
    check(unsafe { libc::mount(source, target.as_ptr(), std::ptr::null(), flags, std::ptr::null()) }.into())?;
    Ok(())
}

/// A new file system of a kind at a path.
pub(super) fn mount_new(kind: &CStr, target: &CStr, flags: c_ulong, options: &CStr) -> io::Result<()> {
    // SAFETY: C strings that live through the call.
    check(
        unsafe { libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast()) }
            .into(),
    )?;
    Ok(())
}

/// A copy of the mounts at a path, attached nowhere, closed at exec.
pub(super) fn copy_of_mounts(path: &CStr) -> io::Result<c_int> {
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | libc::AT_RECURSIVE.cast_unsigned();
    // SAFETY: a C string that lives through the call, and plain integers.
    fd(check(unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags) })?)
}

/// Attaches mounts to a path.
pub(super) fn put_mounts(mounts: c_int, target: &CStr) -> io::Result<()> {
    // SAFETY: C strings that live through the call, and plain integers.
    check(unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            mounts,
            c"".as_ptr(),
            libc::AT_FDCWD,
            target.as_ptr(),
            libc::MOVE_MOUNT_F_EMPTY_PATH,
        )
    })?;
    Ok(())
}

/// Makes the mounts at a path, and all below it where that is asked for, read-only or otherwise tighter.
pub(super) fn tighten(target: &CStr, attributes: u64, deep: bool) -> io::Result<()> {
    let attributes = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let flags = if deep { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the structure and the C string live through the call, the size is that of the structure.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            target.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    })?;
    Ok(())
}

/// Makes all mounts at and below a path read-only.
pub(super) fn read_only(target: &CStr) -> io::Result<()> {
    tighten(target, libc::MOUNT_ATTR_RDONLY, true)
}

/// A layer over a folder: what is read comes from it, what is written goes into `upper`. Attached nowhere.
pub(super) fn overlay(lower: &CStr, upper: &CStr, work: &CStr, in_user_space: bool) -> io::Result<c_int> {
    const FSCONFIG_SET_FLAG: c_int = 0;
    const FSCONFIG_SET_STRING: c_int = 1;
    const FSCONFIG_CMD_CREATE: c_int = 6;
    const CLOSE_ON_EXEC: c_int = 1;
    // SAFETY: a C string that lives through the call, a plain integer.
    let context = fd(check(unsafe { libc::syscall(libc::SYS_fsopen, c"overlay".as_ptr(), CLOSE_ON_EXEC) })?)?;
    let set = |command: c_int, key: Option<&CStr>, value: Option<&CStr>| {
        let key = key.map_or(std::ptr::null(), CStr::as_ptr);
        let value = value.map_or(std::ptr::null(), CStr::as_ptr);
        // SAFETY: C strings that live through the call, plain integers; null where the command takes none.
        check(unsafe { libc::syscall(libc::SYS_fsconfig, context, command, key, value, 0) })
    };
    set(FSCONFIG_SET_STRING, Some(c"lowerdir"), Some(lower))?;
    set(FSCONFIG_SET_STRING, Some(c"upperdir"), Some(upper))?;
    set(FSCONFIG_SET_STRING, Some(c"workdir"), Some(work))?;
    if in_user_space {
        set(FSCONFIG_SET_FLAG, Some(c"userxattr"), None)?;
    }
    set(FSCONFIG_CMD_CREATE, None, None)?;
    // SAFETY: plain integers.
    fd(check(unsafe { libc::syscall(libc::SYS_fsmount, context, CLOSE_ON_EXEC, 0) })?)
}

/// A folder, unless it is there.
pub(super) fn make_folder(path: &CStr) -> io::Result<()> {
    // SAFETY: a C string that lives through the call.
    match check(unsafe { libc::mkdir(path.as_ptr(), 0o755) }.into()) {
        Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
        other => other.map(drop),
    }
}

/// An empty file, unless something is there.
pub(super) fn make_file(path: &CStr) -> io::Result<()> {
    // SAFETY: a C string that lives through the call.
    match check(unsafe { libc::mknod(path.as_ptr(), libc::S_IFREG | 0o444, 0) }.into()) {
        Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
        other => other.map(drop),
    }
}

/// A symlink, unless something is there.
pub(super) fn make_link(target: &CStr, path: &CStr) -> io::Result<()> {
    // SAFETY: C strings that live through the call.
    match check(unsafe { libc::symlink(target.as_ptr(), path.as_ptr()) }.into()) {
        Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
        other => other.map(drop),
    }
}

pub(super) fn chdir(path: &CStr) -> io::Result<()> {
    // SAFETY: a C string that lives through the call.
    check(unsafe { libc::chdir(path.as_ptr()) }.into())?;
    Ok(())
}

pub(super) fn write_once(path: &CStr, bytes: &[u8]) -> io::Result<()> {
    let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, rustix::fs::Mode::empty())?;
    rustix::io::write(&file, bytes)?;
    Ok(())
}

fn fd(number: libc::c_long) -> io::Result<c_int> {
    c_int::try_from(number).map_err(|_| io::Error::from_raw_os_error(libc::EBADF))
}
