//! What the running system gives to a sandbox: found out once for each process.

use crate::process::try_rooms;
use std::io;
use std::path::Path;
use std::sync::LazyLock;

/// Why the full sandbox is not there; none: it is.
pub(super) fn lacks_rooms() -> Option<&'static str> {
    static LACKS: LazyLock<Option<String>> = LazyLock::new(|| try_rooms().err().map(|error| reason(&error)));
    LACKS.as_deref()
}

fn reason(error: &io::Error) -> String {
    let advice = match error.raw_os_error() {
        Some(libc_code) if libc_code == rustix::io::Errno::NOSPC.raw_os_error() => {
            "; /proc/sys/user/max_*_namespaces is 0 or used up"
        }
        Some(_) if in_container() => {
            "; give the container user namespaces or CAP_SYS_ADMIN for the full sandbox"
        }
        Some(_) | None => {
            "; this user may make no namespaces (see kernel.unprivileged_userns_clone, AppArmor)"
        }
    };
    format!("no namespaces: {error}{advice}")
}

/// Whether this process lives in a container, as far as it can be seen.
pub fn in_container() -> bool {
    static IS: LazyLock<bool> = LazyLock::new(|| {
        let marked = ["/.dockerenv", "/run/.containerenv"].iter().any(|path| Path::new(path).exists());
        let groups = || std::fs::read_to_string("/proc/1/cgroup").unwrap_or_default();
        marked || ["docker", "kubepods", "containerd", "/lxc/"].iter().any(|word| groups().contains(word))
    });
    *IS
}
