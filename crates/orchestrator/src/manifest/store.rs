//! Manifests on disk: the only writer, and the reader that does not believe a dead process.

use super::build::{self, Standing, StepFacts};
use super::schema::{Manifest, ManifestStatus, SCHEMA};
use crate::addr::StepAddr;
use crate::rundir::{self, RunDir};
use claw_kernel::durable::{self, Mode, Sync};
use serde::Deserialize;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Manifests above this length are not read.
const MOST_BYTES: u64 = 8 << 20;

/// A manifest that cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The file system says no.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file does not hold a manifest.
    #[error("{} is damaged: {source}", path.display())]
    Shape {
        /// Which file.
        path: PathBuf,
        /// What is wrong in it.
        source: serde_json::Error,
    },
    /// Written by a newer claw.
    #[error("{} is of schema {found}; this claw reads schema {SCHEMA}", path.display())]
    Schema {
        /// Which file.
        path: PathBuf,
        /// In the file.
        found: u64,
    },
}

/// Makes the folder of an attempt: before its first file.
pub fn make_folder(run: &RunDir, step: &StepAddr, attempt: u32) -> Result<PathBuf, ManifestError> {
    let folder = run.node(step, attempt);
    durable::private_dir(&folder).map_err(io_at(&folder))?;
    Ok(folder)
}

/// Writes the picture of an attempt whose folder is there. Skipped and cached steps have none.
pub fn write(run: &RunDir, facts: &StepFacts, standing: &Standing) -> Result<(), ManifestError> {
    match build::manifest(run, facts, standing) {
        Some(manifest) => save(run, &manifest),
        None => Ok(()),
    }
}

/// Writes a manifest to its place, which its step and attempt name. A reader sees the old one or the new one.
pub fn save(run: &RunDir, manifest: &Manifest) -> Result<(), ManifestError> {
    let path = run.manifest(&manifest.step, manifest.attempt);
    let mut bytes = Vec::with_capacity(1536);
    serde_json::to_writer_pretty(&mut bytes, manifest)
        .map_err(|source| ManifestError::Shape { path: path.clone(), source })?;
    bytes.push(b'\n');
    durable::replace(&path, &bytes, Mode::Private, Sync::No).map_err(io_at(&path))
}

/// Reads the manifest of an attempt as it stands in the file. Paths in it are for people: nothing follows them.
pub fn load(run: &RunDir, step: &StepAddr, attempt: u32) -> Result<Manifest, ManifestError> {
    let path = run.manifest(step, attempt);
    let mut bytes = Vec::new();
    let file = File::open(&path).map_err(io_at(&path))?;
    file.take(MOST_BYTES).read_to_end(&mut bytes).map_err(io_at(&path))?;
    parse(&path, &bytes)
}

/// As [`load`]; one that is not final and whose process is gone is shown as interrupted.
pub fn view(run: &RunDir, step: &StepAddr, attempt: u32) -> Result<Manifest, ManifestError> {
    // A number may have been given to another process since: the lock tells for sure.
    let gone = |manifest: &Manifest| match manifest.pid {
        Some(pid) => {
            rundir::is_gone(pid, manifest.boot_id.as_deref().unwrap_or_default())
                || !rundir::holder(run).is_held()
        }
        None => true,
    };
    let mut manifest = load(run, step, attempt)?;
    if !manifest.status.is_final() && gone(&manifest) {
        manifest.status = ManifestStatus::Interrupted;
        manifest.waiting_for = None;
    }
    Ok(manifest)
}

/// The manifest of some bytes.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Manifest, ManifestError> {
    #[derive(Deserialize)]
    struct Versioned {
        schema: u64,
    }
    let shape = |source| ManifestError::Shape { path: path.to_owned(), source };
    match serde_json::from_slice::<Manifest>(bytes) {
        Ok(manifest) if manifest.schema == SCHEMA => Ok(manifest),
        Ok(manifest) => {
            Err(ManifestError::Schema { path: path.to_owned(), found: u64::from(manifest.schema) })
        }
        Err(source) => match serde_json::from_slice::<Versioned>(bytes) {
            Ok(Versioned { schema }) if schema > u64::from(SCHEMA) => {
                Err(ManifestError::Schema { path: path.to_owned(), found: schema })
            }
            Ok(_) | Err(_) => Err(shape(source)),
        },
    }
}

