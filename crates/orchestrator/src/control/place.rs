//! Where a run's socket lies: in a private folder of the user's runtime directory, under a name of its own for each
//! taker, so that one that was left behind is in nobody's way.

use claw_kernel::durable;
use claw_kernel::ids::RunId;
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tokio::net::{UnixListener, UnixStream};

/// Bytes that a socket's address has room for, its end included.
const MOST_ADDRESS: usize = 108;

/// A socket that is listened on. Its file goes with it.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(super) socket: UnixListener,
    path: PathBuf,
}

impl Listener {
    /// Listens for a run. `runtime`: the user's runtime directory.
    ///
    /// # Errors
    /// There is no folder that is ours alone, or the system refuses.
    pub fn bind(runtime: Option<&Path>, run: RunId) -> io::Result<Self> {
        let id = run.to_string();
        let name = format!("{}-{:08x}.sock", &id[id.len() - 10..], fastrand::u32(..));
        let open = |runtime| {
            let path = folder(runtime)?.join(&name);
            let socket = at(&path, |address| UnixListener::bind(address))?;
            Ok::<_, io::Error>((path, socket))
        };
        // The last one who left may have taken the empty folder away at this very moment.
        let (path, socket) = open(runtime).or_else(|_| open(runtime))?;
        let listener = Self { socket, path };
        std::fs::set_permissions(&listener.path, Permissions::from_mode(0o600))?;
        Ok(listener)
    }

    /// Where.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Somebody may have cleared the folder; where others listen it is not empty and stays.
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_dir(parent(&self.path));
    }
}

/// Connects to a run's socket.
pub(super) async fn connect(path: &Path) -> io::Result<UnixStream> {
    let folder = if is_long(path) { Some(File::open(parent(path))?) } else { None };
    let address = address(path, folder.as_ref());
    UnixStream::connect(address).await
}

/// Removes the socket that the last owner of a run left behind. The caller holds the run.
pub(crate) fn forget(before: Option<PathBuf>, own: Option<&Path>) {
    if let Some(path) = before.filter(|path| Some(path.as_path()) != own)
        && path.extension().is_some_and(|ending| ending == "sock")
        && path.symlink_metadata().is_ok_and(|meta| is_socket(&meta))
    {
        let _ = std::fs::remove_file(path);
    }
}

fn is_socket(meta: &std::fs::Metadata) -> bool {
    std::os::unix::fs::FileTypeExt::is_socket(&meta.file_type())
}

/// The folder of sockets, made where it is missing, and nobody's but ours.
fn folder(runtime: Option<&Path>) -> io::Result<PathBuf> {
    if let Some(runtime) = runtime.filter(|path| path.is_absolute()) {
        let folder = runtime.join("claw");
        if private(&folder).is_ok() {
            return Ok(folder);
        }
    }
    let user = rustix::process::geteuid().as_raw();
    let folder = std::env::temp_dir().join(format!("claw-{user}"));
    private(&folder)?;
    Ok(folder)
}

fn private(folder: &Path) -> io::Result<()> {
    durable::private_dir(folder)?;
    // Not through a link: somebody else may have put one there.
    let meta = folder.symlink_metadata()?;
    let is_ours = meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw();
    if !is_ours {
        let text = format!("{} belongs to somebody else", folder.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    if meta.mode() & 0o077 != 0 {
        std::fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    }
    Ok(())
}

fn is_long(path: &Path) -> bool {
    path.as_os_str().len() >= MOST_ADDRESS
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// A path that is too long for an address is short through its open folder.
fn address(path: &Path, folder: Option<&File>) -> PathBuf {
    match (folder, path.file_name()) {
        (Some(folder), Some(name)) => {
            Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name)
        }
        _ => path.to_owned(),
    }
}

fn at<T>(path: &Path, open: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let folder = if is_long(path) { Some(File::open(parent(path))?) } else { None };
    open(&address(path, folder.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_lies_in_a_private_folder_and_goes_with_its_owner() {
        let runtime = tempfile::tempdir().unwrap();
        let listener = Listener::bind(Some(runtime.path()), RunId::fresh()).unwrap();
        let path = listener.path().to_owned();
        assert!(path.starts_with(runtime.path().join("claw")));
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        connect(&path).await.unwrap();
        drop(listener);
        assert!(!path.exists());
        assert!(connect(&path).await.is_err());
    }

    #[tokio::test]
    async fn a_long_folder_is_no_trouble() {
        let top = tempfile::tempdir().unwrap();
        let runtime = top.path().join("x".repeat(120));
        durable::private_dir(&runtime).unwrap();
        let listener = Listener::bind(Some(&runtime), RunId::fresh()).unwrap();
        assert!(listener.path().as_os_str().len() > MOST_ADDRESS);
        connect(listener.path()).await.unwrap();
    }

    #[test]
    fn a_folder_that_others_can_read_is_closed_and_a_link_is_not_taken() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("claw");
        durable::private_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        private(&folder).unwrap();
        assert_eq!(folder.metadata().unwrap().mode() & 0o777, 0o700);
        let link = top.path().join("link");
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        assert!(private(&link).is_err());
    }
}
