//! A process that goes on while others talk to it through its pipes: a server.
//!
//! Owns its group and its end. Must not know what is said.

use super::job::Job;
use super::run::{End, end_of, haste};
use super::start::{Started, start};
use crate::error::ToolError;
use rustix::process::Signal;
use std::time::Duration;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::time::timeout;

/// For processes that were killed to be gone.
const AFTER_KILL: Duration = Duration::from_millis(1000);

/// The pipes of a held process.
#[derive(Debug)]
pub struct Talk {
    /// What it reads. Closing it asks it to end.
    pub input: ChildStdin,
    /// What it says.
    pub out: ChildStdout,
    /// What it says beside that. Must be read: a full pipe would stop it.
    pub err: ChildStderr,
}

/// A running process. Dropping it kills its whole group.
pub struct Held {
    started: Started,
    grace: Duration,
    is_gone: bool,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Held").field("id", &self.started.id).finish_non_exhaustive()
    }
}

/// Starts a process to be talked to; `time`, `keep` and `spill` of the job are not used. Errors: it cannot be started.
///
/// To be called on a thread of the runtime that lives as long as the process: the kernel ends children of a dead thread.
pub fn hold(mut job: Job) -> Result<(Held, Talk), ToolError> {
    job.stdin = Some(Vec::new());
    let mut started = start(&job)?;
    let no_pipe = || ToolError::Start {
        program: "the process".to_owned(),
        source: std::io::Error::other("it has no pipes"),
    };
    let (input, out, err) = started.pipes.take().ok_or_else(no_pipe)?;
    Ok((Held { started, grace: job.grace, is_gone: false }, Talk { input, out, err }))
}

impl Held {
    /// Waits until its main process ends by itself. Can be dropped and called again.
    pub async fn ended(&mut self) -> End {
        self.started.child.wait().await.map_or(End::Exited(-1), end_of)
    }

    /// Ends all of it: SIGTERM, the grace of its job, SIGKILL, and what it left behind.
    pub async fn end(mut self) -> End {
        let is_over = matches!(self.started.child.try_wait(), Ok(Some(_)));
        if !is_over {
            self.started.group.signal_all(Signal::TERM);
            let in_time = tokio::select! {
                _ = self.started.child.wait() => true,
                () = haste() => false,
                () = tokio::time::sleep(self.grace) => false,
            };
            if !in_time {
                self.started.group.signal_all(Signal::KILL);
            }
        }
        let end = self.ended().await;
        let _ = timeout(AFTER_KILL, self.started.group.end_left_behind()).await;
        self.is_gone = true;
        if let Some(scratch) = self.started.take_scratch() {
            scratch.clear().await;
        }
        end
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.is_gone {
            self.started.group.signal_all(Signal::KILL);
        }
    }
}
