//! Commands that go on while their conversation does something else, and end with it.
//!
//! Owns what they said and nobody has read yet, in bounded memory. Knows nothing of tools or models.

use crate::cut;
use crate::error::ToolError;
use crate::process::{End, Job, Live, Stream, run_live};
use claw_kernel::cancel::CancelToken;
use claw_kernel::redact::Redactor;
use claw_kernel::tasks;
use indexmap::IndexMap;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// Commands of one conversation that run at the same time.
pub const MOST_RUNNING: usize = 16;
/// Ended ones that are remembered.
const MOST_ENDED: usize = 64;
/// Bytes of each that wait to be read; the oldest go first.
const MOST_UNREAD: usize = 256 * 1024;

/// What one said since somebody looked, without secrets.
#[derive(Debug, Default)]
struct Unread {
    bytes: VecDeque<u8>,
    lost: u64,
}

impl Unread {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let over = self.bytes.len().saturating_sub(MOST_UNREAD);
        self.bytes.drain(..over);
        self.lost += over as u64;
    }

    /// Takes what can be shown. While more may come, what could be the beginning of a secret or of a character stays.
    fn take(&mut self, redactor: &Redactor, is_over: bool) -> (String, u64) {
        let bytes: Vec<u8> = std::mem::take(&mut self.bytes).into();
        let open = if is_over { 0 } else { cut::split_at_end(&bytes) };
        let (whole, rest) = bytes.split_at(bytes.len() - open);
        let text = String::from_utf8_lossy(whole);
        let mut text = redactor.apply(&text).into_owned();
        let kept = if is_over { String::new() } else { text.split_off(text.len() - redactor.begun(&text)) };
        self.bytes.extend(kept.bytes().chain(rest.iter().copied()));
        (text, std::mem::take(&mut self.lost))
    }
}

/// How one stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShellState {
    /// It runs.
    Running,
    /// It ended.
    Ended(End),
    /// It could not be started, or it was lost.
    Failed(String),
}

/// A command in the background.
#[derive(Debug)]
struct Shell {
    command: String,
    unread: Arc<Mutex<[Unread; 2]>>,
    redactor: Arc<Redactor>,
    state: watch::Receiver<ShellState>,
    cancel: CancelToken,
    spilled: Arc<Mutex<Option<PathBuf>>>,
}

impl Shell {
    fn is_running(&self) -> bool {
        *self.state.borrow() == ShellState::Running
    }
}

/// What somebody sees who looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// The command line.
    pub command: String,
    /// How it stands.
    pub state: ShellState,
    /// Standard output since the last look.
    pub out: String,
    /// Standard error since the last look.
    pub err: String,
    /// Bytes that came and were not read in time.
    pub lost: u64,
    /// The file with the whole output, where there is one and the command has ended.
    pub spilled: Option<PathBuf>,
}

/// The commands of one conversation.
#[derive(Debug, Default)]
pub struct Shells {
    all: Mutex<(u64, IndexMap<String, Shell>)>,
}

impl Shells {
    /// Starts a job; gives its id. Errors: too many run, or it cannot be started.
    ///
    /// `over`: cancelled when the conversation is over.
    pub fn start(&self, command: &str, job: Job, over: &CancelToken) -> Result<String, ToolError> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, shells) = &mut *all;
        let running = shells.values().filter(|shell| *shell.state.borrow() == ShellState::Running).count();
        if running >= MOST_RUNNING {
            let text =
                format!("{MOST_RUNNING} background commands run already; end one with kill_shell first");
            return Err(ToolError::Refused(text));
        }
        if shells.len() >= MOST_ENDED
            && let Some(old) =
                shells.iter().position(|(_, shell)| *shell.state.borrow() != ShellState::Running)
        {
            shells.shift_remove_index(old);
        }
        *last += 1;
        let id = format!("bash_{last}");
        shells.insert(id.clone(), begin(command, job, over.child_token()));
        Ok(id)
    }

    /// What one said since the last look. Errors: there is none of that id.
    pub fn look(&self, id: &str) -> Result<Look, ToolError> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let shell = all.1.get(id.trim()).ok_or_else(|| unknown(id, &all.1))?;
        // In this order: what it said before it ended is there then.
        let state = shell.state.borrow().clone();
        let is_over = state != ShellState::Running;
        let mut unread = shell.unread.lock().unwrap_or_else(PoisonError::into_inner);
        let [out, err] = &mut *unread;
        let ((out, lost_out), (err, lost_err)) =
            (out.take(&shell.redactor, is_over), err.take(&shell.redactor, is_over));
        let spilled = shell.spilled.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (command, lost) = (shell.command.clone(), lost_out + lost_err);
        Ok(Look { command, state, out, err, lost, spilled })
    }

    /// Waits until one has ended, or for so long. Errors: there is none of that id.
    pub async fn wait(&self, id: &str, most: Duration) -> Result<(), ToolError> {
        let mut state = {
            let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
            all.1.get(id.trim()).ok_or_else(|| unknown(id, &all.1))?.state.clone()
        };
        // Too late, or gone: both are told by a look.
        let _ = tokio::time::timeout(most, state.wait_for(|state| *state != ShellState::Running)).await;
        Ok(())
    }

    /// Ends one and waits for it; gives whether it still ran. Errors: there is none of that id.
    pub async fn kill(&self, id: &str) -> Result<bool, ToolError> {
        let was_running = {
            let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
            let shell = all.1.get(id.trim()).ok_or_else(|| unknown(id, &all.1))?;
            shell.cancel.cancel();
            shell.is_running()
        };
        self.wait(id, MOST_END).await?;
        Ok(was_running)
    }

    /// Ids of those that run.
    pub fn running(&self) -> Vec<String> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let runs = |shell: &Shell| *shell.state.borrow() == ShellState::Running;
        all.1.iter().filter(|(_, shell)| runs(shell)).map(|(id, _)| id.clone()).collect()
    }

    /// Ends all and waits for them.
    pub async fn end_all(&self) {
        let running = self.running();
        futures_util::future::join_all(running.iter().map(|id| self.kill(id))).await;
    }
}

