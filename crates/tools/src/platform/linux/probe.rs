//! Whether the system gives namespaces to this process: tried once, in a child that runs nothing.

use super::child::check;
use super::house::{id_maps, map_ids};
use super::mounts::{mount, mount_new};
use std::ffi::c_int;
use std::io;

/// Makes the command's child try what houses and rooms are made of, and then end with `ECANCELED`.
pub(crate) fn try_namespaces(command: &mut tokio::process::Command) {
    let maps = id_maps();
    let child = move || {
        let user = if maps.is_some() { libc::CLONE_NEWUSER } else { 0 };
        let all = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWNET | user;
        // SAFETY: plain integers; the child of a fork has one thread.
        check(unsafe { libc::unshare(all) }.into())?;
        map_ids(maps.as_ref())?;
        mount(None, c"/", libc::MS_REC | libc::MS_PRIVATE)?;
        in_first_process()?;
        Err(io::Error::from_raw_os_error(libc::ECANCELED))
    };
    // SAFETY: the closure runs in the child of a fork. It only makes system calls on memory that was prepared before
    // the fork, allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(child);
    }
}

/// A process list of one's own can only be mounted by a process of the new namespace.
fn in_first_process() -> io::Result<()> {
    // SAFETY: as a fork: no memory is shared, the stack is copied.
    let pid =
        check(unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0usize, 0usize, 0usize, 0usize) })?;
    if pid == 0 {
        let done = mount_new(c"proc", c"/proc", libc::MS_RDONLY, c"")
            .and_then(|()| mount_new(c"tmpfs", c"/dev", libc::MS_NOSUID, c"size=4k"));
        let code = done.err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
        // SAFETY: ends this process.
        unsafe { libc::_exit(code) }
    }
    let mut status: c_int = 0;
    // SAFETY: room for one number that lives through the call.
    check(unsafe { libc::syscall(libc::SYS_wait4, pid, &raw mut status, 0, 0usize) })?;
    match libc::WEXITSTATUS(status) {
        0 if libc::WIFEXITED(status) => Ok(()),
        code if libc::WIFEXITED(status) => Err(io::Error::from_raw_os_error(code)),
        _ => Err(io::Error::from_raw_os_error(libc::EIO)),
    }
}
