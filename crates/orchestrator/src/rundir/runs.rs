//! The folder of runs: makes a run, opens one, finds the newest.

use super::{RunDir, RunDirError};
use claw_kernel::clock::{self, Timestamp};
use claw_kernel::durable::{self, Mode, Sync};
use claw_kernel::ids::{RunId, SessionId};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The version of `run.json` that this program writes.
pub const RUN_SCHEMA: u32 = 1;
/// Small state files above this length are not read.
const MOST_BYTES: u64 = 64 << 20;

/// `run.json`: written once, when the run is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunFile {
    /// Of this file.
    pub schema: u32,
    /// Which run.
    pub run_id: RunId,
    /// `workflow.name`; for the agents of a session: a word for it.
    pub name: String,
    /// The workflow file, see [`super::workflow_name_in`]; `None` for the agents of a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<PathBuf>,
    /// Of claw.
    pub claw_version: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// The session that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<SessionId>,
    /// HEAD of the project when the run was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_commit: Option<String>,
}

/// What is known when a run is made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewRun {
    /// See [`RunFile::name`].
    pub name: String,
    /// See [`RunFile::workflow`].
    pub workflow: Option<PathBuf>,
    /// Of claw.
    pub claw_version: String,
    /// The session that started it.
    pub parent_session: Option<SessionId>,
    /// HEAD of the project.
    pub base_commit: Option<String>,
}

/// The folder of runs of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runs {
    folder: PathBuf,
}

impl Runs {
    /// `.claw/runs` of a project, or where `moved` says (the user's setting), taken from the project.
    pub fn of_project(project: &Path, moved: Option<&Path>) -> Self {
        let folder = moved.map_or_else(|| project.join(".claw").join("runs"), |moved| project.join(moved));
        Self { folder }
    }

    /// That folder.
    pub fn in_folder(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes a run.
    pub fn create(&self, new: NewRun) -> Result<RunDir, RunDirError> {
        let run = RunDir::at(&self.folder, RunId::fresh());
        let nodes = run.root().join("nodes");
        durable::private_dir(&nodes).map_err(RunDirError::io(&nodes))?;
        let ignore = self.folder.join(".gitignore");
        if !ignore.exists() {
            durable::replace(&ignore, b"*\n", Mode::Private, Sync::No).map_err(RunDirError::io(&ignore))?;
        }
        let NewRun { name, workflow, claw_version, parent_session, base_commit } = new;
        let file = RunFile {
            schema: RUN_SCHEMA,
            run_id: run.id(),
            name,
            workflow,
            claw_version,
            created_at: clock::now(),
            parent_session,
            base_commit,
        };
        let path = run.run_json();
        let shape = |source| RunDirError::Shape { path: path.clone(), source };
        let bytes = serde_json::to_vec_pretty(&file).map_err(shape)?;
        durable::replace(&path, &bytes, Mode::Private, Sync::Yes).map_err(RunDirError::io(&path))?;
        Ok(run)
    }

    /// Opens a run that is there.
    pub fn open(&self, id: RunId) -> Result<(RunDir, RunFile), RunDirError> {
        let run = RunDir::at(&self.folder, id);
        let path = run.run_json();
        let bytes = match read_small(&path) {
            Err(RunDirError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Err(self.missing(&id.to_string()));
            }
            other => other?,
        };
        let file = parse(&path, &bytes)?;
        if file.run_id == id { Ok((run, file)) } else { Err(self.missing(&id.to_string())) }
    }

    /// A run by its id, or by the beginning or the end of it where that names one only.
    pub fn find(&self, wanted: &str) -> Result<(RunDir, RunFile), RunDirError> {
        if let Ok(id) = wanted.parse() {
            return self.open(id);
        }
        let upper = wanted.to_ascii_uppercase();
        let matches = |id: &RunId| {
            let text = id.to_string();
            upper.len() >= 4 && (text.starts_with(&upper) || text.ends_with(&upper))
        };
        let found: Vec<RunId> = self.ids()?.into_iter().filter(matches).collect();
        match found.as_slice() {
            [] => Err(self.missing(wanted)),
            [one] => self.open(*one),
            more => Err(RunDirError::Ambiguous {
                wanted: wanted.to_owned(),
                found: more.iter().take(10).map(RunId::to_string).collect(),
            }),
        }
    }

    /// The newest run of a workflow file, named as [`super::workflow_name_in`] does.
    pub fn newest_of(&self, workflow: &Path) -> Result<(RunDir, RunFile), RunDirError> {
        for id in self.ids()? {
            // A run whose file is damaged is not taken for the newest without a word: its own opening tells.
            if let Ok((run, file)) = self.open(id)
                && file.workflow.as_deref() == Some(workflow)
            {
                return Ok((run, file));
            }
        }
        Err(RunDirError::NeverRan { workflow: workflow.to_owned(), folder: self.folder.clone() })
    }

    /// All runs, newest first. No folder, no runs.
    pub fn ids(&self) -> Result<Vec<RunId>, RunDirError> {
        let entries = match self.folder.read_dir() {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(RunDirError::Io { path: self.folder.clone(), source }),
        };
        let mut ids: Vec<RunId> =
            entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        Ok(ids)
    }

    fn missing(&self, wanted: &str) -> RunDirError {
        RunDirError::NoSuchRun { wanted: wanted.to_owned(), folder: self.folder.clone() }
    }
}

/// Removes a run with all that is kept of it.
///
/// # Errors
/// Somebody works on it, or it cannot be removed.
pub fn remove(run: &RunDir) -> Result<(), RunDirError> {
    let _held = super::take_lock(run, None)?;
    // First what makes it a run: one that is half removed is none.
    for path in [run.run_json(), run.root().to_owned()] {
        let removed =
            if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        removed.map_err(RunDirError::io(&path))?;
    }
    Ok(())
}

fn parse(path: &Path, bytes: &[u8]) -> Result<RunFile, RunDirError> {
    #[derive(Deserialize)]
    struct Versioned {
        schema: u64,
    }
    let shape = |source| RunDirError::Shape { path: path.to_owned(), source };
    let Versioned { schema } = serde_json::from_slice(bytes).map_err(shape)?;
    if schema != u64::from(RUN_SCHEMA) {
        return Err(RunDirError::Schema { path: path.to_owned(), found: schema, known: RUN_SCHEMA });
    }
    serde_json::from_slice(bytes).map_err(shape)
}

/// Reads a state file, bounded.
pub(crate) fn read_small(path: &Path) -> Result<Vec<u8>, RunDirError> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(RunDirError::io(path))?;
    file.take(MOST_BYTES).read_to_end(&mut bytes).map_err(RunDirError::io(path))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn new(workflow: &str) -> NewRun {
        NewRun { name: "w".into(), workflow: Some(workflow.into()), ..NewRun::default() }
    }

