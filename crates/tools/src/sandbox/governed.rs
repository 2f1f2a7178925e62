//! What governs, before and after a command: what exists is pinned, what does not is moved out if it appeared.

use std::fs;
use std::path::{Path, PathBuf};

/// Names below a `.claw` that a command made which govern; others there are claw's own state.
const GOVERNING_STATE: [&str; 8] =
    ["settings.json", "settings.local.json", "agents", "skills", "plugins", "commands", "hooks", "mcp.json"];

#[derive(Debug, PartialEq, Eq)]
enum Before {
    Absent,
    Link(PathBuf),
}

/// What governs, as it was before a command.
#[derive(Debug, Default)]
pub(crate) struct Governed {
    pins: Vec<(PathBuf, bool)>,
    watched: Vec<(PathBuf, Before)>,
}

impl Governed {
    pub(super) fn look(workspace: &Path, governing: &[PathBuf]) -> Self {
        let mut seen = Self::default();
        let git = workspace.join(".git");
        if git.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            seen.pins.push((git, false));
        }
        for path in governing {
            match path.symlink_metadata() {
                Err(_) => seen.watched.push((path.clone(), Before::Absent)),
                Ok(meta) => {
                    if let (true, Ok(target)) = (meta.is_symlink(), fs::read_link(path)) {
                        seen.watched.push((path.clone(), Before::Link(target)));
                    }
                    if path.exists() {
                        seen.pins.push((path.clone(), true));
                    }
                }
            }
        }
        seen
    }

    /// Paths that exist and become mounts, and whether read-only.
    pub(crate) fn pins(&self) -> impl Iterator<Item = (&Path, bool)> {
        self.pins.iter().map(|(path, read_only)| (path.as_path(), *read_only))
    }

    /// Moves what appeared into `aside`; gives the paths. To be called when nothing of the command lives any more.
    pub(crate) fn put_aside(&self, aside: &Path) -> Vec<PathBuf> {
        let mut moved = Vec::new();
        for (path, before) in &self.watched {
            match before {
                Before::Absent if path.ends_with(".claw") => {
                    for name in GOVERNING_STATE {
                        put_aside(&path.join(name), aside, &mut moved);
                    }
                }
                Before::Absent => put_aside(path, aside, &mut moved),
                Before::Link(target) => {
                    if fs::read_link(path).ok().as_ref() != Some(target) {
                        put_aside(path, aside, &mut moved);
                        let _ = std::os::unix::fs::symlink(target, path);
                    }
                }
            }
        }
        moved
    }
}

fn put_aside(path: &Path, aside: &Path, moved: &mut Vec<PathBuf>) {
    let Ok(meta) = path.symlink_metadata() else { return };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let _ = claw_kernel::durable::private_dir(aside);
    let to = (0..1_000)
        .map(|n| aside.join(format!("refused-{n}-{name}")))
        .find(|to| to.symlink_metadata().is_err());
    // A rename of the system, not of a document: the content is not ours. Across file systems it is removed.
    if to.is_none_or(|to| rustix::fs::rename(path, to).is_err()) {
        let _ = if meta.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    }
    moved.push(path.to_owned());
}
