//! What is at a path, found out without opening it: pipes, devices and sockets are named, never opened.

use crate::error::ToolError;
use crate::platform::open_resolved;
use rustix::fs::OFlags;
use std::fs::{File, FileType, Metadata};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Opens a regular file for reading (resolved path). Anything else is refused by name before it is opened, and again after it, in case
/// it was exchanged in between.
pub fn open_regular(path: &Path) -> Result<(File, Metadata), ToolError> {
    let failed = |source: io::Error| ToolError::Io { path: path.to_owned(), source };
    if is_of_a_process(path) {
        return Err(ToolError::Refused(format!(
            "{} belongs to a running process and is not read",
            path.display()
        )));
    }
    let meta = std::fs::metadata(path).map_err(failed)?;
    must_be_regular(path, meta.file_type())?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(open_resolved(path, flags).map_err(|errno| failed(errno.into()))?);
    let meta = file.metadata().map_err(failed)?;
    must_be_regular(path, meta.file_type())?;
    Ok((file, meta))
}

/// `/proc/<pid>/…`: environments and memory, this process's own among them.
pub fn is_of_a_process(resolved: &Path) -> bool {
    let Ok(below) = resolved.strip_prefix("/proc") else { return false };
    let first = below.components().next().map(|part| part.as_os_str().to_string_lossy().into_owned());
    first.is_some_and(|name| {
        name == "self" || name == "thread-self" || name.bytes().all(|b| b.is_ascii_digit())
    })
}

fn must_be_regular(path: &Path, kind: FileType) -> Result<(), ToolError> {
    if kind.is_file() {
        return Ok(());
    }
    let advice = if kind.is_dir() { "; list it with glob_search" } else { "; only regular files are read" };
    Err(ToolError::Refused(format!("{} is {}{advice}", path.display(), name_of(kind))))
}

fn name_of(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a named pipe (FIFO)"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_char_device() {
        "a character device"
    } else if kind.is_block_device() {
        "a block device"
    } else {
        "no regular file"
    }
}
