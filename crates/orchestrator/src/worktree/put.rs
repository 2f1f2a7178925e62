//! Brings files of the workspace from one image to the other. Each is replaced as a whole, and only if it is still what
//! it should be: a file that a person changed meanwhile is left alone and named.

use super::images::{Image, folder_of, look, look_in};
use super::landing_file::{LandingEntry, LandingFolder};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// From before to after.
    Finish,
    /// From after to before.
    TakeBack,
}

impl Way {
    /// What is there, and what is to be there.
    fn of(self, entry: &LandingEntry) -> (&Image, &Image) {
        match self {
            Self::Finish => (&entry.before, &entry.after),
            Self::TakeBack => (&entry.after, &entry.before),
        }
    }
}

/// How far a landing has come.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// Paths that are as they were and not yet as they will be.
    pub(super) waiting: usize,
    /// Paths that are neither: somebody changed them.
    pub(super) foreign: Vec<PathBuf>,
}

/// Looks at all of it.
pub(super) fn standing(top: BorrowedFd<'_>, entries: &[LandingEntry]) -> io::Result<Standing> {
    let mut found = Standing::default();
    for entry in entries {
        let path = entry.path.name();
        let now = look(top, &path)?.0;
        if now.is_same(&entry.after) {
            continue;
        }
        if now.is_same(&entry.before) || gives_way(entry, &now) {
            found.waiting += 1;
        } else {
            found.foreign.push(path);
        }
    }
    Ok(found)
}

/// A folder stands where a file was or will be: half way between a folder and a file.
fn gives_way(entry: &LandingEntry, now: &Image) -> bool {
    *now == Image::Other && (entry.before == Image::Absent || entry.after == Image::Absent)
}

/// Brings all of them. `most`: so many changes, then it stops as if it were killed (tests). Gives the paths that were
/// left alone.
pub(super) fn bring(
    top: BorrowedFd<'_>,
    store: &LandingFolder,
    entries: &[LandingEntry],
    way: Way,
    most: usize,
) -> io::Result<Vec<PathBuf>> {
    let mut work = Bringing { top, store, left: most, alone: Vec::new(), folders: BTreeSet::new() };
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by_key(|at| entries[*at].path.name());
    for at in &order {
        work.sweep(*at, &entries[*at].path.name())?;
    }
    // What goes makes room, the deepest first.
    for at in order.iter().rev() {
        let (is, wanted) = way.of(&entries[*at]);
        if *wanted == Image::Absent {
            work.remove(&entries[*at].path.name(), is)?;
        }
    }
    for at in order {
        let entry = &entries[at];
        let (is, wanted) = way.of(entry);
        let path = entry.path.name();
        let bytes = match (wanted, way) {
            (Image::Absent | Image::Other, _) => continue,
            (Image::Link { .. }, _) => Vec::new(),
            (Image::File { .. }, Way::Finish) => std::fs::read(store.after().join(&path))?,
            (Image::File { .. }, Way::TakeBack) => std::fs::read(store.before(at))?,
        };
        work.write(at, &path, (is, wanted), &bytes)?;
    }
    work.sync()?;
    Ok(work.alone)
}

struct Bringing<'t> {
    top: BorrowedFd<'t>,
    store: &'t LandingFolder,
    left: usize,
    alone: Vec<PathBuf>,
    folders: BTreeSet<PathBuf>,
}

