//! Append-only logs: one writer thread for all logs of the process, group commit. What only the kernel has to know is
//! written by the caller itself where nothing of that log is on its way.
//!
//! A commit starts as soon as the disk is free and takes all that is queued: no timer, never a sync for each record.
//! A failed write cuts the file back to its last whole record and ends that log: nothing is torn or fused.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// Records that may wait for the disk; whoever appends more waits.
const QUEUE: usize = 4096;
/// Records in one commit.
const BATCH: usize = 1024;

/// When an append is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The kernel has the bytes: a kill of the process loses nothing.
    Written,
    /// The disk has them: a power cut loses nothing.
    Synced,
}

/// A log that can no longer be written.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct LogFailed {
    /// The file.
    pub path: PathBuf,
    /// The cause.
    pub source: Arc<io::Error>,
}

/// Records on their way to the writer thread.
struct Order {
    log: Arc<LogInner>,
    bytes: Vec<u8>,
    durability: Durability,
    done: oneshot::Sender<Result<u64, LogFailed>>,
}

/// The handle of the writer thread. The thread ends when the last handle and the last log are gone.
#[derive(Clone, Debug)]
pub struct LogWriter {
    orders: mpsc::Sender<Order>,
}

impl LogWriter {
    /// Starts the thread.
    pub fn start() -> io::Result<Self> {
        let (orders, inbox) = mpsc::channel(QUEUE);
        std::thread::Builder::new().name("journal".to_owned()).spawn(move || run(inbox))?;
        Ok(Self { orders })
    }

    /// Opens a file for appending, made 0600 where it is missing. Its folder must exist. The log says how long the file
    /// was.
    pub fn open(&self, path: &Path) -> Result<(Log, u64), LogFailed> {
        let opened = File::options().append(true).create(true).mode(0o600).open(path);
        let opened = opened.and_then(|file| file.metadata().map(|meta| (file, meta.len())));
        match opened {
            Ok((file, length)) => Ok((self.log(path, file, length), length)),
            Err(error) => Err(LogFailed { path: path.to_owned(), source: Arc::new(error) }),
        }
    }

    /// Makes a new file for appending, 0600.
    ///
    /// # Errors
    /// Where it exists, its folder does not, or the file system says no.
    pub fn create(&self, path: &Path) -> io::Result<Log> {
        let file = File::options().append(true).create_new(true).mode(0o600).open(path)?;
        Ok(self.log(path, file, 0))
    }

    fn log(&self, path: &Path, file: File, length: u64) -> Log {
        let state = State { file: Ok(Arc::new(file)), length, queued: 0 };
        Log {
            inner: Arc::new(LogInner {
                path: path.to_owned(),
                orders: self.orders.clone(),
                state: Mutex::new(state),
            }),
        }
    }
}

fn gone(path: &Path) -> LogFailed {
    let source = Arc::new(io::Error::other("the writer thread is gone"));
    LogFailed { path: path.to_owned(), source }
}

#[derive(Debug)]
struct LogInner {
    path: PathBuf,
    orders: mpsc::Sender<Order>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: Result<Arc<File>, LogFailed>,
    /// Of its whole records.
    length: u64,
    /// Records that are on their way to the thread: none may overtake them.
    queued: usize,
}

impl LogInner {
    fn state(&self) -> MutexGuard<'_, State> {
        // Whatever a panic left in it is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, error: io::Error) -> LogFailed {
        LogFailed { path: self.path.clone(), source: Arc::new(error) }
    }

    fn write(&self, state: &mut State, bytes: &[u8]) -> Result<u64, LogFailed> {
        let file = state.file.as_ref().map_err(LogFailed::clone)?;
        match (&**file).write_all(bytes) {
            Ok(()) => {
                state.length += bytes.len() as u64;
                Ok(state.length)
            }
            Err(error) => {
                // What was torn goes; should this fail too, the reader cuts the torn tail.
                let _ = file.set_len(state.length);
                let failed = self.failed(error);
                state.file = Err(failed.clone());
                Err(failed)
            }
        }
    }

    /// Not under the lock: who only wants the kernel to have its bytes does not wait for the disk.
    fn sync(&self) -> Result<(), LogFailed> {
        let file = self.state().file.clone()?;
        file.sync_data().map_err(|error| {
            let failed = self.failed(error);
            self.state().file = Err(failed.clone());
            failed
        })
    }
}

/// An open log. Records of one log are written in the order of the calls of `append`. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Log {
    inner: Arc<LogInner>,
}

impl Log {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Appends whole records. The value is the length of the file after them.
    pub async fn append(&self, bytes: Vec<u8>, durability: Durability) -> Result<u64, LogFailed> {
        self.queue(bytes, durability).await?.done().await
    }

    /// Appends without waiting for the disk: the returned ticket is done when the records are.
    pub async fn queue(&self, bytes: Vec<u8>, durability: Durability) -> Result<Ticket, LogFailed> {
        if let Some(ticket) = self.at_once(&bytes, durability) {
            return Ok(ticket);
        }
        let place = self.inner.orders.reserve().await.map_err(|_| gone(&self.inner.path))?;
        Ok(self.send(place, bytes, durability))
    }

