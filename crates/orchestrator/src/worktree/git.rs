//! The only place that runs the `git` program: no hooks, no monitors, no questions, no network, no signatures, whatever
//! the configuration says. Filters and merge drivers that the user configured stay: without them files are not what they
//! should be, and a file of the repository can only name them.

use super::error::WorktreeError;
use claw_kernel::cancel::CancelToken;
use claw_tools::process::{self, End, Job};
use claw_tools::sandbox::SandboxPolicy;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of an answer of git that are taken in.
pub(super) const MOST: usize = 64 << 20;
/// No call of git takes longer.
const TIME: Duration = Duration::from_secs(600);
/// Bytes of what it says in an error.
const SAID: usize = 400;

/// Settings that win over every file.
const SETTINGS: [&str; 19] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.splitIndex=false",
    "core.pager=cat",
    "core.editor=false",
    "core.sshCommand=false",
    "core.askPass=false",
    "core.safecrlf=false",
    "credential.helper=",
    "protocol.allow=never",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "advice.addEmbeddedRepo=false",
    "advice.addIgnoredFile=false",
    "core.quotePath=false",
];

const ENVIRONMENT: [(&str, &str); 9] = [
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
    ("GIT_ASKPASS", "false"),
    ("SSH_ASKPASS", "false"),
    ("GIT_SSH_COMMAND", "false"),
];

/// How git is run: in which folder, for whom.
#[derive(Clone, Debug)]
pub(super) struct Git {
    folder: PathBuf,
    policy: Arc<SandboxPolicy>,
    env: Vec<(OsString, OsString)>,
}

impl Git {
    pub(super) fn new(folder: &Path, policy: Arc<SandboxPolicy>) -> Self {
        let mut env: Vec<(OsString, OsString)> =
            ENVIRONMENT.iter().map(|(name, value)| (name.into(), value.into())).collect();
        env.extend(std::env::var_os("XDG_CONFIG_HOME").map(|folder| ("XDG_CONFIG_HOME".into(), folder)));
        Self { folder: folder.to_owned(), policy, env }
    }

    /// With one more variable in all calls.
    pub(super) fn with(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// A call.
    pub(super) fn call<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Call<'_> {
        let arguments = arguments.into_iter().map(|argument| argument.as_ref().to_owned()).collect();
        Call { git: self, arguments, folder: None, env: Vec::new(), stdin: None, keep: MOST }
    }
}

/// A call of git that is not made yet.
pub(super) struct Call<'g> {
    git: &'g Git,
    arguments: Vec<OsString>,
    folder: Option<PathBuf>,
    env: Vec<(OsString, OsString)>,
    stdin: Option<Vec<u8>>,
    keep: usize,
}

/// What a call gave.
pub(super) struct Ran {
    what: String,
    pub(super) code: i32,
    pub(super) out: Vec<u8>,
    /// Bytes that are not in `out`, out of its middle.
    pub(super) missing: u64,
    pub(super) said: String,
}

impl Call<'_> {
    /// In another folder.
    pub(super) fn at(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }

    pub(super) fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    pub(super) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// Only so many bytes of its output are needed.
    pub(super) fn keep(mut self, bytes: usize) -> Self {
        self.keep = bytes;
        self
    }

    /// Its exit code may be any.
    pub(super) async fn run(self) -> Result<Ran, WorktreeError> {
        let what = self.arguments.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let settings = SETTINGS.iter().flat_map(|setting| ["-c".into(), setting.into()]);
        let arguments: Vec<OsString> = settings.chain(self.arguments).collect();
        let folder = self.folder.as_ref().unwrap_or(&self.git.folder);
        let mut job = Job::argv("git", arguments, folder, Arc::clone(&self.git.policy));
        job.env = self.git.env.iter().chain(&self.env).cloned().collect();
        job.stdin = self.stdin;
        job.time = Some(TIME);
        job.keep = self.keep;
        let finished = process::run(job, &CancelToken::new()).await?;
        let said = finished.err.text(SAID).trim().to_owned();
        match finished.end {
            End::Exited(code) => {
                Ok(Ran { what, code, out: finished.out.bytes(), missing: finished.out.missing(), said })
            }
            End::Signalled(_) | End::TimedOut | End::Cancelled => {
                Err(WorktreeError::Git { what, code: None, said })
            }
        }
    }

    /// It must succeed, and all that it gave is needed.
    pub(super) async fn bytes(self) -> Result<Vec<u8>, WorktreeError> {
        let most = self.keep;
        let ran = self.run().await?;
        if ran.missing > 0 {
            return Err(WorktreeError::TooMuch { what: ran.what, most });
        }
        if ran.code == 0 { Ok(ran.out) } else { Err(ran.failed()) }
    }

    /// It must succeed and gives a line.
    pub(super) async fn line(self) -> Result<String, WorktreeError> {
        let bytes = self.bytes().await?;
        Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())
    }

    /// It must succeed.
    pub(super) async fn done(self) -> Result<(), WorktreeError> {
        self.bytes().await.map(drop)
    }
}

impl Ran {
    pub(super) fn failed(self) -> WorktreeError {
        WorktreeError::Git { what: self.what, code: Some(self.code), said: self.said }
    }

    pub(super) fn unreadable(&self) -> WorktreeError {
        WorktreeError::Unreadable { what: self.what.clone() }
    }
}

/// Names in an answer that ends each with NUL.
pub(super) fn names(bytes: &[u8]) -> Vec<PathBuf> {
    let names = bytes.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.map(|name| PathBuf::from(OsString::from_vec(name.to_vec()))).collect()
}
