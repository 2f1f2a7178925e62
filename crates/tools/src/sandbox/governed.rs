//! What governs, before and after a command: what exists is pinned, what does not is moved out if it appeared.
//!
//! After a command nothing is reached through a symlink: each path is walked from a folder that was opened before the
//! command, part by part, and a symlink that stands where a folder should be is itself what is moved out.

use crate::files::paths;
use crate::files::remove::remove;
use crate::platform::open_resolved;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode, Stat};
use rustix::io::Errno;
use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Names below a `.claw` that a command made which govern; others there are claw's own state.
const GOVERNING_STATE: [&str; 8] =
    ["settings.json", "settings.local.json", "agents", "skills", "plugins", "commands", "hooks", "mcp.json"];
/// What chooses the settings of a git folder.
pub(super) const GOVERNING_GIT: [&str; 4] = ["config", "config.worktree", "commondir", "hooks"];
/// Bytes of a `.git` that is a file.
const MOST_GIT_FILE: u64 = 4096;

#[derive(Debug, PartialEq, Eq)]
enum Before {
    Absent,
    Link(PathBuf),
    File(Vec<u8>),
}

/// A folder that commands write, held open.
#[derive(Debug)]
struct Root {
    path: PathBuf,
    folder: OwnedFd,
}

#[derive(Debug)]
struct Watched {
    root: usize,
    below: PathBuf,
    before: Before,
}

/// What governs, as it was before a command.
#[derive(Debug, Default)]
pub(crate) struct Governed {
    roots: Vec<Root>,
    pins: Vec<(PathBuf, bool)>,
    watched: Vec<Watched>,
}

impl Governed {
    /// `writable`: what commands write, resolved, the workspace first. What lies elsewhere they do not reach.
    pub(super) fn look(writable: &[PathBuf], governing: &[PathBuf]) -> Self {
        let open = |path: &PathBuf| {
            let folder = open_resolved(path, OFlags::RDONLY | OFlags::DIRECTORY).ok()?;
            Some(Root { path: path.clone(), folder })
        };
        let mut seen = Self { roots: writable.iter().filter_map(open).collect(), ..Self::default() };
        if let Some(workspace) = writable.first() {
            seen.git(&workspace.join(".git"));
        }
        for path in governing {
            seen.add(path);
        }
        seen
    }

    /// `.git` itself: a folder is pinned by what governs in it.
    fn git(&mut self, path: &Path) {
        match path.symlink_metadata() {
            Err(_) => self.watch(path, Before::Absent),
            Ok(meta) if meta.is_symlink() => self.link(path),
            Ok(meta) if meta.is_file() && meta.len() <= MOST_GIT_FILE => {
                let Ok(bytes) = fs::read(path) else { return };
                let target = bytes.strip_prefix(b"gitdir: ").map(<[u8]>::trim_ascii).map(OsStr::from_bytes);
                let target = target.zip(path.parent()).map(|(to, at)| paths::resolve(&at.join(to)));
                self.pin(path, true);
                self.watch(path, Before::File(bytes));
                for name in GOVERNING_GIT {
                    target.iter().for_each(|target| self.add(&target.join(name)));
                }
            }
            Ok(_) => {}
        }
    }

    fn add(&mut self, path: &Path) {
        let Some((_, root, below)) = self.root_of(path) else { return };
        let mut at = root.to_owned();
        let parents = below.parent().unwrap_or(Path::new("")).to_owned();
        for part in &parents {
            at.push(part);
            match at.symlink_metadata() {
                Err(_) => return self.watch(path, Before::Absent),
                Ok(meta) if meta.is_symlink() => {
                    self.link(&at);
                    return self.add_resolved(path);
                }
                Ok(meta) if meta.is_dir() => self.pin(&at, false),
                Ok(_) => return,
            }
        }
        match path.symlink_metadata() {
            Err(_) => self.watch(path, Before::Absent),
            Ok(meta) if meta.is_symlink() => {
                self.link(path);
                self.add_resolved(path);
            }
            Ok(_) => self.pin(path, true),
        }
    }

