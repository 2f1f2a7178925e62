//! Landlock in the room of a command: the rules are made in the child, where its mounts are.

use super::child::{c_path, check};
use super::wall::abi;
use landlock::{ABI, Access, AccessFs, Scope};
use std::ffi::{CString, c_int};
use std::io;
use std::path::PathBuf;

const RULE_PATH_BENEATH: u32 = 1;

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Handled {
    files: u64,
    network: u64,
    scopes: u64,
}

#[repr(C, packed)]
struct Below {
    rights: u64,
    parent: c_int,
}

/// Where a command may write.
#[derive(Debug)]
pub(crate) struct Beneath {
    handled: Handled,
    paths: Vec<(CString, u64)>,
}

impl Beneath {
    /// Folders and files as they are seen in the room. None: the kernel has no Landlock.
    pub(crate) fn new(writable: &[PathBuf]) -> Option<Self> {
        let known = match abi() {
            ..1 => return None,
            1 => ABI::V1,
            2 => ABI::V2,
            3 => ABI::V3,
            4 => ABI::V4,
            5 => ABI::V5,
            _ => ABI::V6,
        };
        let writes = AccessFs::from_write(known);
        // A device made by root would be a way round every rule.
        let given = writes & !(AccessFs::MakeBlock | AccessFs::MakeChar);
        let file = writes & AccessFs::from_file(known);
        let rights = |path: &PathBuf| if path.is_file() { file.bits() } else { given.bits() };
        let paths = writable.iter().filter_map(|path| Some((c_path(path)?, rights(path))));
        let devices = (c"/dev".to_owned(), given.bits());
        Some(Self {
            handled: Handled { files: writes.bits(), network: 0, scopes: Scope::from_all(known).bits() },
            paths: paths.chain([devices]).collect(),
        })
    }

    /// In the child, after it cannot gain privileges any more: system calls only.
    pub(super) fn restrict(&self) -> io::Result<()> {
        let size = if self.handled.scopes == 0 { 8usize } else { size_of::<Handled>() };
        // SAFETY: the structure lives through the call and its size is given; an older kernel gets the part it knows.
        let rules = check(unsafe {
            libc::syscall(libc::SYS_landlock_create_ruleset, &raw const self.handled, size, 0)
        })?;
        for (path, rights) in &self.paths {
            let flags = libc::O_PATH | libc::O_CLOEXEC;
            // SAFETY: a C string that lives through the call.
            let parent = unsafe { libc::open(path.as_ptr(), flags) };
            if parent < 0 {
                // Not there: it gets no right.
                continue;
            }
            let rule = Below { rights: *rights, parent };
            // SAFETY: the structure has the layout of the kernel's and lives through the call.
            check(unsafe {
                libc::syscall(libc::SYS_landlock_add_rule, rules, RULE_PATH_BENEATH, &raw const rule, 0)
            })?;
            // SAFETY: a file descriptor that nobody else uses.
            unsafe { libc::close(parent) };
        }
        // SAFETY: an open file descriptor and a plain integer.
        check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules, 0) })?;
        Ok(())
    }
}
