//! The decisions on disk: one private file of the user, replaced as a whole, under a lock.

use super::error::TrustError;
use super::item::{ItemKind, TrustItem};
use claw_kernel::clock::{self, Timestamp};
use claw_kernel::digest::Digest;
use claw_kernel::durable::{self, FileLock, Mode, Owner, Sync};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

const VERSION: u32 = 1;

/// What the user decided on an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// It counts.
    Trusted,
    /// It does not, and is not asked for again.
    Refused,
}

/// A decision with what it was about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// The decision.
    pub decision: Decision,
    /// What it would do.
    pub kind: ItemKind,
    /// Its key.
    pub key: String,
    /// What was shown.
    pub lines: Vec<String>,
    /// When.
    pub at: Timestamp,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Written {
    version: u32,
    /// By the top of the repository.
    #[serde(default)]
    projects: IndexMap<PathBuf, IndexMap<Digest, Decided>>,
}

/// The decisions on one project.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    decided: IndexMap<Digest, Decided>,
}

impl Decisions {
    /// What was decided on an item; `None`: nothing.
    pub fn on(&self, item: &TrustItem) -> Option<Decision> {
        self.decided.get(&item.digest).map(|decided| decided.decision)
    }

    /// Whether an item counts.
    pub fn trusts(&self, item: &TrustItem) -> bool {
        self.on(item) == Some(Decision::Trusted)
    }

    /// All of them, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (&Digest, &Decided)> {
        self.decided.iter()
    }
}

/// `trust.json` of the config home, for one project.
#[derive(Clone, Debug)]
pub struct TrustFile {
    path: PathBuf,
    project: PathBuf,
}

impl TrustFile {
    /// `project`: the top of the repository, absolute. A decision on one project says nothing about another.
    pub fn new(config_home: &Path, project: &Path) -> Self {
        Self { path: config_home.join("trust.json"), project: project.to_owned() }
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The decisions on this project.
    ///
    /// # Errors
    /// The file is there and cannot be read: nobody is trusted then.
    pub fn read(&self) -> Result<Decisions, TrustError> {
        let mut written = self.written()?;
        Ok(Decisions { decided: written.projects.swap_remove(&self.project).unwrap_or_default() })
    }

    /// Keeps a decision on items. Locked against other processes, on disk when it returns.
    ///
    /// # Errors
    /// The file cannot be read, locked or written.
    pub fn decide(&self, items: &[&TrustItem], decision: Decision) -> Result<(), TrustError> {
        let at = clock::now();
        self.change(|decided| {
            for item in items {
                let one = Decided {
                    decision,
                    kind: item.kind,
                    key: item.key.clone(),
                    lines: item.lines.clone(),
                    at,
                };
                decided.insert(item.digest, one);
            }
        })
    }

    /// Forgets decisions: they are asked for again.
    ///
    /// # Errors
    /// As of [`TrustFile::decide`].
    pub fn forget(&self, digests: &[Digest]) -> Result<(), TrustError> {
        self.change(|decided| decided.retain(|digest, _| !digests.contains(digest)))
    }

    fn change(&self, change: impl FnOnce(&mut IndexMap<Digest, Decided>)) -> Result<(), TrustError> {
        let failed = |source| TrustError::Write { path: self.path.clone(), source };
        let folder = self.path.parent().unwrap_or(Path::new("."));
        durable::private_dir(folder).map_err(failed)?;
        let owner = Owner { pid: std::process::id(), since: clock::now(), socket: None };
        let _held = FileLock::wait(&self.path.with_extension("lock"), &owner)?;
        let mut written = self.written()?;
        let project = written.projects.entry(self.project.clone()).or_default();
        change(project);
        if project.is_empty() {
            written.projects.shift_remove(&self.project);
        }
        written.version = VERSION;
        let mut text = serde_json::to_string_pretty(&written).map_err(|error| failed(error.into()))?;
        text.push('\n');
        durable::replace(&self.path, text.as_bytes(), Mode::Private, Sync::Yes).map_err(failed)
    }

    fn written(&self) -> Result<Written, TrustError> {
        let path = || self.path.clone();
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Written::default()),
            Err(source) => return Err(TrustError::Read { path: path(), source }),
        };
        let written: Written =
            serde_json::from_str(&text).map_err(|source| TrustError::Broken { path: path(), source })?;
        if written.version > VERSION {
            return Err(TrustError::Newer { path: path(), version: written.version });
        }
        Ok(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Origin, Scope};
    use std::os::unix::fs::PermissionsExt;

    fn item(line: &str) -> TrustItem {
        TrustItem {
            kind: ItemKind::Hook,
            key: "hooks.Stop".into(),
            lines: vec![line.into()],
            origin: Origin { scope: Scope::Project, ..Origin::flag("x") },
            digest: Digest::of(line),
        }
    }

    #[test]
    fn a_decision_holds_for_its_project_and_its_words_alone() {
        let top = tempfile::tempdir().unwrap();
        let home = top.path().join("home");
        let here = TrustFile::new(&home, Path::new("/here"));
        assert!(here.read().unwrap().on(&item("a")).is_none());
        here.decide(&[&item("a")], Decision::Trusted).unwrap();
        here.decide(&[&item("b")], Decision::Refused).unwrap();
        let decisions = here.read().unwrap();
        assert!(decisions.trusts(&item("a")) && !decisions.trusts(&item("a ")));
        assert_eq!(decisions.on(&item("b")), Some(Decision::Refused));
        assert!(TrustFile::new(&home, Path::new("/there")).read().unwrap().on(&item("a")).is_none());
        here.forget(&[item("a").digest]).unwrap();
        assert!(here.read().unwrap().on(&item("a")).is_none());
        let bits = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((bits(here.path()), bits(&home)), (0o600, 0o700));
    }

    #[test]
    fn a_broken_file_trusts_nobody_and_is_not_written_over() {
        let top = tempfile::tempdir().unwrap();
        let file = TrustFile::new(top.path(), Path::new("/here"));
        durable::replace(file.path(), b"{\"version\":1,", Mode::Private, Sync::No).unwrap();
        assert!(file.read().is_err() && file.decide(&[&item("a")], Decision::Trusted).is_err());
        assert_eq!(std::fs::read(file.path()).unwrap(), b"{\"version\":1,");
        durable::replace(file.path(), b"{\"version\":9}", Mode::Private, Sync::No).unwrap();
        assert!(matches!(file.read(), Err(TrustError::Newer { version: 9, .. })));
    }
}
