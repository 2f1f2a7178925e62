//! What a child does between fork and exec: a session of its own, the mounts over what governs, the write wall.
//!
//! Only system calls on values prepared before the fork; nothing is allocated after it.

use super::beneath::Beneath;
use super::house::{self, House};
use super::mounts::{NONE, chdir, copy_of_mounts, mount, put_mounts, read_only};
use super::room::{self, Room};
use super::{calls, rights};
use rustix::process::Pid;
use std::ffi::CString;
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
    /// Namespaces of its own; then no other mounts are made.
    room: Option<Room>,
    beneath: Option<Arc<Beneath>>,
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
        self.writable = Some(writable.map(|path| Writable { path, mounts: NONE }).collect());
        self.pins = pins
            .into_iter()
            .filter_map(|(path, read_only)| Some(Pin { path: c_path(path)?, read_only }))
            .collect();
        self.id_maps = house::id_maps();
        self
    }

    /// A room in a house, with these paths as mount points, read-only or not, these covered, folders or not, and these
    /// folders (those above others first) held by their names.
    pub(crate) fn with_room<'p>(
        mut self,
        house: Arc<House>,
        pins: impl IntoIterator<Item = (&'p Path, bool)>,
        covered: impl IntoIterator<Item = (&'p Path, bool)>,
        held: impl IntoIterator<Item = &'p Path>,
    ) -> Self {
        let prepared = |(path, flag): (&Path, bool)| Some((c_path(path)?, flag));
        self.room = Some(Room {
            house,
            pins: pins.into_iter().filter_map(prepared).collect(),
            covered: covered.into_iter().filter_map(prepared).collect(),
            held: held.into_iter().filter_map(c_path).collect(),
            folder: self.folder.clone(),
            tell: None,
        });
        self.gives_up = rustix::process::geteuid().is_root();
        self
    }

    /// What holds in a room beside its mounts: writes below some paths only, and the filter of system calls.
    pub(crate) fn with_rules(
        mut self,
        beneath: Option<Arc<Beneath>>,
        filter: Option<&'static [libc::sock_filter]>,
    ) -> Self {
        self.beneath = beneath;
        self.filter = filter;
        self
    }
}

pub(super) fn c_path(path: &Path) -> Option<CString> {
    CString::new(path.as_os_str().as_bytes()).ok()
}

/// Tells, once the child is started, which process is the first one of its room.
#[derive(Debug)]
pub(crate) struct FirstProcess(OwnedFd);

impl FirstProcess {
    /// Waits for the number: the child says it before it does anything else. To be called when the command that started
    /// it is dropped. None: it died before.
    pub(crate) fn number(self) -> Option<Pid> {
        let mut bytes = [0; size_of::<i32>()];
        match rustix::io::read(&self.0, &mut bytes) {
            Ok(read) if read == bytes.len() => Pid::from_raw(i32::from_ne_bytes(bytes)),
            Ok(_) | Err(_) => None,
        }
    }
}

/// Makes the command's child follow the plan: own session without a terminal, dies with this process, files above 2
/// closed at exec.
pub(crate) fn prepare(
    command: &mut tokio::process::Command,
    mut plan: ChildPlan,
) -> io::Result<Option<FirstProcess>> {
    let parent = std::process::id();
    let mut first = None;
    if let Some(room) = &mut plan.room {
        let (hear, tell) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        room.tell = Some(tell);
        first = Some(FirstProcess(hear));
    }
    let child = move || {
        match &plan.room {
            Some(room) => room::enter(room, parent)?,
            None => {
                new_session()?;
                mounts(&mut plan)?;
            }
        }
        if plan.gives_up {
            rights::give_up()?;
        }
        if plan.room.is_none() {
            die_with(parent)?;
        }
        wall(&plan)?;
        close_at_exec()
    };
    // SAFETY: the closure runs in the child of a fork. It only makes system calls on memory that was prepared before
    // the fork, allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(child);
    }
    Ok(first)
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
pub(super) fn die_with(parent: u32) -> io::Result<()> {
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
    house::map_ids(plan.id_maps.as_ref())?;
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
    chdir(&plan.folder)
}

fn wall(plan: &ChildPlan) -> io::Result<()> {
    if plan.ruleset.is_none() && plan.room.is_none() {
        return Ok(());
    }
    // SAFETY: plain integers.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }.into())?;
    if let Some(ruleset) = &plan.ruleset {
        // SAFETY: an open file descriptor and plain integers.
        check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) })?;
    }
    plan.beneath.as_ref().map_or(Ok(()), |beneath| beneath.restrict())?;
    plan.filter.map_or(Ok(()), calls::hold)
}

fn close_at_exec() -> io::Result<()> {
    // SAFETY: plain integers. Marked, not closed: the standard library still reports a failed exec over one of them.
    check(unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) })?;
    Ok(())
}
