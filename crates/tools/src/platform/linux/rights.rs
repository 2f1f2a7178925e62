//! What root's children in the sandbox give up: they keep what a build or an installer needs with the user's own files,
//! and lose what reaches round the wall (other processes' memory and environment, file handles, raw sockets, modules).

use super::child::check;
use std::io;
use std::sync::LazyLock;

const CHOWN: u32 = 0;
const DAC_OVERRIDE: u32 = 1;
const FOWNER: u32 = 3;
const FSETID: u32 = 4;
const KILL: u32 = 5;
const SETGID: u32 = 6;
const SETUID: u32 = 7;
const KEPT: u32 =
    1 << CHOWN | 1 << DAC_OVERRIDE | 1 << FOWNER | 1 << FSETID | 1 << KILL | 1 << SETGID | 1 << SETUID;
/// No kernel knows as many.
const MOST: u32 = 64;
const VERSION_3: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Rights {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Only system calls: it runs between fork and exec. The bounding set goes first, that needs one of those rights; a
/// program that root executes gets what is left in it.
pub(super) fn give_up() -> io::Result<()> {
    for right in (0..MOST).filter(|right| *right >= u32::BITS || KEPT & (1 << right) == 0) {
        // SAFETY: plain integers.
        match check(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(right), 0, 0, 0) }.into())
        {
            Ok(_) => {}
            // The kernel has no such right, nor one with a higher number.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => break,
            // A container that took away the right to give up rights took the others as well, or nothing holds here.
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => break,
            Err(error) => return Err(error),
        }
    }
    set()
}

/// Whether this process may make namespaces without a user namespace.
pub(super) fn may_administer() -> bool {
    const SYS_ADMIN: u32 = 21;
    static MAY: LazyLock<bool> =
        LazyLock::new(|| get().is_ok_and(|rights| rights[0].effective & (1 << SYS_ADMIN) != 0));
    *MAY
}

/// Whether namespaces need a user namespace around them.
pub(crate) fn needs_user_namespace() -> bool {
    !may_administer()
}

fn get() -> io::Result<[Rights; 2]> {
    let header = Header { version: VERSION_3, pid: 0 };
    let mut rights = [Rights { effective: 0, permitted: 0, inheritable: 0 }; 2];
    // SAFETY: the header and both halves live through the call and have the layout of version 3.
    check(unsafe { libc::syscall(libc::SYS_capget, &raw const header, &raw mut rights) })?;
    Ok(rights)
}

/// Never more than there is: root in a container may have less than what is kept.
fn set() -> io::Result<()> {
    let header = Header { version: VERSION_3, pid: 0 };
    let none = Rights { effective: 0, permitted: 0, inheritable: 0 };
    let rights = get()?;
    let kept = KEPT & rights[0].permitted;
    let rights = [Rights { effective: kept, permitted: kept, inheritable: 0 }, none];
    // SAFETY: as above; the kernel reads only.
    check(unsafe { libc::syscall(libc::SYS_capset, &raw const header, &raw const rights) })?;
    Ok(())
}
