//! The house of a policy: namespaces with all mounts that its commands have in common, made once.
//!
//! A child makes the namespaces and furnishes them; claw holds them open, and the child goes. Each command enters a copy
//! (`room.rs`). Between fork and exec: system calls on prepared memory only.

use super::child::{c_path, check, die_with};
use super::mounts::{
    NONE, chdir, copy_of_mounts, make_file, make_folder, make_link, mount, mount_new, overlay, put_mounts,
    read_only, tighten, write_once,
};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags};
use std::ffi::{CStr, CString, c_int};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Where the proxy of commands listens, in a network of their own.
pub(crate) const PROXY_PORT: u16 = 3128;
/// The number of the listening socket in the child that makes the house.
const LISTENER: c_int = 100;
/// Covers folders: empty.
pub(super) const VOID: &CStr = c"/dev/.void";
/// Covers files: opening it is refused, to root as well.
pub(super) const SEAL: &CStr = c"/dev/.sealed";

const NODES: [&CStr; 7] = [
    c"/dev/null",
    c"/dev/zero",
    c"/dev/full",
    c"/dev/random",
    c"/dev/urandom",
    c"/dev/tty",
    // The last one: it becomes the seal.
    c"/dev/null",
];
const LINKS: [(&CStr, &CStr); 5] = [
    (c"/proc/self/fd", c"/dev/fd"),
    (c"/proc/self/fd/0", c"/dev/stdin"),
    (c"/proc/self/fd/1", c"/dev/stdout"),
    (c"/proc/self/fd/2", c"/dev/stderr"),
    (c"pts/ptmx", c"/dev/ptmx"),
];

/// One thing of a house. All paths are resolved and absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fixture {
    /// A folder that is covered by an empty one.
    Emptied,
    /// A file that cannot be opened.
    Sealed,
    /// A new, read-only folder with nothing in it but these: places for later fixtures.
    Fresh(Vec<(PathBuf, Stand)>),
    /// As outside, writable.
    Writable,
    /// As outside, read-only, in spite of what covers it.
    Visible,
    /// Another folder, writable.
    Lent(PathBuf),
    /// What is written goes elsewhere: the first folder, on the same file system as the second, which must be empty.
    Layered(PathBuf, PathBuf),
}

impl Fixture {
    /// At one path: what covers comes first, then what is put back on it, what is hidden last.
    fn rank(&self) -> u8 {
        match self {
            Self::Fresh(_) | Self::Lent(_) => 0,
            Self::Visible => 1,
            Self::Writable => 2,
            Self::Layered(..) => 3,
            Self::Emptied | Self::Sealed => 4,
        }
    }
}

/// What stands in a fresh folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stand {
    /// A folder to put something on.
    Folder,
    /// A file to put something on.
    File,
    /// A symlink.
    Link(PathBuf),
}

/// How a house is made.
#[derive(Debug, Default)]
pub(crate) struct HousePlan {
    fixtures: Vec<Prepared>,
    fresh: Vec<(CString, Kind, CString)>,
    id_maps: Option<[Vec<u8>; 2]>,
    own_network: bool,
    listens: bool,
}

#[derive(Debug)]
struct Prepared {
    path: CString,
    kind: Kind,
    one: CString,
    other: CString,
    mounts: c_int,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Emptied,
    Sealed,
    Fresh,
    Writable,
    Visible,
    Lent,
    Layered,
    Folder,
    File,
    Link,
}

