//! The system calls that would reach round "no TCP": a filter beside Landlock, which knows nothing of the other kinds of
//! streams (MPTCP, SMC, SCTP, machine sockets), of raw packets, of data sent before a connection, and of rings.
//!
//! It looks at `socket`, the sending calls and `io_uring_setup` only; every other call is let through by the kernel
//! without running it.

use super::child::check;
use libc::{c_long, sock_filter, sock_fprog};
use std::collections::HashMap;
use std::io;
use std::sync::LazyLock;

#[cfg(target_arch = "x86_64")]
const ARCH: Option<u32> = Some(0xC000_003E);
#[cfg(target_arch = "aarch64")]
const ARCH: Option<u32> = Some(0xC000_00B7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCH: Option<u32> = None;

/// Numbers from here on are those of the 32-bit pointers on x86-64.
const X32: u32 = 0x4000_0000;
const AT_NUMBER: u32 = 0;
const AT_ARCH: u32 = 4;
const SECCOMP_GET_ACTION_AVAIL: u32 = 2;

const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const IF_EQUAL: u16 = 0x15;
const IF_AT_LEAST: u16 = 0x35;
const IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

/// The filter; none where it is not known for this kind of machine, or the kernel has none.
pub(crate) fn filter() -> Option<&'static [sock_filter]> {
    static FILTER: LazyLock<Option<Vec<sock_filter>>> =
        LazyLock::new(|| is_available().then(|| program(ARCH?)).flatten());
    FILTER.as_deref()
}

fn is_available() -> bool {
    let action = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the kernel reads one number that lives through the call.
    unsafe { libc::syscall(libc::SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &raw const action) == 0 }
}

/// Between fork and exec, after no new privileges are possible: system calls only.
pub(super) fn hold(filter: &[sock_filter]) -> io::Result<()> {
    let program =
        sock_fprog { len: u16::try_from(filter.len()).unwrap_or(0), filter: filter.as_ptr().cast_mut() };
    // SAFETY: the program lives through the call, the kernel copies it and writes nothing.
    check(
        unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program, 0, 0) }
            .into(),
    )?;
    Ok(())
}

fn argument(index: u32) -> u32 {
    // The lower half; both kinds of machines have it first.
    16 + 8 * index
}

fn program(arch: u32) -> Option<Vec<sock_filter>> {
    let mut lines = Lines::default();
    lines.add(LOAD, AT_ARCH);
    lines.go_if(IF_EQUAL, arch, "native");
    lines.refuse(libc::ENOSYS);
    lines.label("native");
    lines.add(LOAD, AT_NUMBER);
    lines.go_if(IF_AT_LEAST, X32, "unknown");
    for (call, label) in [
        (libc::SYS_io_uring_setup, "unknown"),
        (libc::SYS_sendto, "send 3"),
        (libc::SYS_sendmmsg, "send 3"),
        (libc::SYS_sendmsg, "send 2"),
        (libc::SYS_socket, "socket"),
    ] {
        lines.go_if(IF_EQUAL, number(call)?, label);
    }
    lines.add(RETURN, libc::SECCOMP_RET_ALLOW);
    lines.label("unknown");
    lines.refuse(libc::ENOSYS);
    sending(&mut lines);
    sockets(&mut lines)?;
    lines.assemble()
}

/// Data that goes with the first packet: a connection without `connect`.
fn sending(lines: &mut Lines) {
    lines.label("send 3");
    lines.add(LOAD, argument(3));
    lines.go("flags");
    lines.label("send 2");
    lines.add(LOAD, argument(2));
    lines.label("flags");
    lines.go_if(IF_ANY_BIT, libc::MSG_FASTOPEN.cast_unsigned(), "early");
    lines.add(RETURN, libc::SECCOMP_RET_ALLOW);
    lines.label("early");
    lines.refuse(libc::EOPNOTSUPP);
}

fn sockets(lines: &mut Lines) -> Option<()> {
    lines.label("socket");
    lines.add(LOAD, argument(0));
    for (family, label) in [
        (libc::AF_UNIX, "fine"),
        (libc::AF_NETLINK, "fine"),
        (libc::AF_INET, "internet"),
        (libc::AF_INET6, "internet"),
    ] {
        lines.go_if(IF_EQUAL, number(family.into())?, label);
    }
    lines.refuse(libc::EAFNOSUPPORT);
    lines.label("internet");
    lines.add(LOAD, argument(1));
    lines.add(AND, 0xF);
    lines.go_if(IF_EQUAL, number(libc::SOCK_STREAM.into())?, "stream");
    lines.go_if(IF_EQUAL, number(libc::SOCK_DGRAM.into())?, "datagram");
    lines.refuse(libc::EPERM);
    for (label, protocol) in [("stream", libc::IPPROTO_TCP), ("datagram", libc::IPPROTO_UDP)] {
        lines.label(label);
        lines.add(LOAD, argument(2));
        lines.go_if(IF_EQUAL, 0, "fine");
        lines.go_if(IF_EQUAL, number(protocol.into())?, "fine");
        lines.refuse(libc::EPROTONOSUPPORT);
    }
    lines.label("fine");
    lines.add(RETURN, libc::SECCOMP_RET_ALLOW);
    Some(())
}

fn number(call: c_long) -> Option<u32> {
    u32::try_from(call).ok()
}

/// Instructions whose jumps name labels further down.
#[derive(Default)]
struct Lines {
    lines: Vec<(u16, u32, Option<&'static str>)>,
    labels: HashMap<&'static str, usize>,
}

impl Lines {
    fn add(&mut self, code: u16, value: u32) {
        self.lines.push((code, value, None));
    }

    fn refuse(&mut self, errno: i32) {
        self.add(RETURN, libc::SECCOMP_RET_ERRNO | errno.cast_unsigned());
    }

    fn go(&mut self, to: &'static str) {
        self.lines.push((JUMP, 0, Some(to)));
    }

    fn go_if(&mut self, code: u16, value: u32, to: &'static str) {
        self.lines.push((code, value, Some(to)));
    }

    fn label(&mut self, label: &'static str) {
        self.labels.insert(label, self.lines.len());
    }

    /// None: a label is missing or too far away, which the test of this file would see.
    fn assemble(&self) -> Option<Vec<sock_filter>> {
        let line = |(at, (code, value, to)): (usize, &(u16, u32, Option<&'static str>))| {
            let far = match to {
                None => 0,
                Some(label) => self.labels.get(label)?.checked_sub(at + 1)?,
            };
            Some(match *code {
                JUMP => sock_filter { code: JUMP, jt: 0, jf: 0, k: u32::try_from(far).ok()? },
                code => sock_filter { code, jt: u8::try_from(far).ok()?, jf: 0, k: *value },
            })
        };
        self.lines.iter().enumerate().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_can_be_assembled() {
        let all = program(1).unwrap();
        assert!(all.iter().filter(|line| line.code == RETURN).count() > 8);
        assert_eq!(all.last().map(|line| line.k), Some(libc::SECCOMP_RET_ALLOW));
        assert_eq!(ARCH.is_some(), cfg!(any(target_arch = "x86_64", target_arch = "aarch64")));
    }
}
