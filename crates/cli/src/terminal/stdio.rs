//! The three streams of the process. Standard output carries the result and nothing else; a reader that goes away is
//! an answer, never a panic.

use super::closed::stdout_is_closed;
use crate::error::ExpectedError;
use claw_kernel::cancel::CancelToken;
use claw_kernel::tasks;
use claw_kernel::visible::visible;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::{BufRead, ErrorKind, IsTerminal, Read, Write};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Bytes of standard input that a question may have.
const LONGEST: u64 = 16 * 1024 * 1024;
/// Texts that may wait for a slow reader.
const QUEUE: usize = 256;

/// Writes to standard error. `false`: nobody reads it any more.
pub fn say(text: &str) -> bool {
    let mut stderr = std::io::stderr().lock();
    match stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush()) {
        Ok(()) => true,
        Err(error) => error.kind() != ErrorKind::BrokenPipe,
    }
}

/// Writes to standard output.
///
/// # Errors
/// `Pipe` where the reader went away, `Stdout` for anything else.
pub fn write_stdout(text: impl AsRef<[u8]>) -> Result<(), ExpectedError> {
    if stdout_is_closed() {
        return Err(closed());
    }
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_ref()).and_then(|()| stdout.flush()).map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => ExpectedError::Pipe,
        _ => ExpectedError::Stdout(error),
    })
}

/// What is said where standard output was closed from the start.
pub fn closed() -> ExpectedError {
    ExpectedError::Stdout(std::io::Error::other(
        "it is closed; to throw the result away, send it to /dev/null",
    ))
}

/// Standard input is a terminal.
pub fn stdin_is_terminal() -> bool {
    std::io::stdin().is_terminal()
}

/// Writes a model's text to standard output: to a terminal with its control characters made visible, else as it is.
///
/// # Errors
/// As `write_stdout`.
pub fn write_answer(text: &str) -> Result<(), ExpectedError> {
    if stdout_is_terminal() { write_stdout(visible(text).as_bytes()) } else { write_stdout(text) }
}

/// Standard output is a terminal.
pub fn stdout_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// Standard error is a terminal.
pub fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// A person can be asked: standard input and standard error are terminals.
pub fn somebody_to_ask() -> bool {
    stdin_is_terminal() && stderr_is_terminal()
}

/// Ends the tie to terminal and session of whoever started this process: their end is not its end.
pub fn leave_session() {
    // It fails for the leader of a group only, which then has a session of its own already, or is none of ours to move.
    let _ = rustix::process::setsid();
}

/// Nothing is read from here on, and what is printed goes to this file.
///
/// # Errors
/// The system refuses.
pub fn leave_terminal(log: &File) -> std::io::Result<()> {
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    rustix::stdio::dup2_stdout(log)?;
    rustix::stdio::dup2_stderr(log)?;
    Ok(())
}

/// Columns for tables and errors on standard error; 80 where nobody tells.
pub fn width() -> usize {
    let told = console::Term::stderr().size_checked().map(|(_, columns)| usize::from(columns));
    told.filter(|columns| *columns >= 20).unwrap_or(80)
}

/// Standard output is a pipe that nobody reads any more.
pub fn stdout_is_broken() -> bool {
    let stdout = std::io::stdout();
    let mut fds = [PollFd::new(&stdout, PollFlags::OUT)];
    match poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(_) => fds.iter().any(|fd| fd.revents().contains(PollFlags::ERR)),
        Err(_) => false,
    }
}

/// Standard input has something to read, or has ended, within this time.
pub(super) fn stdin_ready(within: Duration) -> bool {
    let stdin = std::io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    let wait = Timespec {
        tv_sec: i64::try_from(within.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: within.subsec_nanos().into(),
    };
    // A closed or strange descriptor is as good as an end.
    poll(&mut fds, Some(&wait)).map_or(true, |ready| ready > 0)
}

/// What stands in a pipe at standard input.
#[derive(Debug, PartialEq, Eq)]
pub enum Piped {
    /// A terminal, or an end without a word.
    Nothing,
    /// Its whole text.
    Text(String),
    /// It is open and says nothing.
    Silent,
}

/// Reads a pipe to its end if its first byte or its end comes within `wait`.
///
/// # Errors
/// Where it cannot be read, is too long or is no text.
pub fn piped_stdin(wait: Option<Duration>) -> Result<Piped, ExpectedError> {
    if stdin_is_terminal() && wait.is_some() {
        return Ok(Piped::Nothing);
    }
    if wait.is_some_and(|wait| !stdin_ready(wait)) {
        return Ok(Piped::Silent);
    }
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(LONGEST + 1).read_to_end(&mut bytes);
    match read {
        Ok(_) if bytes.len() as u64 > LONGEST => {
            Err(ExpectedError::Stdin(std::io::Error::other("more than 16 MiB")))
        }
        Ok(_) => {
            let text = String::from_utf8(bytes)
                .map_err(|_| ExpectedError::Stdin(std::io::Error::other("it is not UTF-8 text")))?;
            Ok(if text.trim().is_empty() { Piped::Nothing } else { Piped::Text(text) })
        }
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::BADF.raw_os_error()) => {
            Ok(Piped::Nothing)
        }
        Err(error) => Err(ExpectedError::Stdin(error)),
    }
}

