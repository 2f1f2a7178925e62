//! Runs a job to its end: output drained all the while, time and cancel kept, nothing left of it.

use super::capture::{Capture, Kept, SpilledOutput, Stream};
use super::job::Job;
use super::start::{Started, start};
use crate::error::ToolError;
use crate::sandbox::SandboxStatus;
use claw_kernel::cancel::CancelToken;
use claw_kernel::tasks;
use rustix::process::Signal;
use std::future::Future;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::LazyLock;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// For processes that were killed to be gone, and for their pipes to close.
const AFTER_KILL: Duration = Duration::from_millis(300);

/// Nobody waits any longer: jobs that are being ended are killed at once.
static HASTE: LazyLock<CancelToken> = LazyLock::new(CancelToken::new);

/// Ends the grace of all jobs of this process that are being ended, now and from now on: SIGKILL at once. For the second
/// signal of a user; cancel the jobs first.
pub fn no_more_grace() {
    HASTE.cancel();
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with a code.
    Exited(i32),
    /// By a signal that claw did not send.
    Signalled(i32),
    /// Its time was over.
    TimedOut,
    /// It was cancelled.
    Cancelled,
}

/// A job that has ended. Nothing of it lives.
#[derive(Debug)]
pub struct Finished {
    /// How.
    pub end: End,
    /// Standard output.
    pub out: Kept,
    /// Standard error.
    pub err: Kept,
    /// The file with all of it, where it was long.
    pub spilled: Option<SpilledOutput>,
    /// Processes that it had left behind and that were ended.
    pub left_behind: usize,
    /// Governing files that it made and that were moved out of the workspace.
    pub put_aside: Vec<PathBuf>,
    /// The shell's last working folder, where that was asked for and is known.
    pub folder: Option<PathBuf>,
    /// What held it.
    pub sandbox: Box<SandboxStatus>,
    /// From start to end.
    pub took: Duration,
}

/// Runs a job. Cancel: SIGTERM at once, SIGKILL after 1.5 s; what came until then is given back. Dropping the future
/// kills at once. Errors: the job could not be started or waited for.
///
/// To be called on a thread of the runtime that lives as long as the job: the kernel ends children of a dead thread.
pub async fn run(job: Job, cancel: &CancelToken) -> Result<Finished, ToolError> {
    run_live(job, cancel, Live::default()).await
}

/// Sees output as it comes, raw: known secrets are still in it.
pub type Tap = Box<dyn FnMut(Stream, &[u8]) + Send>;

/// What a running job is connected with.
#[derive(Default)]
pub struct Live {
    /// What the job reads, after what it was given at the start; it ends when all senders are gone.
    pub input: Option<mpsc::Receiver<Vec<u8>>>,
    /// Who sees its output. Must not block.
    pub tap: Option<Tap>,
}

/// The same as [`run`], for a job that somebody talks to while it runs.
pub async fn run_live(mut job: Job, cancel: &CancelToken, live: Live) -> Result<Finished, ToolError> {
    if cancel.is_cancelled() {
        return Err(ToolError::Cancelled);
    }
    let began = Instant::now();
    if live.input.is_some() {
        job.stdin.get_or_insert_default();
    }
    let program = job.program.name();
    let failed = |source| ToolError::Start { program, source };
    let mut started = start(&job)?;
    if let Some(input) = live.input {
        started.pipes.feed_from(input);
    }
    let mut capture = Capture::new(job.keep, job.spill.clone(), started.id.clone(), &job.redactor);
    capture.tap = live.tap;
    let mut running =
        Running { started, capture, grace: job.grace, left_behind: job.left_behind, gone: false };
    let (end, left_behind) =
        running.finish(job.time.map(|time| began + time), cancel).await.map_err(failed)?;
    running.gone = true;
    let folder = running.started.last_folder(&job.sandbox);
    let put_aside = running.put_aside().await;
    if let Some(scratch) = running.started.take_scratch() {
        scratch.clear().await;
    }
    let (out, err, spilled) = running.capture.finish();
    let sandbox = Box::new(job.sandbox.status());
    Ok(Finished { end, out, err, spilled, left_behind, put_aside, folder, sandbox, took: began.elapsed() })
}

