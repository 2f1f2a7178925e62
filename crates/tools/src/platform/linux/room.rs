//! The room of one command: a copy of its policy's house, with processes of its own.
//!
//! Three processes come of one fork. The **doorkeeper** is the child that claw waits for: it ends as the command ends.
//! The **first process** of the room's pid namespace clears away whatever dies there, and everything there dies with it:
//! claw (or the kernel, when claw dies) ends it, and nothing of the command is left. The **command** is the third.
//!
//! Between fork and exec: system calls on prepared memory only. The first two hold a copy of claw's memory all their
//! life: they are closed to everybody in the room, and they run nothing.

use super::child::{check, die_with};
use super::house::{House, SEAL, VOID};
use super::mounts::{chdir, mount, mount_new, read_only};
use std::ffi::{CString, c_int};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

/// What a command's room has beside the house.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) house: Arc<House>,
    /// Paths that become mount points, and whether read-only.
    pub(super) pins: Vec<(CString, bool)>,
    /// Folders that cannot be renamed: what is covered below them would lose its cover for the next command.
    pub(super) held: Vec<CString>,
    /// Paths that are covered, and whether they are folders.
    pub(super) covered: Vec<(CString, bool)>,
    pub(super) folder: CString,
    /// Takes the number of the first process.
    pub(super) tell: Option<OwnedFd>,
}

/// Goes on as the command; the others never return.
pub(super) fn enter(room: &Room, parent: u32) -> io::Result<()> {
    rustix::process::setsid()?;
    let signals = Signals::block()?;
    room.house.enter()?;
    let own = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC;
    // SAFETY: plain integers; the child of a fork has one thread.
    check(unsafe { libc::unshare(own) }.into())?;
    close_to_others()?;
    die_with(parent)?;
    let [from_first, to_keeper] = pipe()?;
    // A child of claw itself: it dies with claw, and outlives the doorkeeper.
    match fork(libc::CLONE_PARENT)? {
        0 => {}
        first => keep_door(first, from_first, room.tell.as_ref().map(AsRawFd::as_raw_fd)),
    }
    close(from_first);
    // SAFETY: plain integers.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }.into())?;
    furnish(room)?;
    is_somebody_there(to_keeper)?;
    match fork(0)? {
        0 => {}
        command => be_first(command, to_keeper),
    }
    rustix::process::setsid()?;
    signals.restore()
}

fn furnish(room: &Room) -> io::Result<()> {
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC | libc::MS_RDONLY;
    mount_new(c"proc", c"/proc", flags, c"")?;
    for (path, is_read_only) in &room.pins {
        mount(Some(path), path, libc::MS_BIND | libc::MS_REC)?;
        if *is_read_only {
            read_only(path)?;
        }
    }
    for path in &room.held {
        match mount(Some(path), path, libc::MS_BIND | libc::MS_REC) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
            other => other?,
        }
    }
    for (path, is_folder) in &room.covered {
        match mount(Some(if *is_folder { VOID } else { SEAL }), path, libc::MS_BIND) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
            other => other?,
        }
    }
    // The folder that the child stands in may lie below one of the new mounts.
    chdir(&room.folder)
}

/// The doorkeeper: waits for what the first process says of the command, and ends like it.
fn keep_door(first: c_int, from_first: c_int, tell: Option<c_int>) -> ! {
    if let Some(tell) = tell {
        let bytes = first.to_ne_bytes();
        // SAFETY: bytes that live through the call.
        unsafe { libc::write(tell, bytes.as_ptr().cast(), bytes.len()) };
    }
    keep_only(from_first);
    let mut status: c_int = 0;
    let size = size_of::<c_int>();
    loop {
        // SAFETY: room for one number that lives through the call.
        let read = unsafe { libc::read(from_first, (&raw mut status).cast(), size) };
        if usize::try_from(read) == Ok(size) {
            end_as(status);
        }
        if read >= 0 {
            // It was killed, and the command with it.
            end_by(libc::SIGKILL);
        }
    }
}

