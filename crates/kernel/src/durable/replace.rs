//! Atomic replace: a reader sees the old file or the new one. Leaves no temporary file behind a kill wherever the
//! file system knows unnamed files (`O_TMPFILE`).

use rustix::fs::{AtFlags, CWD, OFlags};
use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Permission bits of the new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Those of the file that was there; a new file gets what the umask leaves.
    Keep,
    /// 0600.
    Private,
}

/// Whether the bytes must have reached the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Before the rename, and the folder after it.
    Yes,
    /// The system's own time.
    No,
}

/// Bytes of a file's name that the name beside it keeps.
const MOST_KEPT: usize = 80;

/// Writes a file beside `path` and renames it over it. The folder must exist. Symlinks at `path` are replaced: resolve
/// them first where the target is meant.
pub fn replace(path: &Path, bytes: &[u8], mode: Mode, sync: Sync) -> io::Result<()> {
    let folder = folder_of(path);
    match mode {
        // State of ours, written often: a name beside it is the cheapest. A kill in between leaves a `.tmp` in a folder
        // that is ours alone.
        Mode::Private => through_name(path, bytes, 0o600, None, sync)?,
        Mode::Keep => {
            let kept = path.metadata().ok().map(|meta| meta.permissions());
            match unnamed(folder) {
                Ok(mut file) => {
                    fill(&mut file, bytes, kept, sync)?;
                    name(&file, path)?;
                }
                Err(_) => through_name(path, bytes, 0o666, kept, sync)?,
            }
        }
    }
    if sync == Sync::Yes {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Writes a new private file at its final name: for what nobody looks for before he is told of it. Fails where it exists.
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    File::options().write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)
}

fn through_name(
    path: &Path,
    bytes: &[u8],
    mode: u32,
    kept: Option<Permissions>,
    sync: Sync,
) -> io::Result<()> {
    let beside = beside(path);
    let mut file = File::options().write(true).create_new(true).mode(mode).open(&beside)?;
    if let Err(error) = fill(&mut file, bytes, kept, sync) {
        let _ = std::fs::remove_file(&beside);
        return Err(error);
    }
    rename_or_remove(&beside, path)
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    }
}

fn unnamed(folder: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(folder, flags, rustix::fs::Mode::from_raw_mode(0o666))?;
    Ok(File::from(file))
}

/// A new file takes its place in one call; one that replaces another needs two.
fn name(file: &File, path: &Path) -> io::Result<()> {
    let source = format!("/proc/self/fd/{}", file.as_raw_fd());
    let link = |to: &Path| rustix::fs::linkat(CWD, source.as_str(), CWD, to, AtFlags::SYMLINK_FOLLOW);
    match link(path) {
        Err(rustix::io::Errno::EXIST) => {}
        done => return Ok(done?),
    }
    let beside = beside(path);
    link(&beside)?;
    rename_or_remove(&beside, path)
}

fn fill(file: &mut File, bytes: &[u8], kept: Option<Permissions>, sync: Sync) -> io::Result<()> {
    if let Some(permissions) = kept {
        file.set_permissions(permissions)?;
    }
    file.write_all(bytes)?;
    if sync == Sync::Yes {
        file.sync_data()?;
    }
    Ok(())
}

/// A name beside a file that nothing else has.
fn beside(path: &Path) -> PathBuf {
    let mut beside = folder_of(path).to_owned();
    let name = path.file_name().map(OsStr::to_string_lossy).unwrap_or_default();
    let short = &name[..name.floor_char_boundary(MOST_KEPT.min(name.len()))];
    beside.push(format!(".{short}.{:012x}.tmp", fastrand::u64(..) >> 16));
    beside
}

#[expect(clippy::disallowed_methods, reason = "this is the room that owns rename")]
fn rename_or_remove(beside: &Path, path: &Path) -> io::Result<()> {
    std::fs::rename(beside, path).inspect_err(|_| {
        let _ = std::fs::remove_file(beside);
    })
}

/// Makes a folder and all above it; those that are made are 0700.
pub fn private_dir(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Makes an empty private file for a stream that is written as it comes. Fails where it exists.
pub fn create_stream(path: &Path) -> io::Result<File> {
    File::options().append(true).create_new(true).mode(0o600).open(path)
}

/// Writes over the content of a file that cannot be replaced (a folder without write permission, a hard link). Not
/// atomic: say so where it is used.
pub fn append_in_place(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::options().write(true).open(path)?;
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)?;
    file.sync_data()
}

/// Cuts a file.
pub fn truncate(path: &Path, length: u64) -> io::Result<()> {
    let file = File::options().write(true).open(path)?;
    file.set_len(length)?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_new_file_has_the_mode_of_the_old_one_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("script");
        replace(&path, b"one", Mode::Keep, Sync::No).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        replace(&path, b"two", Mode::Keep, Sync::Yes).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        replace(&path, b"three", Mode::Private, Sync::No).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    }
}