impl HousePlan {
    /// Fixtures at their paths; those that contain others come first whatever the order here. `own_network`: nothing but
    /// a loopback of its own, on which somebody may listen (`listens`).
    pub(crate) fn new(mut fixtures: Vec<(PathBuf, Fixture)>, own_network: bool, listens: bool) -> Self {
        fixtures.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.rank().cmp(&b.1.rank())));
        let mut plan = Self { own_network, listens, id_maps: id_maps(), ..Self::default() };
        for (path, fixture) in &fixtures {
            plan.add(path, fixture);
        }
        plan
    }

    /// What of it is held open.
    pub(crate) fn opens(&self) -> Opens {
        Opens { own_network: self.own_network, listens: self.listens }
    }

    fn add(&mut self, path: &Path, fixture: &Fixture) {
        let none = PathBuf::new();
        let (kind, one, other) = match fixture {
            Fixture::Emptied => (Kind::Emptied, &none, &none),
            Fixture::Sealed => (Kind::Sealed, &none, &none),
            Fixture::Fresh(stands) => {
                stands.iter().for_each(|(path, stand)| self.stand(path, stand));
                (Kind::Fresh, &none, &none)
            }
            Fixture::Writable => (Kind::Writable, &none, &none),
            Fixture::Visible => (Kind::Visible, &none, &none),
            Fixture::Lent(from) => (Kind::Lent, from, &none),
            Fixture::Layered(upper, work) => (Kind::Layered, upper, work),
        };
        // A path with a zero byte is no path.
        if let (Some(path), Some(one), Some(other)) = (c_path(path), c_path(one), c_path(other)) {
            self.fixtures.push(Prepared { path, kind, one, other, mounts: NONE });
        }
    }

    fn stand(&mut self, path: &Path, stand: &Stand) {
        let (kind, target) = match stand {
            Stand::Folder => (Kind::Folder, CString::default()),
            Stand::File => (Kind::File, CString::default()),
            Stand::Link(target) => (Kind::Link, c_path(target).unwrap_or_default()),
        };
        if let Some(path) = c_path(path) {
            self.fresh.push((path, kind, target));
        }
    }

    /// In the child.
    fn carry_out(&mut self) -> io::Result<()> {
        let user = if self.id_maps.is_some() { libc::CLONE_NEWUSER } else { 0 };
        let network = if self.own_network { libc::CLONE_NEWNET } else { 0 };
        // SAFETY: plain integers; the child of a fork has one thread.
        check(unsafe { libc::unshare(libc::CLONE_NEWNS | user | network) }.into())?;
        map_ids(self.id_maps.as_ref())?;
        if self.own_network {
            raise_loopback()?;
        }
        if self.listens {
            listen()?;
        }
        mount(None, c"/", libc::MS_REC | libc::MS_PRIVATE)?;
        let in_user_space = self.id_maps.is_some();
        self.take(|kind| matches!(kind, Kind::Writable | Kind::Lent | Kind::Layered), in_user_space)?;
        let mut nodes = [NONE; NODES.len()];
        for (mounts, node) in nodes.iter_mut().zip(NODES) {
            *mounts = copy_of_mounts(node)?;
        }
        read_only(c"/")?;
        self.take(|kind| kind == Kind::Visible, in_user_space)?;
        devices(&nodes)?;
        self.put()?;
        chdir(c"/")
    }

    /// Takes hold of what is put back later. What is gone meanwhile is not put back.
    fn take(&mut self, which: impl Fn(Kind) -> bool, in_user_space: bool) -> io::Result<()> {
        for fixture in self.fixtures.iter_mut().filter(|fixture| which(fixture.kind)) {
            let taken = match fixture.kind {
                Kind::Lent => copy_of_mounts(&fixture.one),
                Kind::Layered => overlay(&fixture.path, &fixture.one, &fixture.other, in_user_space),
                Kind::Writable | Kind::Visible => copy_of_mounts(&fixture.path),
                Kind::Emptied | Kind::Sealed | Kind::Fresh | Kind::Folder | Kind::File | Kind::Link => {
                    continue;
                }
            };
            fixture.mounts = unless_gone(taken)?.unwrap_or(NONE);
        }
        Ok(())
    }

    fn put(&self) -> io::Result<()> {
        for fixture in &self.fixtures {
            let put = match fixture.kind {
                Kind::Emptied => mount(Some(VOID), &fixture.path, libc::MS_BIND),
                Kind::Sealed => mount(Some(SEAL), &fixture.path, libc::MS_BIND),
                Kind::Fresh => self.fresh(&fixture.path),
                Kind::Writable | Kind::Visible | Kind::Lent | Kind::Layered if fixture.mounts != NONE => {
                    put_mounts(fixture.mounts, &fixture.path)
                }
                Kind::Writable
                | Kind::Visible
                | Kind::Lent
                | Kind::Layered
                | Kind::Folder
                | Kind::File
                | Kind::Link => Ok(()),
            };
            unless_gone(put)?;
        }
        Ok(())
    }

    /// All that stands in fresh folders is made with the first one that it lies in.
    fn fresh(&self, path: &CStr) -> io::Result<()> {
        let flags = libc::MS_NOSUID | libc::MS_NODEV;
        mount_new(c"tmpfs", path, flags, c"mode=755,size=256k")?;
        let below = |stand: &&(CString, Kind, CString)| {
            let (stand, path) = (stand.0.to_bytes(), path.to_bytes());
            stand.starts_with(path) && stand.get(path.len()) == Some(&b'/')
        };
        for (stand, kind, target) in self.fresh.iter().filter(below) {
            match kind {
                Kind::Folder => make_folder(stand)?,
                Kind::File => make_file(stand)?,
                Kind::Link => make_link(target, stand)?,
                Kind::Emptied
                | Kind::Sealed
                | Kind::Fresh
                | Kind::Writable
                | Kind::Visible
                | Kind::Lent
                | Kind::Layered => {}
            }
        }
        tighten(path, libc::MOUNT_ATTR_RDONLY, false)
    }
}

