//! What is to be run, and within which bounds.

use crate::sandbox::SandboxPolicy;
use claw_kernel::redact::Redactor;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What is executed.
#[derive(Clone, Debug)]
pub enum Program {
    /// A line or script for the shell (bash, else sh).
    Shell(String),
    /// A program and its arguments.
    Argv(OsString, Vec<OsString>),
}

/// Where output goes that is too long to keep.
#[derive(Clone, Debug)]
pub struct SpillTo {
    /// The folder; made on first use.
    pub folder: PathBuf,
    /// Bytes of both streams together above which a file is made.
    pub over: u64,
    /// Bytes after which the file ends, and this is said.
    pub most: u64,
}

/// A description of a process to run to its end.
#[derive(Clone, Debug)]
pub struct Job {
    /// What is executed.
    pub program: Program,
    /// Its working folder (absolute).
    pub folder: PathBuf,
    /// Beside the allowed part of this process's environment and settings that keep programs from asking; these win.
    pub env: Vec<(OsString, OsString)>,
    /// Its standard input; none: `/dev/null`.
    pub stdin: Option<Vec<u8>>,
    /// Its time; none: as long as it takes.
    pub time: Option<Duration>,
    /// From SIGTERM to SIGKILL, when it is cancelled or its time is over.
    pub grace: Duration,
    /// How long what it left behind may go on after its own end.
    pub left_behind: Duration,
    /// Bytes kept of each stream: the first half and the last half.
    pub keep: usize,
    /// Where the whole output goes when it is long; none: nowhere.
    pub spill: Option<SpillTo>,
    /// Where governing files are moved that it made; none: into the folder of `spill`, else into a private folder of its
    /// own among the system's temporary files.
    pub aside: Option<PathBuf>,
    /// Secrets that leave the output where it enters: what is kept and what is spilled are without them.
    pub redactor: Arc<Redactor>,
    /// What it may touch.
    pub sandbox: Arc<SandboxPolicy>,
    /// Whether it uses claw's own standard input, output and error: then nothing of them is kept.
    pub attached: bool,
    /// Whether the shell's last working folder is reported.
    pub report_folder: bool,
}

impl Job {
    /// A process has so long to end by itself.
    pub const GRACE: Duration = Duration::from_millis(1500);
    /// What a command left behind goes on for a second.
    pub const LEFT_BEHIND: Duration = Duration::from_secs(1);
    /// 256 KiB of each stream are kept.
    pub const KEEP: usize = 256 * 1024;

    /// A shell line: no input, no time limit, nothing spilled.
    pub fn shell(line: impl Into<String>, folder: impl Into<PathBuf>, sandbox: Arc<SandboxPolicy>) -> Self {
        Self::new(Program::Shell(line.into()), folder.into(), sandbox)
    }

    /// A program with arguments: no input, no time limit, nothing spilled.
    pub fn argv(
        program: impl Into<OsString>,
        arguments: impl IntoIterator<Item = OsString>,
        folder: impl Into<PathBuf>,
        sandbox: Arc<SandboxPolicy>,
    ) -> Self {
        Self::new(Program::Argv(program.into(), arguments.into_iter().collect()), folder.into(), sandbox)
    }

    fn new(program: Program, folder: PathBuf, sandbox: Arc<SandboxPolicy>) -> Self {
        Self {
            program,
            folder,
            env: Vec::new(),
            stdin: None,
            time: None,
            grace: Self::GRACE,
            left_behind: Self::LEFT_BEHIND,
            keep: Self::KEEP,
            spill: None,
            aside: None,
            redactor: Arc::default(),
            sandbox,
            attached: false,
            report_folder: false,
        }
    }
}
