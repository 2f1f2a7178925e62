//! The journal's file: opened, cut where it is torn, appended to. Owns `seq`.
//!
//! The run's `lock` keeps a second process out; this room trusts its caller to hold it.

use super::codec;
use super::error::JournalError;
use super::reader::{self, Journal, Torn};
use super::record::{Entry, Record, VERSION};
use crate::addr::StepAddr;
use crate::rundir::RunDir;
use claw_kernel::clock;
use claw_kernel::durable::{self, Durability, Log, LogTicket, LogWriter, Mode, Sync};
use claw_kernel::tasks;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use tokio::sync::Mutex;

/// Journals above this length are not read: far above what the largest run writes.
pub const MOST_BYTES: u64 = 1 << 30;

/// Appends records to one run's journal.
#[derive(Debug)]
pub struct JournalWriter {
    log: Log,
    /// The last number that was given out.
    seq: Mutex<u64>,
}

/// A journal that was opened for writing.
#[derive(Debug)]
pub struct Opened {
    /// Appends to it.
    pub writer: JournalWriter,
    /// What was in it.
    pub records: Vec<Record>,
    /// What was cut off at its end; the bytes are kept in `journal.torn`.
    pub torn: Option<Torn>,
}

/// A record on its way to the disk, in its place in the order already.
#[derive(Debug)]
pub struct Ticket {
    /// Its number; of several records, that of the last.
    pub seq: u64,
    written: LogTicket,
}

impl Ticket {
    /// Waits until the record is as durable as its kind asks for. The value is its number.
    pub async fn done(self) -> Result<u64, JournalError> {
        self.written.done().await?;
        Ok(self.seq)
    }
}

impl JournalWriter {
    /// Opens the journal of a run, new or not. The caller holds the run's lock.
    pub async fn open(logs: &LogWriter, run: &RunDir) -> Result<Opened, JournalError> {
        let path = run.journal();
        let aside = run.journal_torn();
        let at = path.clone();
        let Journal { records, torn } =
            tasks::blocking("journal", move || read_and_cut(&at, &aside)).await??;
        let (log, length) = logs.open(&path)?;
        if length == 0 {
            // A new file: its name must be on disk before its first record counts.
            let root = run.root().to_owned();
            tasks::blocking("journal", move || {
                File::open(&root).and_then(|folder| folder.sync_all()).map_err(io_at(&root))
            })
            .await??;
        }
        let seq = Mutex::new(records.last().map_or(0, reader::last_number));
        Ok(Opened { writer: Self { log, seq }, records, torn })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.log.path()
    }

    /// Puts a record into the order. Whoever acts on it waits for the ticket first.
    pub async fn record(
        &self,
        step: Option<&StepAddr>,
        attempt: Option<u32>,
        entry: Entry,
    ) -> Result<Ticket, JournalError> {
        self.record_all(vec![(step.cloned(), attempt, entry)]).await
    }

    /// Puts records into the order, in one write: a kill leaves all of them or none.
    pub async fn record_all(
        &self,
        entries: Vec<(Option<StepAddr>, Option<u32>, Entry)>,
    ) -> Result<Ticket, JournalError> {
        let is_synced = entries.iter().any(|(_, _, entry)| entry.durability() == Durability::Synced);
        let durability = if is_synced { Durability::Synced } else { Durability::Written };
        // Held over the queueing, so that numbers stand in the file in their order.
        let mut last = self.seq.lock().await;
        let (mut seq, at) = (*last, clock::now());
        let mut lines = Vec::with_capacity(256 * entries.len());
        for (step, attempt, entry) in entries {
            seq += 1;
            lines.extend(codec::encode(&Record { v: VERSION, seq, at, step, attempt, entry })?);
        }
        let ticket = self.log.queue(lines, durability).await?;
        *last = seq;
        drop(last);
        Ok(Ticket { seq, written: ticket })
    }
}

/// Reads a journal without changing it: for those who only look. A missing one is empty.
pub fn load(run: &RunDir) -> Result<Journal, JournalError> {
    let path = run.journal();
    let bytes = read_bytes(&path)?;
    reader::read(&bytes).map_err(|damage| JournalError::Damaged { path, damage })
}

/// Takes the damaged lines of a journal out, into `journal.damaged`. The value: the steps that are in doubt now.
/// The caller holds the run's lock.
pub fn accept_damage(run: &RunDir) -> Result<Vec<StepAddr>, JournalError> {
    let path = run.journal();
    let bytes = read_bytes(&path)?;
    if reader::read(&bytes).is_ok() {
        return Ok(Vec::new());
    }
    let salvaged = reader::salvage(&bytes, clock::now())?;
    keep_aside(&run.journal_damaged(), &salvaged.damaged)?;
    durable::replace(&path, &salvaged.journal, Mode::Private, Sync::Yes).map_err(io_at(&path))?;
    Ok(salvaged.steps)
}

