//! Who is on the other end of a socket: the user, or root; and no agent of the run itself.

use std::io;
use tokio::net::UnixStream;

/// Parents that are looked at.
const MOST_PARENTS: u32 = 128;

/// What a peer may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    /// Everything.
    User,
    /// Look: it is a process that the run itself started, such as an agent's command.
    Inside,
    /// Nothing.
    Stranger,
}

/// Looks at the other end.
pub(super) fn of(stream: &UnixStream) -> io::Result<Peer> {
    let peer = stream.peer_cred()?;
    let me = rustix::process::geteuid().as_raw();
    if peer.uid() != me && peer.uid() != 0 {
        return Ok(Peer::Stranger);
    }
    let is_inside = peer.pid().and_then(|pid| u32::try_from(pid).ok()).is_some_and(is_inside);
    Ok(if is_inside { Peer::Inside } else { Peer::User })
}

/// Whether this process is among its parents. What left its group is a child of this process all the same: orphans come
/// here.
fn is_inside(pid: u32) -> bool {
    let me = std::process::id();
    let mut at = pid;
    for _ in 0..MOST_PARENTS {
        match parent(at) {
            Some(parent) if parent == me => return true,
            Some(parent) if parent > 1 => at = parent,
            Some(_) | None => return false,
        }
    }
    false
}

fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything, and ends with the last parenthesis.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_not_its_own_child_and_its_parent_is_not_either() {
        let me = std::process::id();
        assert!(!is_inside(me));
        assert!(parent(me).is_some_and(|parent| !is_inside(parent)));
        assert!(!is_inside(0));
    }
}