fn unless_gone<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Devices that take or give bytes and nothing else, terminals of their own, shared memory of their own.
fn devices(nodes: &[c_int; NODES.len()]) -> io::Result<()> {
    let flags = libc::MS_NOSUID | libc::MS_NOEXEC;
    mount_new(c"tmpfs", c"/dev", flags, c"mode=755,size=64k")?;
    for (path, mounts) in NODES.iter().zip(nodes).take(NODES.len() - 1) {
        make_file(path)?;
        put_mounts(*mounts, path)?;
    }
    make_file(SEAL)?;
    put_mounts(nodes[NODES.len() - 1], SEAL)?;
    tighten(SEAL, libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NODEV, false)?;
    make_folder(VOID)?;
    for (target, path) in LINKS {
        make_link(target, path)?;
    }
    make_folder(c"/dev/pts")?;
    // A container may know no terminals: then commands have none.
    let _ = mount_new(c"devpts", c"/dev/pts", flags, c"newinstance,ptmxmode=0666,mode=620");
    make_folder(c"/dev/shm")?;
    mount_new(c"tmpfs", c"/dev/shm", flags | libc::MS_NODEV, c"mode=1777")?;
    tighten(c"/dev", libc::MOUNT_ATTR_RDONLY, false)
}

fn raise_loopback() -> io::Result<()> {
    #[repr(C)]
    struct Request {
        name: [u8; libc::IFNAMSIZ],
        flags: libc::c_short,
        rest: [u8; 22],
    }
    // SAFETY: plain integers.
    let socket =
        check(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) }.into())?;
    let mut name = [0; libc::IFNAMSIZ];
    name[..2].copy_from_slice(b"lo");
    let up = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    let request = Request { name, flags: up, rest: [0; 22] };
    // SAFETY: the request has the layout and the size of the kernel's `ifreq` and lives through the call.
    check(unsafe { libc::syscall(libc::SYS_ioctl, socket, libc::SIOCSIFFLAGS, &raw const request) })?;
    // SAFETY: a file descriptor that nobody else uses.
    unsafe { libc::syscall(libc::SYS_close, socket) };
    Ok(())
}