pub(super) fn io_at(path: &Path) -> impl FnOnce(io::Error) -> ManifestError + use<> {
    let path = path.to_owned();
    move |source| ManifestError::Io { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::record::EndState;
    use crate::manifest::build::tests::{ended, facts};
    use claw_kernel::clock::Timestamp;
    use claw_kernel::ids::RunId;
    use proptest::prelude::*;
    use std::os::unix::fs::PermissionsExt;

    fn run() -> (tempfile::TempDir, RunDir) {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::at(folder.path(), RunId::fresh());
        (folder, run)
    }

    #[test]
    fn a_manifest_is_whole_private_and_alone_in_its_folder() {
        let (_folder, run) = run();
        let facts = facts();
        let folder = make_folder(&run, &facts.step, 1).unwrap();
        let started_at = Timestamp::from_millis(1);
        write(&run, &facts, &Standing::Running { started_at }).unwrap();
        write(&run, &facts, &Standing::Ended(Box::new(ended(EndState::Failed)))).unwrap();
        assert_eq!(load(&run, &facts.step, 1).unwrap().status, ManifestStatus::Failed);
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join("manifest.json"))), (0o700, 0o600));
        assert_eq!(folder.read_dir().unwrap().count(), 1);
    }

    #[test]
    fn one_that_says_running_of_a_process_that_is_gone_is_interrupted() {
        let (_folder, run) = run();
        let mut facts = facts();
        make_folder(&run, &facts.step, 1).unwrap();
        let running = Standing::Running { started_at: Timestamp::from_millis(1) };
        facts.boot_id = "another boot".into();
        write(&run, &facts, &running).unwrap();
        assert_eq!(load(&run, &facts.step, 1).unwrap().status, ManifestStatus::Running);
        assert_eq!(view(&run, &facts.step, 1).unwrap().status, ManifestStatus::Interrupted);
        (facts.pid, facts.boot_id) = (std::process::id(), rundir::boot_id());
        write(&run, &facts, &running).unwrap();
        let lock = rundir::take_lock(&run, None).unwrap();
        assert_eq!(view(&run, &facts.step, 1).unwrap().status, ManifestStatus::Running);
        drop(lock);
        assert_eq!(view(&run, &facts.step, 1).unwrap().status, ManifestStatus::Interrupted);
    }

    #[test]
    fn one_of_a_newer_claw_is_called_that() {
        let newer = parse(Path::new("m"), br#"{"schema": 2, "status": "dreaming"}"#);
        assert!(matches!(newer, Err(ManifestError::Schema { found: 2, .. })));
        assert!(matches!(parse(Path::new("m"), b"{"), Err(ManifestError::Shape { .. })));
    }

    #[test]
    fn a_manifest_cut_or_flipped_anywhere_is_read_or_refused() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../tests/fixtures/manifest/v1/completed-agent.json");
        let whole = std::fs::read(&path).unwrap();
        let end = whole.trim_ascii_end().len();
        for at in 0..end {
            assert!(parse(&path, &whole[..at]).is_err(), "cut at {at}");
            for bit in [0x01, 0x20, 0x80] {
                let mut bad = whole.clone();
                bad[at] ^= bit;
                if let Ok(manifest) = parse(&path, &bad) {
                    assert_eq!(manifest.schema, SCHEMA, "byte {at}");
                }
            }
        }
    }

    #[test]
    fn the_frozen_manifests_stay_readable() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/manifest/v1");
        let mut read = 0;
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            let manifest = parse(&path, &std::fs::read(&path).unwrap()).unwrap();
            assert_eq!(manifest.schema, 1);
            read += 1;
        }
        assert!(read >= 3, "{read}");
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(Path::new("m"), &bytes);
        }
    }
}
