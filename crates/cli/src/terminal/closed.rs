//! Whether standard output was closed when the process began. Later nobody can tell: before `main` the standard library
//! opens a null device in the place of a closed stream.
//!
//! The only room of this crate that runs before `main`.

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Standard output was closed when the process began.
pub fn stdout_is_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

#[cfg(target_os = "linux")]
mod first {
    use super::CLOSED;
    use std::os::fd::BorrowedFd;
    use std::sync::atomic::Ordering;

    /// The loader calls what stands in this section before `main`.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static LOOK: extern "C" fn() = look;

    /// One system call, no memory, nothing of the standard library that wants to be set up.
    extern "C" fn look() {
        // SAFETY: the number is asked about and nothing else; that it may name no open file is the question.
        let stdout = unsafe { BorrowedFd::borrow_raw(1) };
        if rustix::io::fcntl_getfd(stdout) == Err(rustix::io::Errno::BADF) {
            CLOSED.store(true, Ordering::Relaxed);
        }
    }
}
