//! What a child does between fork and exec: a session of its own, the mounts over what governs, the write wall.
//!
//! Only system calls on values prepared before the fork; nothing is allocated after it.

use super::{calls, rights};
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// A path that becomes a mount point in the child: it can be neither renamed nor replaced there.
#[derive(Debug)]
struct Pin {
    path: CString,
    read_only: bool,
}

/// A folder that stays writable; its mounts are taken before all becomes read-only, and put back after it.
#[derive(Debug)]
struct Writable {
    path: CString,
    mounts: libc::c_int,
}

/// How a child is confined.
#[derive(Debug, Default)]
pub(crate) struct ChildPlan {
    ruleset: Option<Arc<OwnedFd>>,
    filter: Option<&'static [libc::sock_filter]>,
    /// What stays writable where all else becomes read-only, folders before what is in them; none: nothing is mounted.
    writable: Option<Vec<Writable>>,
    pins: Vec<Pin>,
    /// Written to the id maps of a user namespace of its own; none: the right to mount is there already.
    id_maps: Option<[Vec<u8>; 2]>,
    folder: CString,
    /// The rights of root beyond a user's files are given up.
    gives_up: bool,
}

impl ChildPlan {
    /// A child that works in `folder`, not confined.
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: c_path(folder).unwrap_or_default(), ..Self::default() }
    }

    /// The write wall, and the filter of system calls.
    pub(crate) fn with_wall(
        mut self,
        ruleset: Arc<OwnedFd>,
        filter: Option<&'static [libc::sock_filter]>,
    ) -> Self {
        self.ruleset = Some(ruleset);
        self.filter = filter;
        self.gives_up = rustix::process::geteuid().is_root();
        self
    }

    /// Everything becomes read-only but these folders (modes, owners and times, too, which Landlock does not hold), and
    /// these paths in them become mount points, read-only or not. All exist.
    pub(crate) fn with_mounts<'p>(
        mut self,
        mut writable: Vec<&'p Path>,
        pins: impl IntoIterator<Item = (&'p Path, bool)>,
    ) -> Self {
        writable.sort_unstable();
        let writable = writable.into_iter().filter_map(c_path);
        self.writable = Some(writable.map(|path| Writable { path, mounts: -1 }).collect());
        self.pins = pins
            .into_iter()
            .filter_map(|(path, read_only)| Some(Pin { path: c_path(path)?, read_only }))
            .collect();
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        if !user.is_root() {
            let line = |id: u32| format!("{id} {id} 1\n").into_bytes();
            self.id_maps = Some([line(user.as_raw()), line(group.as_raw())]);
        }
        self
    }
}

fn c_path(path: &Path) -> Option<CString> {
    CString::new(path.as_os_str().as_bytes()).ok()
}

/// Makes the command's child follow the plan: own session without a terminal, dies with this process, files above 2
/// closed at exec.
pub(crate) fn prepare(command: &mut tokio::process::Command, mut plan: ChildPlan) {
    let parent = std::process::id();
    let child = move || {
        new_session()?;
        mounts(&mut plan)?;
        if plan.gives_up {
            rights::give_up()?;
        }
        die_with(parent)?;
        wall(&plan)?;
        close_at_exec()
    };
    // SAFETY: the closure runs in the child of a fork. It only makes system calls on memory that was prepared before
    // the fork, allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(child);
    }
}

/// Makes the command's child mount what the plan says and then end with `ECANCELED`: it never runs anything.
pub(crate) fn rehearse(command: &mut tokio::process::Command, mut plan: ChildPlan) {
    let child = move || {
        mounts(&mut plan)?;
        Err(io::Error::from_raw_os_error(libc::ECANCELED))
    };
    // SAFETY: as for `prepare`.
    unsafe {
        command.pre_exec(child);
    }
}

pub(super) fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn new_session() -> io::Result<()> {
    rustix::process::setsid()?;
    Ok(())
}

/// The signal goes when the thread that forked ends: jobs are started on the runtime's own threads only.
fn die_with(parent: u32) -> io::Result<()> {
    // SAFETY: plain integers.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }.into())?;
    // SAFETY: no arguments.
    let now = unsafe { libc::getppid() };
    if u32::try_from(now) == Ok(parent) { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
}

fn mounts(plan: &mut ChildPlan) -> io::Result<()> {
    let Some(writable) = &mut plan.writable else { return Ok(()) };
    let user = if plan.id_maps.is_some() { libc::CLONE_NEWUSER } else { 0 };
    // SAFETY: plain integers; the child of a fork has one thread.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS | user) }.into())?;
    if let Some([users, groups]) = &plan.id_maps {
        write_once(c"/proc/self/setgroups", b"deny")?;
        write_once(c"/proc/self/uid_map", users)?;
        write_once(c"/proc/self/gid_map", groups)?;
    }
    mount(None, c"/", libc::MS_REC | libc::MS_PRIVATE)?;
    for folder in writable.iter_mut() {
        folder.mounts = copy_of_mounts(&folder.path)?;
    }
    read_only(c"/")?;
    for folder in writable.iter() {
        put_mounts(folder.mounts, &folder.path)?;
    }
    for pin in &plan.pins {
        mount(Some(&pin.path), &pin.path, libc::MS_BIND | libc::MS_REC)?;
        if pin.read_only {
            read_only(&pin.path)?;
        }
    }
    // The folder that the child stands in may lie below one of the new mounts.
    // SAFETY: a C string that lives through the call.
    check(unsafe { libc::chdir(plan.folder.as_ptr()) }.into())?;
    Ok(())
}

fn mount(source: Option<&CStr>, target: &CStr, flags: libc::c_ulong) -> io::Result<()> {
    let source = source.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: C strings that live through the call; the kernel accepts null for what these flags do not use.
    check(unsafe { libc::mount(source, target.as_ptr(), std::ptr::null(), flags, std::ptr::null()) }.into())?;
    Ok(())
}

/// Closed at exec.
fn copy_of_mounts(path: &CStr) -> io::Result<libc::c_int> {
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | libc::AT_RECURSIVE.cast_unsigned();
    // SAFETY: a C string that lives through the call, and plain integers.
    let fd = check(unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags) })?;
    libc::c_int::try_from(fd).map_err(|_| io::Error::from_raw_os_error(libc::EBADF))
}

fn put_mounts(mounts: libc::c_int, target: &CStr) -> io::Result<()> {
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

fn read_only(target: &CStr) -> io::Result<()> {
    let attributes =
        libc::mount_attr { attr_set: libc::MOUNT_ATTR_RDONLY, attr_clr: 0, propagation: 0, userns_fd: 0 };
    // SAFETY: the structure and the C string live through the call, the size is that of the structure.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            target.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    })?;
    Ok(())
}

fn write_once(path: &CStr, bytes: &[u8]) -> io::Result<()> {
    let file = rustix::fs::open(path, rustix::fs::OFlags::WRONLY, rustix::fs::Mode::empty())?;
    rustix::io::write(&file, bytes)?;
    Ok(())
}

fn wall(plan: &ChildPlan) -> io::Result<()> {
    let Some(ruleset) = &plan.ruleset else { return Ok(()) };
    // SAFETY: plain integers.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }.into())?;
    // SAFETY: an open file descriptor and plain integers.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) })?;
    plan.filter.map_or(Ok(()), calls::hold)
}

fn close_at_exec() -> io::Result<()> {
    // SAFETY: plain integers. Marked, not closed: the standard library still reports a failed exec over one of them.
    check(unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) })?;
    Ok(())
}
