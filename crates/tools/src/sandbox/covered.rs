//! Paths that commands do not see: named ones, and those that match a pattern in a folder.
//!
//! A pattern is looked for before a command, in a bounded part of the tree and not more often than every few seconds.

use crate::files::paths;
use globset::{GlobBuilder, GlobMatcher};
use std::collections::{HashSet, VecDeque};
use std::fs::{DirEntry, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Entries of a tree that are looked at.
const MOST_ENTRIES: usize = 10_000;
/// How long what was found counts.
const FRESH: Duration = Duration::from_secs(3);
/// Folders that are not searched: what is in them comes from a package or a build.
const PASSED_OVER: [&str; 6] = [".git", "node_modules", "target", ".venv", "vendor", "__pycache__"];
/// Endings of names that start with `.env` and hold no secret by custom.
const EXAMPLES: [&str; 4] = [".example", ".sample", ".template", ".dist"];

/// One of them.
#[derive(Clone, Debug)]
pub struct Cover(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Path(PathBuf),
    Glob { root: PathBuf, matcher: GlobMatcher },
    Environment(PathBuf),
}

/// A pattern that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("`{pattern}` is no pattern of paths: {source}")]
pub struct BadCover {
    pattern: String,
    source: globset::Error,
}

impl Cover {
    /// A file or a folder with all in it (absolute).
    pub fn path(path: impl Into<PathBuf>) -> Self {
        Self(Kind::Path(path.into()))
    }

    /// An absolute path in which `*`, `?`, `[…]`, `{…}` match within a part and `**` over parts.
    ///
    /// # Errors
    /// The pattern is wrong.
    pub fn pattern(pattern: &str) -> Result<Self, BadCover> {
        let is_magic =
            |part: &Component<'_>| part.as_os_str().to_string_lossy().contains(['*', '?', '[', '{']);
        let path = Path::new(pattern);
        let fixed: PathBuf = path.components().take_while(|part| !is_magic(part)).collect();
        let rest: PathBuf = path.components().skip_while(|part| !is_magic(part)).collect();
        if rest.as_os_str().is_empty() || rest == Path::new("**") {
            return Ok(Self::path(fixed));
        }
        let matcher = GlobBuilder::new(&rest.to_string_lossy())
            .literal_separator(true)
            .build()
            .map_err(|source| BadCover { pattern: pattern.to_owned(), source })?
            .compile_matcher();
        Ok(Self(Kind::Glob { root: paths::resolve(&fixed), matcher }))
    }

    /// `.env` and its like, anywhere in a folder (resolved).
    pub(super) fn environment(root: &Path) -> Self {
        Self(Kind::Environment(root.to_owned()))
    }

    fn matches(&self, path: &Path) -> bool {
        match &self.0 {
            Kind::Path(covered) => covered == path,
            Kind::Glob { root, matcher } => {
                path.strip_prefix(root).is_ok_and(|below| matcher.is_match(below))
            }
            Kind::Environment(_) => path.file_name().is_some_and(|name| {
                let name = name.to_string_lossy();
                name.starts_with(".env") && !EXAMPLES.iter().any(|ending| name.ends_with(ending))
            }),
        }
    }

    fn root(&self) -> Option<&Path> {
        match &self.0 {
            Kind::Path(_) => None,
            Kind::Glob { root, .. } | Kind::Environment(root) => Some(root),
        }
    }
}

/// Paths and whether they are folders.
pub(crate) type Found = Arc<[(PathBuf, bool)]>;

/// What is covered, and what of it was found last.
#[derive(Debug, Default)]
pub(super) struct Covers {
    covers: Vec<Cover>,
    /// Never covered.
    uncovered: Vec<PathBuf>,
    last: Mutex<Option<(Instant, Found)>>,
}

impl Covers {
    pub(super) fn add(&mut self, covers: impl IntoIterator<Item = Cover>) {
        self.covers.extend(covers);
    }

    /// Paths (resolved) that stay visible with all below them.
    pub(super) fn leave(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        self.uncovered.extend(paths);
    }

    pub(super) fn leaves(&self, path: &Path) -> bool {
        self.uncovered.iter().any(|uncovered| path.starts_with(uncovered))
    }

    /// What is there now, or was a moment ago.
    pub(super) fn found(&self) -> Found {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((at, found)) if at.elapsed() < FRESH => Arc::clone(found),
            Some(_) | None => {
                let found: Found = self.look().into();
                *last = Some((Instant::now(), Arc::clone(&found)));
                found
            }
        }
    }

    fn look(&self) -> Vec<(PathBuf, bool)> {
        let mut found = Hits { covers: self, seen: HashSet::new(), list: Vec::new(), linked: HashSet::new() };
        for cover in &self.covers {
            if let Kind::Path(path) = &cover.0 {
                found.add(path);
            }
        }
        let mut roots: Vec<&Path> = self.covers.iter().filter_map(Cover::root).collect();
        roots.sort_unstable();
        roots.dedup();
        for root in &roots {
            walk(root, |path, _| {
                let covers = self.covers.iter().any(|cover| {
                    cover.root().is_some_and(|root| path.starts_with(root)) && cover.matches(path)
                });
                if covers {
                    found.add(path);
                }
                !covers
            });
        }
        // Other names of the same files.
        if !found.linked.is_empty() {
            for root in roots {
                walk(root, |path, entry| {
                    let same = entry.metadata().is_ok_and(|meta| found.linked.contains(&identity(&meta)));
                    if same {
                        found.add(path);
                    }
                    true
                });
            }
        }
        found.list.sort();
        found.list
    }
}

struct Hits<'c> {
    covers: &'c Covers,
    seen: HashSet<PathBuf>,
    list: Vec<(PathBuf, bool)>,
    linked: HashSet<(u64, u64)>,
}

impl Hits<'_> {
    fn add(&mut self, path: &Path) {
        let path = paths::resolve(path);
        if self.covers.leaves(&path) || self.seen.contains(&path) {
            return;
        }
        let Ok(meta) = path.symlink_metadata() else { return };
        if meta.is_file() && meta.nlink() > 1 {
            self.linked.insert(identity(&meta));
        }
        self.list.push((path.clone(), meta.is_dir()));
        self.seen.insert(path);
    }
}