impl Bringing<'_> {
    /// Whether one more change may be made.
    fn step(&mut self) -> io::Result<()> {
        self.left = self.left.checked_sub(1).ok_or_else(|| io::Error::from(io::ErrorKind::Interrupted))?;
        Ok(())
    }

    /// What a killed process had ready for a file and not yet in its place.
    fn sweep(&self, at: usize, path: &Path) -> io::Result<()> {
        let Some(folder) = folder_of(self.top, path, false)? else { return Ok(()) };
        match rustix::fs::unlinkat(folder, self.store.beside(at), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT | Errno::ISDIR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn remove(&mut self, path: &Path, is: &Image) -> io::Result<()> {
        let (Some(folder), Some(name)) = (folder_of(self.top, path, false)?, path.file_name()) else {
            return Ok(());
        };
        let now = look_in(folder.as_fd(), name)?.0;
        match now {
            Image::Absent | Image::Other => {}
            now if now.is_same(is) => {
                self.step()?;
                rustix::fs::unlinkat(&folder, name, AtFlags::empty())?;
            }
            Image::File { .. } | Image::Link { .. } => {
                self.alone.push(path.to_owned());
                return Ok(());
            }
        }
        self.prune(path)
    }

    /// Folders that hold nothing any more go, as git does it.
    fn prune(&mut self, path: &Path) -> io::Result<()> {
        let mut folder = path.parent();
        while let Some(path) = folder.filter(|path| !path.as_os_str().is_empty()) {
            let (Some(above), Some(name)) = (folder_of(self.top, path, false)?, path.file_name()) else {
                break;
            };
            if rustix::fs::unlinkat(&above, name, AtFlags::REMOVEDIR).is_err() {
                break;
            }
            folder = path.parent();
        }
        self.folders.insert(folder.unwrap_or(Path::new("")).to_owned());
        Ok(())
    }

    fn write(
        &mut self,
        at: usize,
        path: &Path,
        (is, wanted): (&Image, &Image),
        bytes: &[u8],
    ) -> io::Result<()> {
        let Some(name) = path.file_name() else { return Ok(()) };
        let now = look(self.top, path)?.0;
        if now.is_same(wanted) {
            return Ok(());
        }
        if !now.is_same(is) {
            self.alone.push(path.to_owned());
            return Ok(());
        }
        self.step()?;
        let Some(folder) = folder_of(self.top, path, true)? else { return Ok(()) };
        let beside = self.store.beside(at);
        let made = make(folder.as_fd(), &beside, wanted, bytes)
            .and_then(|()| swap(folder.as_fd(), &beside, name, is));
        match made {
            Ok(true) => {}
            Ok(false) => self.alone.push(path.to_owned()),
            Err(error) => {
                let _ = rustix::fs::unlinkat(&folder, beside.as_str(), AtFlags::empty());
                return Err(error);
            }
        }
        self.folders.insert(path.parent().unwrap_or(Path::new("")).to_owned());
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        for folder in &self.folders {
            if let Some(fd) = folder_of(self.top, &folder.join("x"), false)? {
                File::from(fd).sync_all()?;
            }
        }
        Ok(())
    }
}

fn make(folder: BorrowedFd<'_>, beside: &str, wanted: &Image, bytes: &[u8]) -> io::Result<()> {
    match wanted {
        Image::Absent | Image::Other => Ok(()),
        Image::Link { target } => Ok(rustix::fs::symlinkat(target.name(), folder, beside)?),
        Image::File { mode, .. } => {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut file = File::from(rustix::fs::openat(folder, beside, flags, Mode::RUSR | Mode::WUSR)?);
            file.write_all(bytes)?;
            rustix::fs::fchmod(&file, Mode::from_raw_mode(mode & 0o777))?;
            file.sync_data()
        }
    }
}

/// Whether it took its place; not if that was changed at the last moment.
fn swap(folder: BorrowedFd<'_>, beside: &str, name: &OsStr, is: &Image) -> io::Result<bool> {
    if !look_in(folder, name)?.0.is_same(is) {
        let _ = rustix::fs::unlinkat(folder, beside, AtFlags::empty());
        return Ok(false);
    }
    match rustix::fs::renameat(folder, beside, folder, name) {
        Ok(()) => Ok(true),
        Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => {
            let _ = rustix::fs::unlinkat(folder, beside, AtFlags::empty());
            Ok(false)
        }
        Err(errno) => Err(errno.into()),
    }
}
