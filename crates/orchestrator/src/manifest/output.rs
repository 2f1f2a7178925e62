//! What steps gave: `output.md` for people, values for other steps. The only place that reads a value from a path
//! which stands in a journal.

use super::schema::ManifestStatus;
use super::store::{ManifestError, io_at};
use crate::addr::StepAddr;
use crate::journal::record::OutputRef;
use crate::manifest::build::StepFacts;
use crate::rundir::RunDir;
use claw_kernel::digest::Digest;
use claw_kernel::durable::{self, Mode, Sync};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Longer JSON texts lie in a file of their own.
pub const INLINE_BYTES: usize = 16 * 1024;
/// Files above this length are no outputs.
const MOST_BYTES: u64 = 1 << 30;

/// The end of an agent as people read it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AgentResult<'a> {
    /// How it ended.
    pub status: ManifestStatus,
    /// Its final text, or what went wrong.
    pub text: Result<&'a str, &'a str>,
}

/// The text of an agent's `output.md`: its task, and its result once there is one.
pub fn markdown(facts: &StepFacts, prompt: &str, result: Option<&AgentResult<'_>>) -> String {
    let mut text = String::with_capacity(512 + prompt.len());
    text.push_str("# Agent Task\n\n");
    // Writing to a String cannot fail.
    if let Some(agent) = &facts.agent {
        let _ = writeln!(text, "- id: {agent}");
    }
    let one_line = |value: &str| value.split_whitespace().collect::<Vec<_>>().join(" ");
    let _ = writeln!(text, "- name: {}", one_line(&facts.name));
    let _ = writeln!(text, "- description: {}", one_line(&facts.description));
    if let Some(kind) = &facts.subagent_type {
        let _ = writeln!(text, "- type: {kind}");
    }
    let _ = writeln!(text, "- step: {}, attempt {}", facts.step, facts.attempt);
    let _ = writeln!(text, "- created: {}", facts.created_at);
    let _ = writeln!(text, "\n## Prompt\n\n{}", prompt.trim_end());
    if let Some(AgentResult { status, text: said }) = result {
        let (title, said) = match said {
            Ok(said) => ("Final response", said),
            Err(error) => ("Error", error),
        };
        let _ = writeln!(text, "\n## Result\n\n- status: {}\n", status.as_str());
        let _ = writeln!(text, "### {title}\n\n{}", said.trim_end());
    }
    text
}

/// Writes an agent's `output.md` into its folder, which is there. Nobody looks for it before the agent is done.
pub fn write_markdown(
    run: &RunDir,
    facts: &StepFacts,
    prompt: &str,
    result: Option<&AgentResult<'_>>,
) -> Result<(), ManifestError> {
    let path = run.output(&facts.step, facts.attempt, false);
    let text = markdown(facts, prompt, result);
    let written = match durable::create(&path, text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            durable::replace(&path, text.as_bytes(), Mode::Private, Sync::No)
        }
        written => written,
    };
    written.map_err(io_at(&path))
}

/// Writes a JSON output into the folder of its attempt, which is there: for people and other programs.
pub fn write_json(run: &RunDir, step: &StepAddr, attempt: u32, value: &Value) -> Result<(), ManifestError> {
    let path = run.output(step, attempt, true);
    let mut bytes = serde_json::to_vec_pretty(value)
        .map_err(|source| ManifestError::Shape { path: path.clone(), source })?;
    bytes.push(b'\n');
    durable::replace(&path, &bytes, Mode::Private, Sync::No).map_err(io_at(&path))
}

/// Puts a value where the journal can name it: into the record itself, or into a file that is on disk when this
/// returns, because the record that names it will be.
pub fn keep(
    run: &RunDir,
    step: &StepAddr,
    attempt: u32,
    value: Arc<Value>,
) -> Result<OutputRef, ManifestError> {
    let relative = RunDir::big_output(step, attempt);
    let path = run.root().join(&relative);
    let shape = |source| ManifestError::Shape { path: path.clone(), source };
    let bytes = serde_json::to_vec(&*value).map_err(shape)?;
    if bytes.len() <= INLINE_BYTES {
        return Ok(OutputRef::Inline(value));
    }
    if let Some(folder) = path.parent() {
        durable::private_dir(folder).map_err(io_at(folder))?;
    }
    durable::replace(&path, &bytes, Mode::Private, Sync::Yes).map_err(io_at(&path))?;
    Ok(OutputRef::File { path: relative, bytes: bytes.len() as u64, digest: Digest::of(&bytes) })
}

/// The digest of a value: of its JSON text, wherever it lies.
pub fn digest_of(output: &OutputRef) -> serde_json::Result<Digest> {
    match output {
        OutputRef::Inline(value) => Ok(Digest::of(serde_json::to_vec(&**value)?)),
        OutputRef::File { digest, .. } => Ok(*digest),
    }
}