/// From SIGTERM to the end of the whole group, with room.
const MOST_END: Duration = Duration::from_millis(2_500);

fn unknown(id: &str, shells: &IndexMap<String, Shell>) -> ToolError {
    let known: Vec<&str> = shells.keys().map(String::as_str).collect();
    let known = if known.is_empty() {
        "there are none".to_owned()
    } else {
        format!("there are {}", known.join(", "))
    };
    ToolError::Refused(format!("there is no background command `{}`; {known}", cut::head(id, 60)))
}

fn begin(command: &str, job: Job, cancel: CancelToken) -> Shell {
    let unread: Arc<Mutex<[Unread; 2]>> = Arc::default();
    let spilled: Arc<Mutex<Option<PathBuf>>> = Arc::default();
    let (say, state) = watch::channel(ShellState::Running);
    let redactor = Arc::clone(&job.redactor);
    let (into, file, token) = (Arc::clone(&unread), Arc::clone(&spilled), cancel.clone());
    let tap = move |stream: Stream, bytes: &[u8]| {
        into.lock().unwrap_or_else(PoisonError::into_inner)[stream as usize].push(bytes);
    };
    let live = Live { input: None, tap: Some(Box::new(tap)) };
    // Its end is in `state`; a panic drops the sender, which ends every wait.
    tasks::spawn("background command", async move {
        let end = match run_live(job, &token, live).await {
            Ok(done) => {
                *file.lock().unwrap_or_else(PoisonError::into_inner) =
                    done.spilled.map(|spilled| spilled.path);
                ShellState::Ended(done.end)
            }
            Err(ToolError::Cancelled) => ShellState::Ended(End::Cancelled),
            Err(error) => ShellState::Failed(error.to_string()),
        };
        say.send_replace(end);
    });
    Shell { command: command.to_owned(), unread, redactor, state, cancel, spilled }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::SandboxPolicy;

    fn job(line: &str) -> Job {
        Job::shell(line, std::env::temp_dir(), Arc::new(SandboxPolicy::full(std::env::temp_dir())))
    }

    #[tokio::test]
    async fn output_is_told_once_and_the_end_too() {
        let (shells, over) = (Shells::default(), CancelToken::new());
        let id = shells.start("x", job("echo one; echo two >&2; exit 3"), &over).unwrap();
        shells.wait(&id, Duration::from_secs(10)).await.unwrap();
        let look = shells.look(&id).unwrap();
        assert_eq!((look.out.as_str(), look.err.as_str()), ("one\n", "two\n"));
        assert_eq!(look.state, ShellState::Ended(End::Exited(3)));
        assert_eq!(shells.look(&id).unwrap().out, "");
        assert!(shells.look("bash_9").unwrap_err().to_string().contains("bash_1"));
    }

    #[tokio::test]
    async fn what_runs_ends_when_it_is_killed_or_the_conversation_is_over() {
        let (shells, over) = (Shells::default(), CancelToken::new());
        let one = shells.start("x", job("sleep 300"), &over).unwrap();
        let two = shells.start("x", job("sleep 300"), &over).unwrap();
        assert!(shells.kill(&one).await.unwrap());
        assert!(!shells.kill(&one).await.unwrap());
        assert_eq!(shells.running(), std::slice::from_ref(&two));
        over.cancel();
        shells.wait(&two, Duration::from_secs(10)).await.unwrap();
        assert_eq!(shells.look(&two).unwrap().state, ShellState::Ended(End::Cancelled));
    }

    #[test]
    fn a_secret_that_comes_in_two_parts_is_never_shown() {
        let redactor = Redactor::new(["hunter2hunter2".to_owned()]);
        let mut unread = Unread::default();
        unread.push("a hunter2h".as_bytes());
        assert_eq!(unread.take(&redactor, false).0, "a ");
        unread.push("unter2 é".as_bytes());
        unread.push(&[0xC3]);
        assert_eq!(unread.take(&redactor, false).0, "[redacted] é");
        unread.push(&[0xA9]);
        assert_eq!(unread.take(&redactor, true), ("é".to_owned(), 0));
        unread.push(&vec![b'x'; MOST_UNREAD + 7]);
        assert_eq!(unread.take(&redactor, false).1, 7);
    }
}