/// Reads standard input line by line on a thread of its own, until its end or until nobody wants more (`false`). The
/// thread is left behind at the end of the process: nothing can wake it.
pub fn stdin_lines(mut take: impl FnMut(Result<String, ExpectedError>) -> bool + Send + 'static) {
    let work = move || {
        let mut stdin = std::io::stdin().lock();
        loop {
            let mut line = Vec::new();
            let line = match (&mut stdin).take(LONGEST + 1).read_until(b'\n', &mut line) {
                Ok(0) => return,
                Ok(_) if line.len() as u64 > LONGEST => {
                    Err(ExpectedError::Stdin(std::io::Error::other("a line of more than 16 MiB")))
                }
                Ok(_) => String::from_utf8(line)
                    .map_err(|_| ExpectedError::Stdin(std::io::Error::other("it is not UTF-8 text"))),
                Err(error) => Err(ExpectedError::Stdin(error)),
            };
            let is_over = line.is_err();
            if !take(line) || is_over {
                return;
            }
        }
    };
    // Without a thread nothing is read, which ends the program like an empty input.
    let _ = std::thread::Builder::new().name("stdin".to_owned()).spawn(work);
}

/// The reader of standard output went away, or it cannot be written.
#[derive(Debug)]
pub struct StdoutGone;

/// Standard output for streams: a slow reader slows the writer, and never the runtime.
#[derive(Debug)]
pub struct Stdout {
    orders: mpsc::Sender<Order>,
    gone: CancelToken,
    failed: Arc<OnceLock<ExpectedError>>,
}

#[derive(Debug)]
enum Order {
    Write(Vec<u8>),
    /// Told when all before it is written.
    Flush(oneshot::Sender<()>),
}

impl Stdout {
    /// Starts the writer. It ends with the last handle.
    pub fn start() -> Self {
        let (orders, queue) = mpsc::channel(QUEUE);
        let (gone, failed) = (CancelToken::new(), Arc::new(OnceLock::new()));
        let (token, cause) = (gone.clone(), Arc::clone(&failed));
        tasks::spawn("stdout", async move {
            if let Err(error) = write_all(queue).await {
                // Only this task sets it.
                let _ = cause.set(error);
                token.cancel();
            }
        });
        Self { orders, gone, failed }
    }

    /// Queues one line; a line feed is added.
    ///
    /// # Errors
    /// Nobody reads any more.
    pub async fn line(&self, text: String) -> Result<(), StdoutGone> {
        let mut bytes = text.into_bytes();
        bytes.push(b'\n');
        self.orders.send(Order::Write(bytes)).await.map_err(|_| StdoutGone)
    }

    /// Cancelled as soon as nobody reads any more.
    pub fn gone(&self) -> &CancelToken {
        &self.gone
    }

    /// Waits until all that was queued before is written.
    ///
    /// # Errors
    /// As `write_stdout`.
    pub async fn flush(&self) -> Result<(), ExpectedError> {
        let (done, written) = oneshot::channel();
        if self.orders.send(Order::Flush(done)).await.is_ok() && written.await.is_ok() {
            return Ok(());
        }
        self.gone.cancelled().await;
        match self.failed.get() {
            Some(ExpectedError::Stdout(error)) => Err(ExpectedError::Stdout(error.kind().into())),
            Some(_) | None => Err(ExpectedError::Pipe),
        }
    }
}

async fn write_all(mut queue: mpsc::Receiver<Order>) -> Result<(), ExpectedError> {
    let mut batch = Vec::new();
    while queue.recv_many(&mut batch, QUEUE).await > 0 {
        let mut bytes = Vec::new();
        let mut waiting = Vec::new();
        for order in batch.drain(..) {
            match order {
                Order::Write(line) => bytes.extend(line),
                Order::Flush(done) => waiting.push(done),
            }
        }
        let written = tasks::blocking("stdout", move || write_stdout(bytes)).await;
        written.unwrap_or_else(|failed| Err(ExpectedError::Fault(failed.to_string())))?;
        for done in waiting {
            // Whoever waited may have given up.
            let _ = done.send(());
        }
    }
    Ok(())
}
