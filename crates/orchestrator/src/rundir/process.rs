//! Whether a process that a file names still lives.

use rustix::process::{Pid, test_kill_process};

/// The kernel's id of this boot; empty where it tells none.
pub fn boot_id() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// Whether that process is surely gone: of another boot, or not there. A new process may have taken its number: then
/// this says `false`.
pub fn is_gone(pid: u32, boot: &str) -> bool {
    let here = boot_id();
    if !boot.is_empty() && !here.is_empty() && boot != here {
        return true;
    }
    match i32::try_from(pid).ok().and_then(Pid::from_raw) {
        Some(pid) => test_kill_process(pid) == Err(rustix::io::Errno::SRCH),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_one_of_another_boot_does_not() {
        let me = std::process::id();
        assert!(!is_gone(me, &boot_id()));
        assert!(!is_gone(me, ""));
        assert!(is_gone(0, ""));
        assert_eq!(is_gone(me, "another"), !boot_id().is_empty());
    }
}