    fn add_resolved(&mut self, path: &Path) {
        let real = paths::resolve(path);
        // A loop of symlinks leads nowhere.
        if real != path && real.symlink_metadata().is_ok_and(|meta| meta.is_symlink()) {
            return;
        }
        self.add(&real);
    }

    fn link(&mut self, path: &Path) {
        if let Ok(target) = fs::read_link(path) {
            self.watch(path, Before::Link(target));
        }
    }

    fn root_of(&self, path: &Path) -> Option<(usize, &Path, PathBuf)> {
        self.roots.iter().enumerate().find_map(|(at, root)| {
            let below = path.strip_prefix(&root.path).ok()?;
            (!below.as_os_str().is_empty()).then(|| (at, root.path.as_path(), below.to_owned()))
        })
    }

    fn watch(&mut self, path: &Path, before: Before) {
        let Some((root, _, below)) = self.root_of(path) else { return };
        if !self.watched.iter().any(|old| old.root == root && old.below == below) {
            self.watched.push(Watched { root, below, before });
        }
    }

    fn pin(&mut self, path: &Path, read_only: bool) {
        match self.pins.iter_mut().find(|(pinned, _)| pinned == path) {
            Some((_, held)) => *held |= read_only,
            None => self.pins.push((path.to_owned(), read_only)),
        }
    }

    /// Paths that exist and become mounts, folders before what is in them, and whether read-only.
    pub(crate) fn pins(&self) -> impl Iterator<Item = (&Path, bool)> {
        self.pins.iter().map(|(path, read_only)| (path.as_path(), *read_only))
    }

    /// Whether something is not as it was: then `put_aside` has work to do.
    pub(crate) fn is_disturbed(&self) -> bool {
        self.watched.iter().any(|watched| !self.found(watched).is_empty())
    }

    /// Moves what appeared into `aside` (resolved before the command) and restores what was replaced; gives the paths.
    /// To be called when nothing of the command lives any more. Blocks.
    pub(crate) fn put_aside(&self, aside: &Path) -> Vec<PathBuf> {
        let mut moved = Vec::new();
        let mut aside = Aside { path: aside, folder: None };
        for watched in &self.watched {
            for found in self.found(watched) {
                if found.exists {
                    aside.take(&found);
                }
                found.restore(&watched.before);
                moved.push(found.path);
            }
        }
        moved
    }

    fn found(&self, watched: &Watched) -> Vec<Found> {
        let Some(root) = self.roots.get(watched.root) else { return Vec::new() };
        let place = match place(root, &watched.below) {
            None => return Vec::new(),
            Some(Place::Blocked(found)) => return vec![found],
            Some(Place::Folder(found)) => found,
        };
        let stat = place.stat();
        let kind = stat.as_ref().map(kind);
        match (&watched.before, kind) {
            (Before::Absent, None) => Vec::new(),
            (Before::Absent, Some(FileType::Directory)) if watched.below == Path::new(".claw") => {
                place.governing_state()
            }
            (Before::Link(target), Some(FileType::Symlink)) if place.links_to(target) => Vec::new(),
            (Before::File(bytes), Some(FileType::RegularFile)) if place.holds(bytes) => Vec::new(),
            (Before::Absent | Before::Link(_) | Before::File(_), kind) => {
                vec![Found { exists: kind.is_some(), ..place }]
            }
        }
    }
}

/// A name in an open folder.
struct Found {
    parent: OwnedFd,
    name: OsString,
    path: PathBuf,
    exists: bool,
}

enum Place {
    /// Its folder is there.
    Folder(Found),
    /// What stands where a folder on the way should be.
    Blocked(Found),
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// None: a folder on the way is not there, so the path is not either.
fn place(root: &Root, below: &Path) -> Option<Place> {
    let mut parent = rustix::io::fcntl_dupfd_cloexec(&root.folder, 3).ok()?;
    let mut path = root.path.clone();
    let mut parts = below.iter().peekable();
    while let Some(part) = parts.next() {
        path.push(part);
        let found = |parent| Found { parent, name: part.to_owned(), path: path.clone(), exists: true };
        if parts.peek().is_none() {
            return Some(Place::Folder(found(parent)));
        }
        match rustix::fs::openat(&parent, part, FOLDER, Mode::empty()) {
            Ok(next) => parent = next,
            Err(Errno::NOENT) => return None,
            Err(_) => {
                let found = found(parent);
                let is_folder = found.stat().is_none_or(|stat| kind(&stat) == FileType::Directory);
                return (!is_folder).then_some(Place::Blocked(found));
            }
        }
    }
    None
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode as RawMode)
}