/// A socket that claw will accept on.
fn listen() -> io::Result<()> {
    // SAFETY: plain integers.
    let socket =
        check(unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 0) }.into())?;
    let socket = c_int::try_from(socket).map_err(|_| io::Error::from_raw_os_error(libc::EBADF))?;
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: PROXY_PORT.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes([127, 0, 0, 1]) },
        sin_zero: [0; 8],
    };
    let size = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: the address lives through the call and its size is given.
    check(unsafe { libc::bind(socket, (&raw const address).cast(), size) }.into())?;
    // SAFETY: plain integers.
    check(unsafe { libc::listen(socket, 128) }.into())?;
    // SAFETY: plain integers; the number stays open through exec.
    check(unsafe { libc::dup2(socket, LISTENER) }.into())?;
    Ok(())
}

/// The lines for the id maps of a user namespace; none where the right to mount is there already.
pub(super) fn id_maps() -> Option<[Vec<u8>; 2]> {
    if super::rights::may_administer() {
        return None;
    }
    let line = |id: u32| format!("{id} {id} 1\n").into_bytes();
    Some([line(rustix::process::geteuid().as_raw()), line(rustix::process::getegid().as_raw())])
}

pub(super) fn map_ids(maps: Option<&[Vec<u8>; 2]>) -> io::Result<()> {
    let Some([users, groups]) = maps else { return Ok(()) };
    write_once(c"/proc/self/setgroups", b"deny")?;
    write_once(c"/proc/self/uid_map", users)?;
    write_once(c"/proc/self/gid_map", groups)
}

/// Makes the command's child a house, before it runs a program that has nothing to do but to be there.
pub(crate) fn prepare_house(command: &mut tokio::process::Command, mut plan: HousePlan) {
    let parent = std::process::id();
    let child = move || {
        rustix::process::setsid()?;
        plan.carry_out()?;
        die_with(parent)
    };
    // SAFETY: the closure runs in the child of a fork. It only makes system calls on memory that was prepared before
    // the fork, allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(child);
    }
}

/// What is held open of a house.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opens {
    own_network: bool,
    listens: bool,
}

/// Namespaces, held open.
#[derive(Debug)]
pub(crate) struct House {
    user: Option<OwnedFd>,
    network: Option<OwnedFd>,
    mounts: OwnedFd,
}

impl House {
    /// The house that a living child has made, and the socket on which commands find a proxy. Errors: it is gone.
    pub(crate) fn of(child: u32, opens: Opens) -> io::Result<(Self, Option<OwnedFd>)> {
        let open = |name: &str| File::open(format!("/proc/{child}/ns/{name}")).map(OwnedFd::from);
        let house = Self {
            user: id_maps().map(|_| open("user")).transpose()?,
            network: opens.own_network.then(|| open("net")).transpose()?,
            mounts: open("mnt")?,
        };
        let listener = if opens.listens {
            let gone = || io::Error::from_raw_os_error(libc::ESRCH);
            let pid = i32::try_from(child).ok().and_then(Pid::from_raw).ok_or_else(gone)?;
            let child = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
            Some(rustix::process::pidfd_getfd(child, LISTENER, PidfdGetfdFlags::empty())?)
        } else {
            None
        };
        Ok((house, listener))
    }

    /// In a child: enters all of it.
    pub(super) fn enter(&self) -> io::Result<()> {
        let join = |fd: BorrowedFd<'_>, kind: c_int| {
            // SAFETY: an open file descriptor and a plain integer.
            check(unsafe { libc::setns(fd.as_raw_fd(), kind) }.into()).map(drop)
        };
        use std::os::fd::AsFd;
        if let Some(user) = &self.user {
            join(user.as_fd(), libc::CLONE_NEWUSER)?;
        }
        if let Some(network) = &self.network {
            join(network.as_fd(), libc::CLONE_NEWNET)?;
        }
        join(self.mounts.as_fd(), libc::CLONE_NEWNS)
    }
}