    #[test]
    fn a_run_is_private_and_git_never_sees_it() {
        let folder = tempfile::tempdir().unwrap();
        let runs = Runs::of_project(folder.path(), None);
        let run = runs.create(new("w.toml")).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(run.root()), 0o700);
        assert_eq!(mode(&run.run_json()), 0o600);
        let ignore = folder.path().join(".claw/runs/.gitignore");
        assert_eq!(std::fs::read_to_string(ignore).unwrap(), "*\n");
        assert_eq!(runs.open(run.id()).unwrap().0, run);
    }

    #[test]
    fn the_newest_run_of_a_file_is_found_and_no_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let runs = Runs::of_project(folder.path(), Some(Path::new("elsewhere")));
        assert!(matches!(runs.newest_of(Path::new("a.toml")), Err(RunDirError::NeverRan { .. })));
        let mut mine = [runs.create(new("a.toml")).unwrap(), runs.create(new("a.toml")).unwrap()];
        mine.sort_by_key(RunDir::id);
        runs.create(new("b.toml")).unwrap();
        assert_eq!(runs.newest_of(Path::new("a.toml")).unwrap().0, mine[1]);
        assert!(folder.path().join("elsewhere").is_dir());
        assert_eq!(runs.ids().unwrap().len(), 3);
    }

    #[test]
    fn a_run_is_found_by_a_part_that_names_it_alone() {
        let folder = tempfile::tempdir().unwrap();
        let runs = Runs::in_folder(folder.path().into());
        let run = runs.create(new("a.toml")).unwrap();
        let id = run.id().to_string();
        assert_eq!(runs.find(&id[18..]).unwrap().0, run);
        assert_eq!(runs.find(&id.to_lowercase()).unwrap().0, run);
        assert!(matches!(runs.find("../.."), Err(RunDirError::NoSuchRun { .. })));
        runs.create(new("a.toml")).unwrap();
        assert!(matches!(runs.find(&id[..5]), Err(RunDirError::Ambiguous { .. })));
    }

    #[test]
    fn a_run_of_a_newer_claw_is_called_that() {
        let folder = tempfile::tempdir().unwrap();
        let runs = Runs::in_folder(folder.path().into());
        let run = runs.create(new("a.toml")).unwrap();
        let text = std::fs::read_to_string(run.run_json()).unwrap().replace("\"schema\": 1", "\"schema\": 2");
        durable::replace(&run.run_json(), text.as_bytes(), Mode::Private, Sync::No).unwrap();
        assert!(matches!(runs.open(run.id()), Err(RunDirError::Schema { found: 2, .. })));
    }
}