    /// As `queue`, and never waits: `None` where the queue is full.
    pub fn try_queue(&self, bytes: Vec<u8>, durability: Durability) -> Option<Ticket> {
        if let Some(ticket) = self.at_once(&bytes, durability) {
            return Some(ticket);
        }
        let place = self.inner.orders.try_reserve().ok()?;
        Some(self.send(place, bytes, durability))
    }

    /// What need not reach the disk is given to the kernel here and now, unless others are before it: cheaper than
    /// waking a thread and being woken by it.
    fn at_once(&self, bytes: &[u8], durability: Durability) -> Option<Ticket> {
        if durability == Durability::Synced {
            return None;
        }
        let mut state = self.inner.state();
        (state.queued == 0).then(|| Ticket(Written::Now(self.inner.write(&mut state, bytes))))
    }

    fn send(&self, place: mpsc::Permit<'_, Order>, bytes: Vec<u8>, durability: Durability) -> Ticket {
        let (done, written) = oneshot::channel();
        // Counted and sent under one lock: nobody writes in between.
        let mut state = self.inner.state();
        state.queued += 1;
        place.send(Order { log: Arc::clone(&self.inner), bytes, durability, done });
        drop(state);
        Ticket(Written::Soon { written, log: self.clone() })
    }
}

/// Records on their way to the disk.
#[derive(Debug)]
pub struct Ticket(Written);

#[derive(Debug)]
enum Written {
    Now(Result<u64, LogFailed>),
    Soon { written: oneshot::Receiver<Result<u64, LogFailed>>, log: Log },
}

impl Ticket {
    /// Waits for them. The value is the length of the file after them.
    pub async fn done(self) -> Result<u64, LogFailed> {
        match self.0 {
            Written::Now(result) => result,
            Written::Soon { written, log } => written.await.map_err(|_| gone(log.path()))?,
        }
    }
}

fn run(mut inbox: mpsc::Receiver<Order>) {
    let mut batch = Vec::with_capacity(BATCH);
    while inbox.blocking_recv_many(&mut batch, BATCH) > 0 {
        commit(&mut batch);
    }
}

/// Records that wait for the disk: their log, their result, who waits.
type Pending = (Arc<LogInner>, Result<u64, LogFailed>, oneshot::Sender<Result<u64, LogFailed>>);

fn commit(batch: &mut Vec<Order>) {
    let mut pending: Vec<Pending> = Vec::new();
    for Order { log, bytes, durability, done } in batch.drain(..) {
        let result = {
            let mut state = log.state();
            state.queued = state.queued.saturating_sub(1);
            log.write(&mut state, &bytes)
        };
        match durability {
            Durability::Written => {
                let _ = done.send(result);
            }
            Durability::Synced => pending.push((log, result, done)),
        }
    }
    let synced = sync(&pending);
    for (log, result, done) in pending {
        let result = match synced.get(&Arc::as_ptr(&log)) {
            Some(failed) => Err(failed.clone()),
            None => result,
        };
        let _ = done.send(result);
    }
}

/// One sync for each file that has a record which wants it. The value: those that failed.
fn sync(pending: &[Pending]) -> HashMap<*const LogInner, LogFailed> {
    let mut seen = HashSet::new();
    let logs = pending.iter().filter(|(log, result, _)| result.is_ok() && seen.insert(Arc::as_ptr(log)));
    logs.filter_map(|(log, ..)| log.sync().err().map(|failed| (Arc::as_ptr(log), failed))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn records_stand_in_the_order_of_the_calls() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        let writer = LogWriter::start().unwrap();
        let (log, length) = writer.open(&path).unwrap();
        assert_eq!(length, 0);
        let mut tickets = Vec::new();
        for n in 0..200 {
            let durability = if n % 3 == 0 { Durability::Synced } else { Durability::Written };
            tickets.push(log.queue(format!("{n}\n").into_bytes(), durability).await.unwrap());
        }
        let mut last = 0;
        for ticket in tickets {
            let length = ticket.done().await.unwrap();
            assert!(length > last);
            last = length;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(
            text.lines().map(|l| l.parse::<u32>().unwrap()).collect::<Vec<_>>(),
            (0..200).collect::<Vec<_>>()
        );
    }

    #[tokio::test]
    async fn a_new_log_is_private_and_never_one_that_is_there() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        let writer = LogWriter::start().unwrap();
        let log = writer.create(&path).unwrap();
        assert_eq!(log.append(b"one\n".to_vec(), Durability::Written).await.unwrap(), 4);
        assert_eq!(log.append(b"two\n".to_vec(), Durability::Synced).await.unwrap(), 8);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(writer.create(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(writer.open(&path).unwrap().1, 8);
    }

    #[tokio::test]
    async fn a_log_that_cannot_be_written_says_which_and_stays_failed() {
        let writer = LogWriter::start().unwrap();
        let (log, _) = writer.open(Path::new("/dev/full")).unwrap();
        let failed = log.append(b"x\n".to_vec(), Durability::Synced).await.unwrap_err();
        assert!(failed.to_string().contains("/dev/full"), "{failed}");
        assert!(log.append(b"y\n".to_vec(), Durability::Written).await.is_err());
    }
}
