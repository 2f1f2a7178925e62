//! The built program as a process: started in a sandbox, watched, stopped, always ended.

use crate::machine::{command, thread};
use crate::sandbox::Sandbox;
use rustix::process::{Pid, kill_process, kill_process_group};
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

pub use rustix::process::Signal;

/// How long the output of an ended process may stay open (a grandchild holds the pipe).
const PIPES: Duration = Duration::from_secs(2);

/// A start of the program: arguments, standard input, folder.
#[derive(Debug)]
pub struct Claw {
    command: Command,
    stdin: Option<Vec<u8>>,
    keep_stdin: bool,
}

/// What a process left when it ended.
#[derive(Clone, Debug)]
pub struct Output {
    /// The exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Standard output, broken UTF-8 replaced.
    pub stdout: String,
    /// Standard error, broken UTF-8 replaced.
    pub stderr: String,
    /// From start to end.
    pub took: Duration,
    /// Somebody still held stdout or stderr two seconds after the end: a process was left behind.
    pub left_behind: bool,
}

impl Output {
    /// Checks the exit code and returns the output.
    ///
    /// # Panics
    /// When the code is another.
    pub fn expect_code(self, code: i32) -> Self {
        assert!(self.code == Some(code), "expected exit {code}:\n{self}");
        self
    }

    /// Standard output as JSON.
    ///
    /// # Panics
    /// When it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("stdout is no JSON: {e}\n{self}"))
    }

    /// Each line of standard output as JSON.
    ///
    /// # Panics
    /// When one is none.
    pub fn json_lines(&self) -> Vec<serde_json::Value> {
        let line =
            |text| serde_json::from_str(text).unwrap_or_else(|e| panic!("no JSON: {e}: {text}\n{self}"));
        self.stdout.lines().map(line).collect()
    }
}

impl std::fmt::Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "exit {:?}, signal {:?}, after {:?}", self.code, self.signal, self.took)?;
        write!(f, "--- stdout\n{}\n--- stderr\n{}", self.stdout, self.stderr)
    }
}

impl Claw {
    /// The program `binary`, in the project of the sandbox, with its environment and no standard input.
    pub fn new(binary: impl AsRef<Path>, sandbox: &Sandbox) -> Self {
        let mut command = command(binary.as_ref());
        command.envs(sandbox.environment().iter().map(|(n, v)| (n, v))).current_dir(sandbox.project());
        Self { command, stdin: None, keep_stdin: false }
    }