/// The value that a record names. A path that leaves the run's folder, another length or other bytes: `InvalidData`.
pub fn load_output(run: &RunDir, output: &OutputRef) -> io::Result<Arc<Value>> {
    let (path, bytes, digest) = match output {
        OutputRef::Inline(value) => return Ok(Arc::clone(value)),
        OutputRef::File { path, bytes, digest } => (path, *bytes, digest),
    };
    let whole = path_inside(run, path)?;
    let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {what}", whole.display()));
    let file = File::open(&whole)?;
    let length = file.metadata()?.len();
    if length != bytes || length > MOST_BYTES {
        return Err(bad("not the length that the journal names"));
    }
    let mut text = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    file.take(length).read_to_end(&mut text)?;
    if Digest::of(&text) != *digest {
        return Err(bad("not the bytes that the journal names"));
    }
    Ok(Arc::new(serde_json::from_slice(&text)?))
}

/// A relative path of names only, which no symlink leads out of the run's folder.
fn path_inside(run: &RunDir, relative: &str) -> io::Result<PathBuf> {
    let plain = !relative.is_empty()
        && Path::new(relative).components().all(|part| matches!(part, Component::Normal(_)));
    let outside = || {
        let message = format!("`{relative}` is not a path inside the run's folder");
        io::Error::new(io::ErrorKind::InvalidData, message)
    };
    if !plain {
        return Err(outside());
    }
    let root = run.root().canonicalize()?;
    let whole = root.join(relative).canonicalize()?;
    if whole.starts_with(&root) { Ok(whole) } else { Err(outside()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::build::tests::facts;
    use claw_kernel::ids::RunId;
    use serde_json::json;

    fn run() -> (tempfile::TempDir, RunDir) {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::at(&folder.path().join("runs"), RunId::fresh());
        durable::private_dir(run.root()).unwrap();
        (folder, run)
    }

    fn step() -> StepAddr {
        "a=x/b".parse().unwrap()
    }

    #[test]
    fn small_values_lie_in_the_record_and_big_ones_in_a_file() {
        let (_folder, run) = run();
        for (length, inline) in [(100, true), (INLINE_BYTES - 2, true), (INLINE_BYTES - 1, false)] {
            let value = Arc::new(json!("x".repeat(length)));
            let output = keep(&run, &step(), 1, Arc::clone(&value)).unwrap();
            assert_eq!(matches!(output, OutputRef::Inline(_)), inline, "{length}");
            assert_eq!(load_output(&run, &output).unwrap(), value);
            assert_eq!(digest_of(&output).unwrap(), Digest::of(value.to_string()));
        }
    }

    #[test]
    fn a_changed_file_is_refused() {
        let (_folder, run) = run();
        let output = keep(&run, &step(), 1, Arc::new(json!("x".repeat(INLINE_BYTES)))).unwrap();
        let OutputRef::File { path, .. } = &output else { panic!("{output:?}") };
        let path = run.root().join(path);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[9] = b'y';
        durable::replace(&path, &bytes, Mode::Private, Sync::No).unwrap();
        assert_eq!(load_output(&run, &output).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn no_record_reads_a_file_outside_the_run() {
        let (folder, run) = run();
        let secret = folder.path().join("secret.json");
        durable::replace(&secret, b"1", Mode::Private, Sync::No).unwrap();
        std::os::unix::fs::symlink(&secret, run.root().join("link")).unwrap();
        for path in ["../../secret.json", secret.to_str().unwrap(), "link", "", "."] {
            let output = OutputRef::File { path: path.to_owned(), bytes: 1, digest: Digest::of("1") };
            let error = load_output(&run, &output).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{path}");
        }
    }

    #[test]
    fn an_output_for_people_tells_task_and_result() {
        let result = AgentResult { status: ManifestStatus::Completed, text: Ok("All done.\n") };
        insta::assert_snapshot!(markdown(&facts(), "Fix it.\n", Some(&result)), @r###"
        # Agent Task

        - id: ag_0123456789abcdefghjkmnpqrs
        - name: edit
        - description: Carry out the plan
        - type: general-purpose
        - step: fix@2/edit, attempt 1
        - created: 2025-12-01T09:23:42.042Z

        ## Prompt

        Fix it.

        ## Result

        - status: completed

        ### Final response

        All done.
        "###);
        let failed = AgentResult { status: ManifestStatus::Failed, text: Err("no quota left") };
        let text = markdown(&facts(), "Fix it.", Some(&failed));
        assert!(text.ends_with("## Result\n\n- status: failed\n\n### Error\n\nno quota left\n"), "{text}");
        assert!(markdown(&facts(), "Fix it.", None).ends_with("## Prompt\n\nFix it.\n"));
    }
}