impl Found {
    fn stat(&self) -> Option<Stat> {
        rustix::fs::statat(&self.parent, &self.name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    fn links_to(&self, target: &Path) -> bool {
        rustix::fs::readlinkat(&self.parent, &self.name, Vec::new())
            .is_ok_and(|now| OsString::from_vec(now.into_bytes()) == target.as_os_str())
    }

    fn holds(&self, bytes: &[u8]) -> bool {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(fd) = rustix::fs::openat(&self.parent, &self.name, flags, Mode::empty()) else { return false };
        let mut now = vec![0; bytes.len() + 1];
        match rustix::io::read(&fd, now.as_mut_slice()) {
            Ok(read) => &now[..read] == bytes,
            Err(_) => false,
        }
    }

    fn governing_state(&self) -> Vec<Self> {
        let open = || rustix::fs::openat(&self.parent, &self.name, FOLDER, Mode::empty()).ok();
        let inside = |name: &&str| {
            let path = self.path.join(name);
            Some(Self { parent: open()?, name: (*name).into(), path, exists: true })
        };
        GOVERNING_STATE.iter().filter_map(inside).filter(|found| found.stat().is_some()).collect()
    }

    /// A name that could not be cleared stays as it is: it is in the list of what was found.
    fn restore(&self, before: &Before) {
        match before {
            Before::Absent => {}
            Before::Link(target) => {
                let _ = rustix::fs::symlinkat(target, &self.parent, &self.name);
            }
            Before::File(bytes) => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                let mode = Mode::from_raw_mode(0o644);
                if let Ok(file) = rustix::fs::openat(&self.parent, &self.name, flags, mode) {
                    let _ = rustix::io::write(&file, bytes);
                }
            }
        }
    }
}

/// Where things are moved to; made when it is needed.
struct Aside<'p> {
    path: &'p Path,
    folder: Option<OwnedFd>,
}

impl Aside<'_> {
    fn take(&mut self, found: &Found) {
        let moved = self.folder().is_some_and(|aside| rename(found, aside));
        if moved {
            return;
        }
        // Another file system, or nowhere to put it.
        let removed = CString::new(found.name.as_bytes())
            .map_err(std::io::Error::from)
            .and_then(|name| remove(found.parent.as_fd(), &name));
        if let Err(error) = removed {
            tracing::warn!(path = %found.path.display(), %error, "it governs claw, and it could not be taken out");
        }
    }

    fn folder(&mut self) -> Option<BorrowedFd<'_>> {
        if self.folder.is_none() {
            let open = || open_resolved(self.path, OFlags::RDONLY | OFlags::DIRECTORY);
            self.folder = match open() {
                Err(Errno::NOENT) => {
                    // No symlink is on the way so far; one that is put there now makes the opening fail.
                    let _ = claw_kernel::durable::private_dir(self.path);
                    open().ok()
                }
                other => other.ok(),
            };
        }
        self.folder.as_ref().map(OwnedFd::as_fd)
    }
}

/// A rename of the system, not of a document: the content is not ours.
fn rename(found: &Found, aside: BorrowedFd<'_>) -> bool {
    let name = found.name.to_string_lossy();
    let free = |to: &String| rustix::fs::statat(aside, to.as_str(), AtFlags::SYMLINK_NOFOLLOW).is_err();
    (0..1_000)
        .map(|n| format!("refused-{n}-{name}"))
        .find(free)
        .is_some_and(|to| rustix::fs::renameat(&found.parent, &found.name, aside, to.as_str()).is_ok())
}

#[cfg(test)]
mod tests;