    /// Adds arguments.
    pub fn args<S: AsRef<std::ffi::OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    /// Sets a variable.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Takes a variable away.
    pub fn without_env(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Another working folder.
    pub fn folder(mut self, folder: impl AsRef<Path>) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Text for standard input, closed after it.
    pub fn stdin(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(text.into());
        self
    }

    /// Standard input stays open; write to it with [`Running::write`].
    pub fn open_stdin(mut self) -> Self {
        self.keep_stdin = true;
        self
    }

    /// Runs to the end.
    ///
    /// # Panics
    /// When it does not end within `bound`; it is killed, the message holds its output so far.
    pub fn run(self, bound: Duration) -> Output {
        self.spawn().wait(bound)
    }

    /// Starts it, in a process group of its own.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn spawn(mut self) -> Running {
        let wants_stdin = self.keep_stdin || self.stdin.is_some();
        self.command
            .process_group(0)
            .stdin(if wants_stdin { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let started = Instant::now();
        let mut child =
            self.command.spawn().unwrap_or_else(|e| panic!("cannot start {:?}: {e}", self.command));
        let pid = Pid::from_child(&child);
        let seen = Arc::new(Seen::default());
        let mut stdin = child.stdin.take();
        if let Some(text) = self.stdin.take() {
            let to = stdin.take();
            thread("stdin", move || {
                // The program may end without reading all of it.
                let _ended = to.map(|mut to| to.write_all(&text));
            });
        }
        watch(&seen, Stream::Stdout, child.stdout.take());
        watch(&seen, Stream::Stderr, child.stderr.take());
        reap(&seen, child);
        Running { pid, seen, stdin, started }
    }
}

/// Which output of a process.
#[derive(Clone, Copy, Debug)]
enum Stream {
    Stdout,
    Stderr,
}

#[derive(Debug, Default)]
struct Seen {
    state: Mutex<SeenState>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct SeenState {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    closed: usize,
    status: Option<(ExitStatus, Instant)>,
}

impl SeenState {
    fn of(&self, stream: Stream) -> String {
        let bytes = match stream {
            Stream::Stdout => &self.stdout,
            Stream::Stderr => &self.stderr,
        };
        String::from_utf8_lossy(bytes).into_owned()
    }
}

fn watch(seen: &Arc<Seen>, stream: Stream, from: Option<impl Read + Send + 'static>) {
    let seen = Arc::clone(seen);
    let mut from = from.expect("a pipe was asked for");
    thread("output", move || {
        let mut piece = vec![0; 64 * 1024];
        loop {
            let read = from.read(&mut piece).unwrap_or(0);
            let mut state = seen.state.lock().unwrap();
            match stream {
                Stream::Stdout => state.stdout.extend_from_slice(&piece[..read]),
                Stream::Stderr => state.stderr.extend_from_slice(&piece[..read]),
            }
            if read == 0 {
                state.closed += 1;
            }
            drop(state);
            seen.moved.notify_all();
            if read == 0 {
                return;
            }
        }
    });
}

fn reap(seen: &Arc<Seen>, mut child: Child) {
    let seen = Arc::clone(seen);
    thread("exit", move || {
        let status = child.wait().expect("a child can be waited for");
        seen.state.lock().unwrap().status = Some((status, Instant::now()));
        seen.moved.notify_all();
    });
}

/// A running program. Dropping it kills its process group.
#[derive(Debug)]
pub struct Running {
    pid: Pid,
    seen: Arc<Seen>,
    stdin: Option<ChildStdin>,
    started: Instant,
}

impl Running {
    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Whether it still runs.
    pub fn is_running(&self) -> bool {
        self.seen.state.lock().unwrap().status.is_none()
    }

    /// Sends a signal to the process alone. Nothing happens when it ended.
    pub fn signal(&self, signal: Signal) {
        let state = self.seen.state.lock().unwrap();
        if state.status.is_none() {
            // It may end at this very moment.
            let _ended = kill_process(self.pid, signal);
        }
    }

    /// SIGKILL to the process alone, as a crash: nothing of it runs after this.
    pub fn kill9(&self) {
        self.signal(Signal::KILL);
        self.until("its end after SIGKILL", Duration::from_secs(10), |state| state.status.is_some());
    }

    /// Writes to standard input.
    ///
    /// # Panics
    /// When it was not opened with [`Claw::open_stdin`], or nobody reads it.
    pub fn write(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().expect("standard input is open");
        stdin.write_all(text.as_bytes()).and_then(|()| stdin.flush()).expect("somebody reads");
    }

    /// Closes standard input.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Standard output so far.
    pub fn stdout(&self) -> String {
        self.seen.state.lock().unwrap().of(Stream::Stdout)
    }

    /// Standard error so far.
    pub fn stderr(&self) -> String {
        self.seen.state.lock().unwrap().of(Stream::Stderr)
    }

    /// Waits until standard output contains `text`.
    ///
    /// # Panics
    /// When it does not within `bound`, or the process ends without it.
    pub fn wait_for_stdout(&self, text: &str, bound: Duration) {
        self.wait_for(Stream::Stdout, text, bound);
    }

    /// Waits until standard error contains `text`.
    ///
    /// # Panics
    /// When it does not within `bound`, or the process ends without it.
    pub fn wait_for_stderr(&self, text: &str, bound: Duration) {
        self.wait_for(Stream::Stderr, text, bound);
    }

    fn wait_for(&self, stream: Stream, text: &str, bound: Duration) {
        let what = format!("{text:?} on {stream:?}");
        self.until(&what, bound, |state| state.of(stream).contains(text) || state.closed == 2);
        let said = self.seen.state.lock().unwrap().of(stream);
        assert!(said.contains(text), "it ended without {what}:\n{}", self.so_far());
    }

    /// The peak of resident memory so far in KiB, of a process that still runs.
    ///
    /// # Panics
    /// When it runs no longer.
    pub fn peak_memory_kib(&self) -> u64 {
        let path = PathBuf::from(format!("/proc/{}/status", self.pid()));
        let text = std::fs::read_to_string(path).expect("the process runs");
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
        line.trim().trim_end_matches(" kB").trim().parse().expect("a number")
    }

    /// Waits for the end.
    ///
    /// # Panics
    /// When it does not come within `bound`; the process group is killed, the message holds the output so far.
    pub fn wait(mut self, bound: Duration) -> Output {
        self.stdin = None;
        self.until("its end", bound, |state| state.status.is_some());
        let end = Instant::now() + PIPES;
        let mut state = self.seen.state.lock().unwrap();
        while state.closed < 2 {
            let rest = end.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                break;
            }
            state = self.seen.moved.wait_timeout(state, rest).unwrap().0;
        }
        let (status, at) = state.status.expect("it ended");
        Output {
            code: status.code(),
            signal: status.signal(),
            stdout: state.of(Stream::Stdout),
            stderr: state.of(Stream::Stderr),
            took: at.duration_since(self.started),
            left_behind: state.closed < 2,
        }
    }

    fn until(&self, what: &str, bound: Duration, holds: impl Fn(&SeenState) -> bool) {
        let end = Instant::now() + bound;
        let mut state = self.seen.state.lock().unwrap();
        while !holds(&state) {
            let rest = end.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                drop(state);
                panic!("waited {bound:?} in vain for {what}:\n{}", self.so_far());
            }
            state = self.seen.moved.wait_timeout(state, rest).unwrap().0;
        }
    }

    fn so_far(&self) -> String {
        format!("--- stdout so far\n{}\n--- stderr so far\n{}", self.stdout(), self.stderr())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let ended = self.seen.state.lock().is_ok_and(|state| state.status.is_some());
        if !ended {
            // It may end at this very moment.
            let _ended = kill_process_group(self.pid, Signal::KILL);
        }
    }
}