fn end_as(status: c_int) -> ! {
    if libc::WIFEXITED(status) {
        // SAFETY: ends this process.
        unsafe { libc::_exit(libc::WEXITSTATUS(status)) }
    }
    end_by(libc::WTERMSIG(status))
}

fn end_by(signal: c_int) -> ! {
    // SAFETY: system calls of a process with one thread; the set lives through the calls.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::signal(signal, libc::SIG_DFL);
        libc::sigprocmask(libc::SIG_UNBLOCK, &raw const all, std::ptr::null_mut());
        libc::syscall(libc::SYS_kill, libc::getpid(), signal);
        libc::_exit(128 + signal)
    }
}

/// The first process: clears away who died, tells how the command ended, ends when it is alone.
fn be_first(command: c_int, to_keeper: c_int) -> ! {
    keep_only(to_keeper);
    loop {
        let mut status: c_int = 0;
        // SAFETY: room for one number that lives through the call.
        let ended = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL) };
        if ended == command {
            let bytes = status.to_ne_bytes();
            // SAFETY: bytes that live through the call.
            let told = unsafe { libc::write(to_keeper, bytes.as_ptr().cast(), bytes.len()) };
            close(to_keeper);
            if told < 0 {
                // SAFETY: ends this process.
                unsafe { libc::_exit(1) }
            }
        } else if ended < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD) {
            // SAFETY: ends this process.
            unsafe { libc::_exit(0) }
        }
    }
}

/// The doorkeeper dies with claw. If both died before this process was told to do so as well, it finds out here.
fn is_somebody_there(to_keeper: c_int) -> io::Result<()> {
    let mut end = libc::pollfd { fd: to_keeper, events: 0, revents: 0 };
    // SAFETY: one structure that lives through the call.
    check(unsafe { libc::poll(&raw mut end, 1, 0) }.into())?;
    if end.revents & libc::POLLERR == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
}

/// Nobody in the room looks into this process, which is a copy of claw, and it leaves no core.
fn close_to_others() -> io::Result<()> {
    // SAFETY: plain integers.
    check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) }.into())?;
    Ok(())
}

fn fork(flags: c_int) -> io::Result<c_int> {
    let flags = flags | libc::SIGCHLD;
    // SAFETY: as a fork: no memory is shared, the stack is copied. The process has one thread and goes on with system
    // calls only.
    let pid = check(unsafe { libc::syscall(libc::SYS_clone, flags, 0usize, 0usize, 0usize, 0usize) })?;
    c_int::try_from(pid).map_err(|_| io::Error::from_raw_os_error(libc::EAGAIN))
}

fn pipe() -> io::Result<[c_int; 2]> {
    let mut ends = [0; 2];
    // SAFETY: room for two numbers that lives through the call.
    check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }.into())?;
    Ok(ends)
}

fn close(fd: c_int) {
    // SAFETY: a file descriptor of this module, closed once.
    unsafe { libc::syscall(libc::SYS_close, fd) };
}

/// Locks, pipes and sockets of claw, the command's pipes: none is held here.
fn keep_only(fd: c_int) {
    let fd = fd.cast_unsigned();
    // SAFETY: plain integers; nothing in this process uses the files that are closed.
    unsafe {
        if fd > 0 {
            libc::syscall(libc::SYS_close_range, 0, fd - 1, 0);
        }
        libc::syscall(libc::SYS_close_range, fd + 1, libc::c_uint::MAX, 0);
    }
}

/// The signals that were blocked before.
struct Signals(libc::sigset_t);

impl Signals {
    /// No handler of claw's runs in the processes that stay: only SIGKILL reaches them.
    fn block() -> io::Result<Self> {
        // SAFETY: sets that live through the calls.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            check(libc::sigprocmask(libc::SIG_SETMASK, &raw const all, &raw mut before).into())?;
            Ok(Self(before))
        }
    }

    fn restore(&self) -> io::Result<()> {
        // SAFETY: a set that lives through the call.
        check(
            unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut()) }.into(),
        )?;
        Ok(())
    }
}