/// Done when nobody waits any longer.
pub(super) async fn haste() {
    HASTE.cancelled().await;
}

struct Running {
    started: Started,
    capture: Capture,
    grace: Duration,
    left_behind: Duration,
    gone: bool,
}

enum Why {
    Exited(ExitStatus),
    Time,
    Cancel,
}

impl Running {
    async fn finish(&mut self, deadline: Option<Instant>, cancel: &CancelToken) -> io::Result<(End, usize)> {
        match self.wait(deadline, cancel).await? {
            Why::Exited(status) => {
                let over = Instant::now() + self.left_behind;
                let left = self.clear(earliest(over, deadline), cancel.cancelled()).await;
                Ok((end_of(status), left))
            }
            Why::Time => {
                self.terminate().await?;
                Ok((End::TimedOut, 0))
            }
            Why::Cancel => {
                self.terminate().await?;
                Ok((End::Cancelled, 0))
            }
        }
    }

    /// What governs is put back as it was; off the runtime's threads where there is something to do.
    async fn put_aside(&mut self) -> Vec<PathBuf> {
        let governed = std::mem::take(&mut self.started.governed);
        if !governed.is_disturbed() {
            return Vec::new();
        }
        let aside = self.started.aside.clone();
        let work = tasks::blocking("put aside", move || governed.put_aside(&aside));
        // A task of its own: it goes on where this call is dropped.
        tasks::spawn("put aside", work).await.and_then(|moved| moved).unwrap_or_default()
    }

    /// Until the main process ends, or has to.
    async fn wait(&mut self, deadline: Option<Instant>, cancel: &CancelToken) -> io::Result<Why> {
        let Self { started: Started { child, pipes, .. }, capture, .. } = self;
        let time = at(deadline);
        tokio::pin!(time);
        let mut drained = false;
        loop {
            tokio::select! {
                status = child.wait() => return Ok(Why::Exited(status?)),
                () = pipes.drain(capture), if !drained => drained = true,
                () = cancel.cancelled() => return Ok(Why::Cancel),
                () = &mut time => return Ok(Why::Time),
            }
        }
    }

    /// SIGTERM to all, the grace, SIGKILL to all.
    async fn terminate(&mut self) -> io::Result<()> {
        let over = Instant::now() + self.grace;
        self.started.group.signal_all(Signal::TERM);
        if let Why::Time | Why::Cancel = self.wait(Some(over), &HASTE).await? {
            self.started.group.signal_all(Signal::KILL);
            self.started.child.wait().await?;
        }
        self.clear(over, HASTE.cancelled()).await;
        Ok(())
    }

    /// After the main process: waits for the pipes and for what it left behind, then ends that. Gives how many.
    async fn clear(&mut self, over: Instant, hurry: impl Future<Output = ()>) -> usize {
        let Self { started: Started { group, pipes, .. }, capture, .. } = self;
        let by_itself = async {
            tokio::join!(pipes.drain(capture), group.gone());
        };
        tokio::select! {
            () = by_itself => return 0,
            () = hurry => {}
            () = tokio::time::sleep_until(over) => {}
        }
        let ended = tokio::time::timeout(AFTER_KILL, group.end_left_behind()).await.unwrap_or(0);
        let _ = tokio::time::timeout(AFTER_KILL, pipes.drain(capture)).await;
        ended
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.gone {
            self.started.group.signal_all(Signal::KILL);
        }
    }
}

fn earliest(one: Instant, other: Option<Instant>) -> Instant {
    other.map_or(one, |other| one.min(other))
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

pub(super) fn end_of(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Exited(code),
        (None, Some(signal)) => End::Signalled(signal),
        (None, None) => End::Exited(-1),
    }
}