fn read_and_cut(path: &Path, aside: &Path) -> Result<Journal, JournalError> {
    let bytes = read_bytes(path)?;
    let journal =
        reader::read(&bytes).map_err(|damage| JournalError::Damaged { path: path.to_owned(), damage })?;
    if let Some(torn) = journal.torn {
        keep_aside(aside, &bytes[torn.offset as usize..])?;
        durable::truncate(path, torn.offset).map_err(io_at(path))?;
    }
    Ok(journal)
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, JournalError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(JournalError::Io { path: path.to_owned(), source }),
    };
    let length = file.metadata().map_err(io_at(path))?.len();
    if length > MOST_BYTES {
        return Err(JournalError::TooLarge { path: path.to_owned(), bytes: length, most: MOST_BYTES });
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    file.take(MOST_BYTES).read_to_end(&mut bytes).map_err(io_at(path))?;
    Ok(bytes)
}

/// Adds bytes to a file of what was taken out of a journal.
fn keep_aside(path: &Path, bytes: &[u8]) -> Result<(), JournalError> {
    let mut kept = read_bytes(path)?;
    kept.extend_from_slice(bytes);
    durable::replace(path, &kept, Mode::Private, Sync::Yes).map_err(io_at(path))
}

fn io_at(path: &Path) -> impl FnOnce(io::Error) -> JournalError + use<> {
    let path: PathBuf = path.to_owned();
    move |source| JournalError::Io { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rundir::RunDir;
    use claw_kernel::ids::RunId;
    use futures_util::future::join_all;

    fn run() -> (tempfile::TempDir, RunDir) {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::at(folder.path(), RunId::fresh());
        durable::private_dir(run.root()).unwrap();
        (folder, run)
    }

    fn turn(turn: u32) -> Entry {
        Entry::Turn { turn, bytes: 9, usage: None }
    }

    fn paused() -> Entry {
        Entry::Paused { reason: "a gate".into(), until: None }
    }

    fn append(path: &Path, bytes: &[u8]) {
        use std::io::Write as _;
        File::options().append(true).open(path).unwrap().write_all(bytes).unwrap();
    }

    #[tokio::test]
    async fn numbers_go_on_over_a_second_opening() {
        let (_folder, run) = run();
        let logs = LogWriter::start().unwrap();
        let step: StepAddr = "a".parse().unwrap();
        for take in 0..3_u64 {
            let opened = JournalWriter::open(&logs, &run).await.unwrap();
            assert_eq!(opened.records.len() as u64, 2 * take);
            let first = opened.writer.record(Some(&step), Some(1), turn(1)).await.unwrap();
            let second = opened.writer.record(None, None, paused()).await.unwrap();
            assert_eq!(second.done().await.unwrap(), 2 * take + 2);
            assert_eq!(first.done().await.unwrap(), 2 * take + 1);
        }
    }

    #[tokio::test]
    async fn records_of_many_writers_stand_in_the_order_of_their_numbers() {
        let (_folder, run) = run();
        let logs = LogWriter::start().unwrap();
        let opened = JournalWriter::open(&logs, &run).await.unwrap();
        let step: StepAddr = "a".parse().unwrap();
        let all = (0..500).map(|n| opened.writer.record(Some(&step), Some(1), turn(n)));
        for ticket in join_all(all).await {
            ticket.unwrap().done().await.unwrap();
        }
        assert_eq!(load(&run).unwrap().records.len(), 500);
    }

    #[tokio::test]
    async fn a_torn_end_is_cut_and_kept_aside() {
        let (_folder, run) = run();
        let logs = LogWriter::start().unwrap();
        let opened = JournalWriter::open(&logs, &run).await.unwrap();
        opened.writer.record(None, None, paused()).await.unwrap().done().await.unwrap();
        drop(opened);
        append(&run.journal(), b"{\"v\":1,\"se");
        let opened = JournalWriter::open(&logs, &run).await.unwrap();
        assert_eq!(opened.torn.unwrap().bytes, 10);
        assert_eq!(std::fs::read(run.journal_torn()).unwrap(), b"{\"v\":1,\"se");
        opened.writer.record(None, None, paused()).await.unwrap().done().await.unwrap();
        assert_eq!(load(&run).unwrap().records.len(), 2);
    }

    #[tokio::test]
    async fn damage_ends_the_opening_until_it_is_accepted() {
        let (_folder, run) = run();
        let logs = LogWriter::start().unwrap();
        let opened = JournalWriter::open(&logs, &run).await.unwrap();
        opened.writer.record(None, None, paused()).await.unwrap().done().await.unwrap();
        append(&run.journal(), b"what is this\n");
        opened.writer.record(None, None, paused()).await.unwrap().done().await.unwrap();
        drop(opened);
        let error = JournalWriter::open(&logs, &run).await.unwrap_err();
        assert!(error.to_string().starts_with("E301: ") && error.to_string().contains("line 2"), "{error}");
        assert_eq!(accept_damage(&run).unwrap(), []);
        assert_eq!(std::fs::read(run.journal_damaged()).unwrap(), b"what is this\n");
        assert_eq!(JournalWriter::open(&logs, &run).await.unwrap().records.len(), 2);
    }
}
