//! What is where in the house of a policy: what is covered, what stays writable, what is put back. Data only; it looks at
//! the file system and changes nothing but its own temporary folders.

use crate::files::paths;
use crate::platform::{Fixture, Stand};
use std::path::{Path, PathBuf};

/// Below the home folder: what opens doors elsewhere, or tells what was done.
const KEYS: [&str; 21] = [
    ".ssh",
    ".aws",
    ".gnupg",
    ".config/gcloud",
    ".azure",
    ".kube",
    ".netrc",
    ".pgpass",
    ".pypirc",
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh",
    ".docker/config.json",
    ".docker/run",
    ".cargo/credentials.toml",
    ".cargo/credentials",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".bash_history",
    ".zsh_history",
    ".python_history",
];

/// What a policy wants of its house. All paths are resolved.
pub(super) struct Wants<'p> {
    /// Written by commands.
    pub(super) writable: &'p [PathBuf],
    /// Written by commands, and thrown away.
    pub(super) copied: &'p [PathBuf],
    /// Stays visible, read-only.
    pub(super) visible: Vec<PathBuf>,
    /// Covered beside the usual.
    pub(super) covered: Vec<(PathBuf, bool)>,
    /// Whether a key is left uncovered.
    pub(super) leaves: &'p dyn Fn(&Path) -> bool,
    /// What becomes `/tmp`; none: that is an empty folder then.
    pub(super) scratch: Option<&'p Path>,
    /// Where layers are kept.
    pub(super) layers: Option<&'p Path>,
    /// Whether names are resolved as outside.
    pub(super) has_network: bool,
}

/// The house, and how things are called in it.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) fixtures: Vec<(PathBuf, Fixture)>,
    /// Where the temporary folder of the policy is seen.
    pub(super) tmp: Option<PathBuf>,
    /// What lies below a covered folder for temporary files and is put back.
    pub(super) kept: Vec<PathBuf>,
    /// What is written, as it is called inside.
    pub(super) written: Vec<PathBuf>,
}

