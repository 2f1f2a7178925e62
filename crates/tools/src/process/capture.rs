//! Output in bounded memory, without known secrets: the start and the end of each stream are kept, the whole goes to a file when it is long.

use super::job::SpillTo;
use crate::cut;
use claw_kernel::redact::Redactor;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes at the end of a stream in which a secret may have begun. A longer secret is found only where it came at once.
const HELD_BACK: usize = 4096;

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

/// The end of a stream so far, without secrets; kept back because a secret may begin in it.
#[derive(Debug, Default)]
struct Held(Vec<u8>);

impl Held {
    /// Gives what can go on.
    fn push(&mut self, bytes: &[u8], redactor: &Redactor) -> Vec<u8> {
        self.0.extend_from_slice(bytes);
        let mut clean = redacted(std::mem::take(&mut self.0), redactor);
        // All that is complete is taken out, so a secret that this cut would go through is not known to be one.
        self.0 = clean.split_off(clean.len().saturating_sub(HELD_BACK));
        clean
    }
}

/// Bad bytes stay as they are: a secret is text and holds none.
fn redacted(bytes: Vec<u8>, redactor: &Redactor) -> Vec<u8> {
    if let Ok(text) = std::str::from_utf8(&bytes) {
        return match redactor.apply(text) {
            Cow::Borrowed(_) => bytes,
            Cow::Owned(clean) => clean.into_bytes(),
        };
    }
    let mut clean = Vec::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        clean.extend_from_slice(redactor.apply(chunk.valid()).as_bytes());
        clean.extend_from_slice(chunk.invalid());
    }
    clean
}

/// The file that holds the whole output of both streams: nearly in the order of arrival, the last 4 KiB of a stream wait
/// for what follows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpilledOutput {
    /// The file.
    pub path: PathBuf,
    /// Bytes in it.
    pub bytes: u64,
    /// Bytes that did not go into it: it was full, or the disk was.
    pub lost: u64,
}

/// Which output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// Both streams of a job.
pub(crate) struct Capture {
    /// See [`super::run::Tap`].
    pub(super) tap: Option<super::run::Tap>,
    pub(super) out: Kept,
    pub(super) err: Kept,
    held: [Held; 2],
    redactor: Arc<Redactor>,
    spill: Option<SpillTo>,
    name: String,
    file: Option<(File, SpilledOutput)>,
}

impl Capture {
    pub(crate) fn new(keep: usize, spill: Option<SpillTo>, name: String, redactor: &Arc<Redactor>) -> Self {
        Self {
            tap: None,
            out: Kept::new(keep),
            err: Kept::new(keep),
            held: Default::default(),
            redactor: Arc::clone(redactor),
            spill,
            name,
            file: None,
        }
    }

    /// Takes what came; known secrets go no further than here.
    pub(crate) fn push(&mut self, stream: Stream, bytes: &[u8]) {
        if let Some(tap) = &mut self.tap {
            tap(stream, bytes);
        }
        let clean = self.held[stream as usize].push(bytes, &self.redactor);
        self.keep(stream, &clean);
    }

    fn keep(&mut self, stream: Stream, bytes: &[u8]) {
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

    /// What is held back goes out; then nothing is expected any more.
    pub(crate) fn finish(&mut self) -> (Kept, Kept, Option<SpilledOutput>) {
        for stream in [Stream::Out, Stream::Err] {
            let rest = std::mem::take(&mut self.held[stream as usize]).0;
            self.keep(stream, &rest);
        }
        let (out, err) = (std::mem::take(&mut self.out), std::mem::take(&mut self.err));
        (out, err, self.file.take().map(|(_, spilled)| spilled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "sk-canary-éèê-0123456789";

    #[test]
    fn a_secret_is_found_across_any_edge_of_chunks_and_other_bytes_stay() {
        let redactor = Arc::new(Redactor::new([SECRET.to_owned()]));
        let filler = [b"\xE2\xFFx".repeat(2000), b"\xC3".to_vec()].concat();
        let all = [filler.as_slice(), SECRET.as_bytes(), b"\x80", SECRET.as_bytes(), &filler].concat();
        let wanted = [filler.as_slice(), b"[redacted]\x80[redacted]", &filler].concat();
        for size in [1, 2, 3, 7, 4095, 4096, 4097, all.len()] {
            let folder = tempfile::tempdir().unwrap();
            let spill = SpillTo { folder: folder.path().to_owned(), over: 10, most: 1 << 20 };
            let mut capture = Capture::new(1 << 20, Some(spill), "j".into(), &redactor);
            all.chunks(size).for_each(|chunk| capture.push(Stream::Err, chunk));
            let (_, err, spilled) = capture.finish();
            assert_eq!(err.bytes(), wanted, "{size}");
            assert_eq!(std::fs::read(spilled.unwrap().path).unwrap(), wanted, "{size}");
        }
    }

    #[test]
    fn the_ends_that_are_kept_hold_no_part_of_a_secret() {
        let redactor = Arc::new(Redactor::new([SECRET.to_owned()]));
        for before in 0..60 {
            let mut capture = Capture::new(60, None, "j".into(), &redactor);
            capture.push(
                Stream::Out,
                format!("{}{SECRET}{}", "a".repeat(before), "b".repeat(60 - before)).as_bytes(),
            );
            let text = capture.finish().0.text(50);
            assert!(!text.contains("sk-") && !text.contains("789"), "{before} {text}");
        }
    }
}
