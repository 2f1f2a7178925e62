//! Starts a job: environment, folder, session, wall.

use super::env;
use super::job::{Job, Program};
use super::pipes::Pipes;
use super::scratch::Scratch;
use crate::error::ToolError;
use crate::files::paths;
use crate::platform::{
    ChildPlan, FirstProcess, Group, House, HousePlan, adopt_orphans, open_resolved, prepare, prepare_house,
    rehearse, try_namespaces,
};
use crate::sandbox::{Governed, SandboxPolicy};
use claw_kernel::ids::RunId;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::process::{Child, Command};

/// The mark in the environment by which what left its session is found.
const MARK: &str = "CLAW_JOB";
const FOLDER_NAME: &str = ".folder";
const FOLDER_FILE: &str = "CLAW_FOLDER_FILE";
/// Bytes of a path, as the kernel has it.
const MOST_PATH: u64 = 4096;
/// The first time included.
const MOST_LOOKS: u32 = 4;
/// The folder is written at the shell's exit, so that `exit` in the line does not skip it.
const REPORT_FOLDER: &str = r#"trap 'pwd -P 2>/dev/null >"$CLAW_FOLDER_FILE"' EXIT; "#;

pub(super) struct Started {
    pub(super) id: String,
    pub(super) child: Child,
    pub(super) group: Group,
    pub(super) pipes: Pipes,
    pub(super) governed: Governed,
    /// Where what governs is put, resolved.
    pub(super) aside: PathBuf,
    scratch: Option<Scratch>,
}

impl Started {
    /// What the shell reported at its end; the report is gone then. The command could write anything there, and put
    /// anything in its place.
    pub(super) fn last_folder(&self, sandbox: &SandboxPolicy) -> Option<PathBuf> {
        let path = folder_file(self.scratch.as_ref()?);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        // Other commands of the policy could have put a symlink in place of the folder.
        let folder = open_resolved(path.parent()?, OFlags::RDONLY | OFlags::DIRECTORY).ok()?;
        let file = File::from(rustix::fs::openat(&folder, FOLDER_NAME, flags, Mode::empty()).ok()?);
        let _ = rustix::fs::unlinkat(&folder, FOLDER_NAME, AtFlags::empty());
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(MOST_PATH + 1).read_to_end(&mut bytes).ok()?;
        if bytes.len() as u64 > MOST_PATH || bytes.pop()? != b'\n' {
            return None;
        }
        let folder = sandbox.outside(&PathBuf::from(OsString::from_vec(bytes)));
        (folder.is_absolute() && folder.is_dir()).then_some(folder)
    }

    /// The temporary folder, to be removed.
    pub(super) fn take_scratch(&mut self) -> Option<Scratch> {
        self.scratch.take()
    }
}

fn folder_file(scratch: &Scratch) -> PathBuf {
    scratch.path().join(FOLDER_NAME)
}

impl Program {
    pub(super) fn name(&self) -> String {
        match self {
            Self::Shell(_) => shell().display().to_string(),
            Self::Argv(program, _) => program.to_string_lossy().into_owned(),
        }
    }
}

pub(super) fn start(job: &Job) -> Result<Started, ToolError> {
    if !job.folder.is_dir() {
        let source = io::Error::new(io::ErrorKind::NotFound, "the working folder is not there");
        return Err(ToolError::Io { path: job.folder.clone(), source });
    }
    adopt_orphans();
    let id = next_id();
    let scratch = job.sandbox.scratch().and_then(|scratch| scratch.child().ok());
    let aside = aside(job, &id);
    let failed = |source| ToolError::Start { program: job.program.name(), source };
    let Spawned { mut child, governed, first } = spawn(job, &id, scratch.as_ref()).map_err(failed)?;
    let ended = || failed(io::Error::other("it ended before it was started"));
    let group = child.id().and_then(|pid| Group::new(pid, format!("{MARK}={id}"))).ok_or_else(ended)?;
    let group = group.with_first(first);
    let pipes = Pipes::of(&mut child, job.stdin.clone());
    Ok(Started { id, child, group, pipes, governed, aside, scratch })
}

/// Never without the mounts where the system has them: what another command does to the files that are to be mounted
/// makes a start fail, and at worst that is the end of it.
fn spawn(job: &Job, id: &str, scratch: Option<&Scratch>) -> io::Result<Spawned> {
    let mut looked = 1;
    loop {
        let governed = job.sandbox.governed();
        // First the house: it knows how things are called in it.
        let plan = job.sandbox.child(&job.folder, &governed)?;
        let mut command = command(job, id, scratch);
        let first = prepare(&mut command, plan)?;
        let spawned = command.spawn();
        // With it goes the other end of what the first process is told by.
        drop(command);
        let first = first.and_then(FirstProcess::number);
        match spawned {
            Ok(child) => return Ok(Spawned { child, governed, first }),
            Err(error) => {
                clear_away(first);
                if looked == MOST_LOOKS || !job.sandbox.may_mount() || !has_changed(&error) {
                    return Err(error);
                }
                looked += 1;
            }
        }
    }
}