fn identity(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

/// Entries of a tree, those near its root first; `enter` says whether one is entered. Symlinks are not followed.
fn walk(root: &Path, mut enter: impl FnMut(&Path, &DirEntry) -> bool) {
    let mut left = MOST_ENTRIES;
    let mut folders = VecDeque::from([root.to_owned()]);
    while let Some(folder) = folders.pop_front() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if left == 0 {
                tracing::debug!(root = %root.display(), "a part of the tree was not looked through for what is covered");
                return;
            }
            left -= 1;
            let path = entry.path();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let passed = || PASSED_OVER.iter().any(|name| entry.file_name() == *name);
            if enter(&path, &entry) && is_folder && !passed() {
                folders.push_back(path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use claw_kernel::durable::{Mode, Sync, replace};

    fn put(path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        replace(path, b"x", Mode::Keep, Sync::No).unwrap();
    }

    #[test]
    fn files_of_variables_their_links_and_patterns_are_found_and_examples_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = paths::resolve(folder.path());
        for name in [
            "w/.env",
            "w/a/.env.local",
            "w/.env.example",
            "w/node_modules/x/.env",
            "w/s/one.key",
            "w/s/b/two.key",
            "out/e",
        ] {
            put(&root.join(name));
        }
        std::fs::hard_link(root.join("w/.env"), root.join("w/other")).unwrap();
        std::os::unix::fs::symlink("../out/e", root.join("w/.env.link")).unwrap();
        let mut covers = Covers::default();
        covers.add([Cover::environment(&root.join("w"))]);
        covers.add([Cover::pattern(&format!("{}/w/**/*.key", root.display())).unwrap()]);
        covers.leave([root.join("w/s/b")]);
        let names: Vec<_> =
            covers.found().iter().map(|(path, _)| path.strip_prefix(&root).unwrap().to_owned()).collect();
        let wanted = ["out/e", "w/.env", "w/a/.env.local", "w/other", "w/s/one.key"].map(PathBuf::from);
        assert_eq!(names, wanted);
    }

    #[test]
    fn a_pattern_without_magic_or_with_all_below_is_a_path() {
        for pattern in ["/w/secret/**", "/w/secret"] {
            let Cover(Kind::Path(path)) = Cover::pattern(pattern).unwrap() else { panic!("{pattern}") };
            assert_eq!(path, Path::new("/w/secret"));
        }
        assert!(Cover::pattern("/w/[").is_err());
    }
}