impl Wants<'_> {
    pub(super) fn layout(&self) -> std::io::Result<Layout> {
        let mut layout = Layout::default();
        layout.written.extend(self.writable.iter().cloned());
        for path in self.writable {
            layout.fixtures.push((path.clone(), Fixture::Writable));
        }
        self.layers(&mut layout)?;
        let roots = self.free(temporary());
        for root in &roots {
            self.temporary(root, &mut layout)?;
        }
        layout.tmp = self.scratch.and(roots.first().cloned());
        if let (Some(scratch), None) = (self.scratch, &layout.tmp) {
            layout.written.push(scratch.to_owned());
            layout.fixtures.push((scratch.to_owned(), Fixture::Writable));
        }
        for root in self.free(runtime()) {
            let stands = self.stands(&root, &mut layout);
            layout.fixtures.push((root, Fixture::Fresh(stands)));
        }
        self.keys(&mut layout);
        Ok(layout)
    }

    fn temporary(&self, root: &Path, layout: &mut Layout) -> std::io::Result<()> {
        let tops = self.tops(root);
        match self.scratch {
            Some(scratch) => {
                for name in tops.iter().filter_map(|top| top.file_name()) {
                    std::fs::create_dir_all(scratch.join(name))?;
                }
                layout.written.push(root.to_owned());
                layout.fixtures.push((root.to_owned(), Fixture::Lent(scratch.to_owned())));
            }
            None => {
                let stands = tops.iter().map(|top| (top.clone(), Stand::Folder)).collect();
                layout.fixtures.push((root.to_owned(), Fixture::Fresh(stands)));
            }
        }
        layout.fixtures.extend(tops.iter().map(|top| (top.clone(), Fixture::Visible)));
        layout.kept.extend(tops);
        Ok(())
    }

    fn layers(&self, layout: &mut Layout) -> std::io::Result<()> {
        let Some(layers) = self.layers else { return Ok(()) };
        for (at, path) in self.copied.iter().enumerate() {
            let (upper, work) = (layers.join(format!("{at}/upper")), layers.join(format!("{at}/work")));
            std::fs::create_dir_all(&upper)?;
            std::fs::create_dir_all(&work)?;
            layout.written.push(path.clone());
            layout.fixtures.push((path.clone(), Fixture::Layered(upper, work)));
        }
        Ok(())
    }

    /// Those that can be covered: nothing that is written is or lies above them.
    fn free(&self, roots: Vec<PathBuf>) -> Vec<PathBuf> {
        let written = || self.writable.iter().chain(self.copied);
        let kept = || self.visible.iter();
        roots
            .into_iter()
            .filter(|root| !written().any(|path| root.starts_with(path)) && !kept().any(|path| path == root))
            .collect()
    }

    /// What is kept below a root that is covered: the entry of the root that it lies in.
    fn tops(&self, root: &Path) -> Vec<PathBuf> {
        let kept = self.writable.iter().chain(self.copied).chain(&self.visible);
        let mut tops: Vec<PathBuf> = kept
            .filter_map(|path| path.strip_prefix(root).ok()?.components().next().map(|part| root.join(part)))
            .filter(|top| top.is_dir())
            .collect();
        tops.sort_unstable();
        tops.dedup();
        tops
    }

    /// What stands in a folder of sockets that is covered.
    fn stands(&self, root: &Path, layout: &mut Layout) -> Vec<(PathBuf, Stand)> {
        let mut stands = Vec::new();
        for top in self.tops(root) {
            stands.push((top.clone(), Stand::Folder));
            layout.fixtures.push((top, Fixture::Visible));
        }
        // Programs are found through symlinks there on some systems.
        for folder in search_path() {
            let Some(top) = folder.strip_prefix(root).ok().and_then(|below| below.components().next()) else {
                continue;
            };
            if let Ok(target) = std::fs::read_link(root.join(top)) {
                stands.push((root.join(top), Stand::Link(target)));
            }
        }
        let names = paths::resolve(Path::new("/etc/resolv.conf"));
        if self.has_network && names.starts_with(root) && names.is_file() {
            let mut parents: Vec<_> = names.ancestors().skip(1).take_while(|path| *path != root).collect();
            parents.reverse();
            stands.extend(parents.into_iter().map(|path| (path.to_owned(), Stand::Folder)));
            stands.push((names.clone(), Stand::File));
            layout.fixtures.push((names, Fixture::Visible));
        }
        stands
    }

    fn keys(&self, layout: &mut Layout) {
        let home = std::env::home_dir().unwrap_or_default();
        let of_home = KEYS.iter().map(|key| paths::resolve(&home.join(key)));
        let sockets = std::env::var_os("XDG_RUNTIME_DIR").map(|path| paths::resolve(Path::new(&path)));
        let own: Vec<PathBuf> = of_home.chain(sockets).collect();
        let own = own.into_iter().filter(|path| !(self.leaves)(path));
        let own = own.filter_map(|path| Some((path.is_dir(), path.symlink_metadata().ok()?, path)));
        let all = own.map(|(is_folder, _, path)| (path, is_folder)).chain(self.covered.iter().cloned());
        for (path, is_folder) in all {
            let holds = |written: &PathBuf| written.starts_with(&path);
            if self.writable.iter().chain(self.copied).any(holds) || path.parent().is_none() {
                continue;
            }
            layout.fixtures.push((path, if is_folder { Fixture::Emptied } else { Fixture::Sealed }));
        }
    }
}

fn resolved(folders: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for folder in folders.into_iter().map(|folder| paths::resolve(&folder)).filter(|folder| folder.is_dir()) {
        if folder.parent().is_some() && !all.contains(&folder) {
            all.push(folder);
        }
    }
    all
}

/// Folders for temporary files, the usual one first.
fn temporary() -> Vec<PathBuf> {
    resolved(["/tmp".into(), "/var/tmp".into(), std::env::temp_dir()])
}

/// Folders of sockets of services.
fn runtime() -> Vec<PathBuf> {
    resolved(["/run".into(), "/var/run".into()])
}

/// Where programs are looked for, as it is written.
pub(super) fn search_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect()
}