struct Spawned {
    child: Child,
    governed: Governed,
    first: Option<Pid>,
}

/// A first process that could not make its room has ended or is about to.
fn clear_away(first: Option<Pid>) {
    if let Some(first) = first {
        let _ = rustix::process::kill_process(first, Signal::KILL);
        let _ = rustix::process::waitpid(Some(first), WaitOptions::empty());
    }
}

/// What was looked at may have gone before it was mounted.
fn has_changed(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::NOENT | Errno::NOTDIR | Errno::STALE | Errno::AGAIN))
}

/// Tries what a plan mounts, in a child that ends before it runs anything. Errors: what the system says to it.
pub(crate) fn try_mounts(plan: ChildPlan) -> io::Result<()> {
    attempt(|command| rehearse(command, plan))
}

/// Tries whether the system gives namespaces to this process. Errors: what it says.
pub(crate) fn try_rooms() -> io::Result<()> {
    attempt(try_namespaces)
}

#[expect(clippy::disallowed_methods, reason = "this is the room that starts processes")]
fn attempt(what: impl FnOnce(&mut Command)) -> io::Result<()> {
    let mut command = Command::new(shell());
    what(&mut command);
    match command.as_std_mut().spawn() {
        Err(error) if error.raw_os_error() == Some(Errno::CANCELED.raw_os_error()) => Ok(()),
        Err(error) => Err(error),
        Ok(mut child) => child.wait().map(|_| ()),
    }
}

/// Makes a house: a child makes it and waits until it is held open here. Gives the socket on which a proxy is asked, too,
/// where the plan has one. Errors: what the system says to it.
#[expect(clippy::disallowed_methods, reason = "this is the room that starts processes")]
pub(crate) fn raise_house(plan: HousePlan) -> io::Result<(House, Option<OwnedFd>)> {
    let opens = plan.opens();
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg("read _").env_clear().current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    prepare_house(&mut command, plan);
    let mut child = command.as_std_mut().spawn()?;
    let house = House::of(child.id(), opens);
    // Its input closes: it has nothing more to wait for.
    drop(child.stdin.take());
    child.wait()?;
    house
}

/// To be asked before the job runs: a command could lead a symlink elsewhere.
fn aside(job: &Job, id: &str) -> PathBuf {
    match (&job.aside, &job.spill) {
        (Some(aside), _) => paths::resolve(aside),
        (None, Some(spill)) => paths::resolve(&spill.folder),
        (None, None) => paths::resolve(&std::env::temp_dir()).join(format!("claw-refused-{id}")),
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the room that starts processes")]
fn command(job: &Job, id: &str, scratch: Option<&Scratch>) -> Command {
    let mut command = match &job.program {
        Program::Shell(line) => {
            let mut command = Command::new(shell());
            let report = if job.report_folder && scratch.is_some() { REPORT_FOLDER } else { "" };
            command.arg("-c").arg(format!("{report}{line}"));
            command
        }
        Program::Argv(program, arguments) => {
            let mut command = Command::new(program);
            command.args(arguments);
            command
        }
    };
    command.env_clear().envs(env::inherited()).envs(env::QUIET);
    if let Some(scratch) = scratch {
        let inside = job.sandbox.inside(scratch.path());
        if job.report_folder {
            command.env(FOLDER_FILE, inside.join(FOLDER_NAME));
        }
        if job.sandbox.confines() {
            command.env("TMPDIR", inside);
        }
    }
    command.envs(job.sandbox.environment());
    command.envs(job.env.iter().map(|(name, value)| (name, value))).env(MARK, id);
    if job.attached {
        command.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
    } else {
        let stdin = if job.stdin.is_some() { Stdio::piped() } else { Stdio::null() };
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    }
    command.current_dir(&job.folder).kill_on_drop(true);
    command
}

fn shell() -> &'static Path {
    static SHELL: LazyLock<&'static Path> = LazyLock::new(|| {
        const KNOWN: [&str; 3] = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"];
        KNOWN.iter().map(Path::new).find(|path| path.exists()).unwrap_or(Path::new("/bin/sh"))
    });
    &SHELL
}

/// Unique among all processes of claw on this machine.
fn next_id() -> String {
    static PROCESS: LazyLock<String> = LazyLock::new(|| RunId::fresh().to_string().to_lowercase());
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{}-{}", *PROCESS, NEXT.fetch_add(1, Ordering::Relaxed))
}
