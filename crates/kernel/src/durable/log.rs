//! Append-only logs: one writer thread for all logs of the process, group commit.
//!
//! A commit starts as soon as the disk is free and takes all that is queued: no timer, never a sync for each record.
//! A failed write cuts the file back to its last whole record and ends that log: nothing is torn or fused.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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

enum Order {
    Open { id: u64, path: PathBuf, done: oneshot::Sender<Result<u64, LogFailed>> },
    Append { id: u64, bytes: Vec<u8>, durability: Durability, done: oneshot::Sender<Result<u64, LogFailed>> },
    Close { id: u64 },
}

/// The handle of the writer thread. The thread ends when the last handle and the last log are gone.
#[derive(Clone, Debug)]
pub struct LogWriter {
    orders: mpsc::Sender<Order>,
    next: Arc<AtomicU64>,
}

impl LogWriter {
    /// Starts the thread.
    pub fn start() -> io::Result<Self> {
        let (orders, inbox) = mpsc::channel(QUEUE);
        std::thread::Builder::new().name("journal".to_owned()).spawn(move || Writer::default().run(inbox))?;
        Ok(Self { orders, next: Arc::new(AtomicU64::new(0)) })
    }

    /// Opens a file for appending, made 0600 where it is missing. Its folder must exist. The log says how long the file
    /// was.
    pub async fn open(&self, path: &Path) -> Result<(Log, u64), LogFailed> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (done, opened) = oneshot::channel();
        let gone = || gone(path);
        self.orders.send(Order::Open { id, path: path.to_owned(), done }).await.map_err(|_| gone())?;
        let length = opened.await.map_err(|_| gone())??;
        Ok((
            Log { inner: Arc::new(LogInner { id, path: path.to_owned(), orders: self.orders.clone() }) },
            length,
        ))
    }
}

fn gone(path: &Path) -> LogFailed {
    let source = Arc::new(io::Error::other("the writer thread is gone"));
    LogFailed { path: path.to_owned(), source }
}

#[derive(Debug)]
struct LogInner {
    id: u64,
    path: PathBuf,
    orders: mpsc::Sender<Order>,
}

impl Drop for LogInner {
    fn drop(&mut self) {
        // A full queue leaves the file open until the process ends: bounded by the number of logs.
        let _ = self.orders.try_send(Order::Close { id: self.id });
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
        let (done, written) = oneshot::channel();
        let order = Order::Append { id: self.inner.id, bytes, durability, done };
        self.inner.orders.send(order).await.map_err(|_| gone(&self.inner.path))?;
        Ok(Ticket { written, log: self.clone() })
    }

    /// As `queue`, and never waits: `None` where the queue is full.
    pub fn try_queue(&self, bytes: Vec<u8>, durability: Durability) -> Option<Ticket> {
        let (done, written) = oneshot::channel();
        let order = Order::Append { id: self.inner.id, bytes, durability, done };
        self.inner.orders.try_send(order).ok()?;
        Some(Ticket { written, log: self.clone() })
    }
}

/// Records on their way to the disk.
#[derive(Debug)]
pub struct Ticket {
    written: oneshot::Receiver<Result<u64, LogFailed>>,
    log: Log,
}

impl Ticket {
    /// Waits for them. The value is the length of the file after them.
    pub async fn done(self) -> Result<u64, LogFailed> {
        self.written.await.map_err(|_| gone(self.log.path()))?
    }
}

struct OpenFile {
    path: PathBuf,
    state: Result<Whole, LogFailed>,
}

struct Whole {
    file: File,
    length: u64,
}

#[derive(Default)]
struct Writer {
    files: HashMap<u64, OpenFile>,
}

struct Pending {
    id: u64,
    durability: Durability,
    result: Result<u64, LogFailed>,
    done: oneshot::Sender<Result<u64, LogFailed>>,
}

impl Writer {
    fn run(mut self, mut inbox: mpsc::Receiver<Order>) {
        let mut batch = Vec::with_capacity(BATCH);
        while inbox.blocking_recv_many(&mut batch, BATCH) > 0 {
            self.commit(&mut batch);
        }
    }

    fn commit(&mut self, batch: &mut Vec<Order>) {
        let mut pending = Vec::new();
        let mut closing = Vec::new();
        for order in batch.drain(..) {
            match order {
                Order::Open { id, path, done } => {
                    let _ = done.send(self.open(id, path));
                }
                Order::Append { id, bytes, durability, done } => {
                    let result = self.write(id, &bytes);
                    pending.push(Pending { id, durability, result, done });
                }
                Order::Close { id } => closing.push(id),
            }
        }
        self.sync(&mut pending);
        for Pending { result, done, .. } in pending {
            let _ = done.send(result);
        }
        for id in closing {
            self.files.remove(&id);
        }
    }

    fn open(&mut self, id: u64, path: PathBuf) -> Result<u64, LogFailed> {
        let opened = File::options()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)
            .and_then(|file| file.metadata().map(|meta| Whole { length: meta.len(), file }));
        match opened {
            Ok(whole) => {
                let length = whole.length;
                self.files.insert(id, OpenFile { path, state: Ok(whole) });
                Ok(length)
            }
            Err(error) => Err(LogFailed { path, source: Arc::new(error) }),
        }
    }

    fn write(&mut self, id: u64, bytes: &[u8]) -> Result<u64, LogFailed> {
        let Some(open) = self.files.get_mut(&id) else {
            return Err(gone(Path::new("a closed log")));
        };
        let whole = match &mut open.state {
            Ok(whole) => whole,
            Err(failed) => return Err(failed.clone()),
        };
        match whole.file.write_all(bytes) {
            Ok(()) => {
                whole.length += bytes.len() as u64;
                Ok(whole.length)
            }
            Err(error) => {
                // What was torn goes; should this fail too, the reader cuts the torn tail.
                let _ = whole.file.set_len(whole.length);
                let failed = LogFailed { path: open.path.clone(), source: Arc::new(error) };
                open.state = Err(failed.clone());
                Err(failed)
            }
        }
    }

    /// One sync for each file that has a record which wants it.
    fn sync(&mut self, pending: &mut [Pending]) {
        let mut results: HashMap<u64, Result<(), LogFailed>> = HashMap::new();
        for record in pending.iter_mut() {
            if record.durability == Durability::Written || record.result.is_err() {
                continue;
            }
            let result = results.entry(record.id).or_insert_with(|| match self.files.get_mut(&record.id) {
                Some(OpenFile { path, state }) => match state {
                    Ok(whole) => match whole.file.sync_data() {
                        Ok(()) => Ok(()),
                        Err(error) => {
                            let failed = LogFailed { path: path.clone(), source: Arc::new(error) };
                            *state = Err(failed.clone());
                            Err(failed)
                        }
                    },
                    Err(failed) => Err(failed.clone()),
                },
                None => Ok(()),
            });
            if let Err(failed) = result {
                record.result = Err(failed.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn records_stand_in_the_order_of_the_calls() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        let writer = LogWriter::start().unwrap();
        let (log, length) = writer.open(&path).await.unwrap();
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
    async fn a_log_that_cannot_be_written_says_which_and_stays_failed() {
        let writer = LogWriter::start().unwrap();
        let (log, _) = writer.open(Path::new("/dev/full")).await.unwrap();
        let failed = log.append(b"x\n".to_vec(), Durability::Synced).await.unwrap_err();
        assert!(failed.to_string().contains("/dev/full"), "{failed}");
        assert!(log.append(b"y\n".to_vec(), Durability::Written).await.is_err());
    }
}
