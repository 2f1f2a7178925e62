//! Output in bounded memory: the start and the end of each stream are kept, the whole goes to a file when it is long.

use super::job::SpillTo;
use crate::cut;
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

/// One stream: its first and its last bytes.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl Kept {
    pub(super) fn new(keep: usize) -> Self {
        Self { half: keep / 2, ..Self::default() }
    }

    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = self.half.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        bytes = &bytes[room..];
        bytes = &bytes[bytes.len().saturating_sub(self.half)..];
        let over = (self.tail.len() + bytes.len()).saturating_sub(self.half);
        self.tail.drain(..over);
        self.tail.extend(bytes);
    }

    /// Bytes that came.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Bytes that came and are not here.
    pub fn missing(&self) -> u64 {
        self.total - self.head.len() as u64 - self.tail.len() as u64
    }

    /// The text, bad bytes shown as U+FFFD; what is missing, and what is over `most` characters, is cut out of the
    /// middle and named.
    pub fn text(&self, most: usize) -> String {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        cut::middle_of_bytes(&self.head, self.missing(), &tail, most)
    }

    /// The bytes that are kept; whole where nothing is missing.
    pub fn bytes(&self) -> Vec<u8> {
        self.head.iter().copied().chain(self.tail.iter().copied()).collect()
    }
}

/// The file that holds the whole output of both streams, in the order of arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpilledOutput {
    /// The file.
    pub path: PathBuf,
    /// Bytes in it.
    pub bytes: u64,
    /// Bytes that did not go into it: it was full, or the disk was.
    pub lost: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Out,
    Err,
}

/// Both streams of a job.
#[derive(Debug)]
pub(super) struct Capture {
    pub(super) out: Kept,
    pub(super) err: Kept,
    spill: Option<SpillTo>,
    name: String,
    file: Option<(File, SpilledOutput)>,
}

impl Capture {
    pub(super) fn new(keep: usize, spill: Option<SpillTo>, name: String) -> Self {
        Self { out: Kept::new(keep), err: Kept::new(keep), spill, name, file: None }
    }

    pub(super) fn push(&mut self, stream: Stream, bytes: &[u8]) {
        let total = self.out.total + self.err.total + bytes.len() as u64;
        if self.file.is_none() && self.spill.as_ref().is_some_and(|spill| total > spill.over) {
            self.open();
        }
        match stream {
            Stream::Out => self.out.push(bytes),
            Stream::Err => self.err.push(bytes),
        }
        self.write(bytes);
    }

    /// The file starts with what came so far: by stream, the order of arrival is not known any more.
    fn open(&mut self) {
        let Some(spill) = &self.spill else { return };
        let path = spill.folder.join(format!("{}.out", self.name));
        let made = claw_kernel::durable::private_dir(&spill.folder)
            .and_then(|()| claw_kernel::durable::create_stream(&path));
        match made {
            Ok(file) => self.file = Some((file, SpilledOutput { path, bytes: 0, lost: 0 })),
            // No file, no second try for each chunk; the text says what is missing.
            Err(_) => self.spill = None,
        }
        let so_far = [self.out.bytes(), self.err.bytes()].concat();
        self.write(&so_far);
    }

    fn write(&mut self, bytes: &[u8]) {
        let (Some((file, spilled)), Some(spill)) = (&mut self.file, &self.spill) else { return };
        let room =
            usize::try_from(spill.most.saturating_sub(spilled.bytes)).unwrap_or(usize::MAX).min(bytes.len());
        let written = if spilled.lost == 0 && file.write_all(&bytes[..room]).is_ok() { room } else { 0 };
        spilled.bytes += written as u64;
        spilled.lost += (bytes.len() - written) as u64;
    }

    pub(super) fn finish(self) -> (Kept, Kept, Option<SpilledOutput>) {
        (self.out, self.err, self.file.map(|(_, spilled)| spilled))
    }
}
