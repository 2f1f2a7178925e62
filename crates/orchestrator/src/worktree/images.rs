//! What stands at a path of the workspace: looked at from the open top folder, part by part, through no symlink.

use claw_kernel::digest::Digest;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// A path or a target in a JSON document: text where it is that, else its bytes in hex digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum RawName {
    Text(String),
    Bytes { hex: String },
}

impl RawName {
    pub(super) fn of(name: &OsStr) -> Self {
        match name.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes { hex: name.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect() },
        }
    }

    pub(super) fn name(&self) -> PathBuf {
        match self {
            Self::Text(text) => PathBuf::from(text),
            Self::Bytes { hex } => {
                let pair = |at: usize| hex.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
                PathBuf::from(OsString::from_vec((0..hex.len()).step_by(2).filter_map(pair).collect()))
            }
        }
    }
}

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Image {
    /// Nothing, or what should be a folder on the way is none.
    Absent,
    /// A file.
    File {
        /// Permission bits.
        mode: u32,
        /// Of its bytes.
        sha256: Digest,
    },
    /// A symlink.
    Link {
        /// Where it leads.
        target: RawName,
    },
    /// A folder, or something else.
    Other,
}

impl Image {
    /// Whether git would call it the same: of the permissions it knows only whether a file is a program.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { mode, sha256 }, Self::File { mode: others, sha256: digest }) => {
                sha256 == digest && (mode & 0o100) == (others & 0o100)
            }
            _ => self == other,
        }
    }
}

/// A path that names something below a folder and no part of git's own or claw's.
pub(super) fn is_plain(path: &Path) -> bool {
    let own = |part: &OsStr| part.eq_ignore_ascii_case(".git");
    !path.as_os_str().is_empty()
        && path.components().all(|part| matches!(part, Component::Normal(part) if !own(part)))
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens the top.
pub(super) fn open_top(top: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(top, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// The folder that holds a path; `None` where it is not there. `make`: it is made.
pub(super) fn folder_of(top: BorrowedFd<'_>, path: &Path, make: bool) -> io::Result<Option<OwnedFd>> {
    let mut at = rustix::io::fcntl_dupfd_cloexec(top, 3)?;
    for part in path.parent().unwrap_or(Path::new("")) {
        at = match rustix::fs::openat(&at, part, FOLDER, Mode::empty()) {
            Ok(next) => next,
            Err(Errno::NOENT) if make => {
                rustix::fs::mkdirat(&at, part, Mode::from_raw_mode(0o777))?;
                rustix::fs::openat(&at, part, FOLDER, Mode::empty())?
            }
            // A symlink or a file stands there.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if !make => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
    }
    Ok(Some(at))
}

/// What stands there, and the bytes of a file.
pub(super) fn look(top: BorrowedFd<'_>, path: &Path) -> io::Result<(Image, Vec<u8>)> {
    let (Some(folder), Some(name)) = (folder_of(top, path, false)?, path.file_name()) else {
        return Ok((Image::Absent, Vec::new()));
    };
    look_in(folder.as_fd(), name)
}

pub(super) fn look_in(folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<(Image, Vec<u8>)> {
    let stat = match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok((Image::Absent, Vec::new())),
        Err(errno) => return Err(errno.into()),
    };
    match FileType::from_raw_mode(stat.st_mode as RawMode) {
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(folder, name, Vec::new())?;
            let target = RawName::of(&OsString::from_vec(target.into_bytes()));
            Ok((Image::Link { target }, Vec::new()))
        }
        FileType::RegularFile => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let mut file = File::from(rustix::fs::openat(folder, name, flags, Mode::empty())?);
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            let mode = stat.st_mode & 0o7777;
            Ok((Image::File { mode, sha256: Digest::of(&bytes) }, bytes))
        }
        _ => Ok((Image::Other, Vec::new())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_goes_through_a_document() {
        for name in [b"plain".as_slice(), b"line\nend", b"\xff\xfe/x"] {
            let raw = RawName::of(OsStr::from_bytes(name));
            let text = serde_json::to_string(&raw).unwrap();
            let back: RawName = serde_json::from_str(&text).unwrap();
            assert_eq!(back.name().as_os_str().as_bytes(), name);
        }
    }

    #[test]
    fn paths_that_leave_the_folder_or_reach_git_are_not_plain() {
        assert!(is_plain(Path::new("a/b c")));
        for path in ["", "/a", "../a", "a/../b", ".git/config", "a/.GIT/hooks/x"] {
            assert!(!is_plain(Path::new(path)), "{path}");
        }
    }
}
