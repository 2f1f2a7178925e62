//! Writing a file for an agent: entirely old or entirely new, with its mode, through a symlink to its target.
//!
//! Hard links: the file gets a new inode, so other names of it keep the old content, and the result says so; this way a
//! name inside the workspace never changes a file outside. A folder that may not be written but whose file may: the
//! file is written in place, which is not atomic, and the result says so.

use crate::error::ToolError;
use claw_kernel::durable::{self, Mode, Sync};
use rustix::fs::Access;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What was special about a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// Other names that keep the old content.
    pub other_names: u64,
    /// Written in place, not atomically.
    pub in_place: bool,
}

impl Stored {
    /// For the model; empty where nothing was special.
    pub fn note(&self) -> String {
        let mut note = String::new();
        if self.other_names > 0 {
            note.push_str(&format!(
                "\nnote: {} other hard link(s) to it keep the old content",
                self.other_names
            ));
        }
        if self.in_place {
            note.push_str("\nnote: its folder is not writable, so it was written in place");
        }
        note
    }
}

/// Writes a resolved path. Parent folders are made.
pub fn store(path: &Path, bytes: &[u8]) -> Result<Stored, ToolError> {
    let failed = |source: io::Error| ToolError::Io { path: path.to_owned(), source };
    let before = match std::fs::metadata(path) {
        Ok(meta) => Some(meta),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    match &before {
        None => {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder).map_err(failed)?;
            }
        }
        // A rename would pass over the mode of the file itself.
        Some(_) => rustix::fs::access(path, Access::WRITE_OK).map_err(|errno| failed(errno.into()))?,
    }
    let other_names = before.as_ref().map_or(0, |meta| meta.nlink().saturating_sub(1));
    match durable::replace(path, bytes, Mode::Keep, Sync::No) {
        Ok(()) => Ok(Stored { other_names, in_place: false }),
        Err(error) if before.is_some() && error.kind() == io::ErrorKind::PermissionDenied => {
            durable::append_in_place(path, bytes).map_err(failed)?;
            Ok(Stored { other_names: 0, in_place: true })
        }
        Err(error) => Err(failed(error)),
    }
}
