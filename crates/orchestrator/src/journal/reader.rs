//! Bytes of a journal become its records, or the place where it is damaged. Never panics, whatever the bytes.
//!
//! Pure. A torn last line is the mark of a kill or a power cut and is cut; anything else that is wrong is damage, and
//! only a person may accept it. Knows nothing of files: see `store.rs`.

use super::codec::{self, BadLine};
use super::record::{Entry, Record, VERSION};
use crate::addr::StepAddr;
use claw_kernel::clock::Timestamp;
use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::ops::Range;

/// A journal that is whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Journal {
    /// In order.
    pub records: Vec<Record>,
    /// What stands behind the last whole line.
    pub torn: Option<Torn>,
}

/// A last line that never became whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torn {
    /// Where it begins: the length of what is whole.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
}

/// E301: lines of a journal are lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The first bad line, from 1.
    pub line: u64,
    /// Its first byte.
    pub offset: u64,
    /// What is wrong there.
    pub reason: DamageReason,
    /// Bad places in all.
    pub places: usize,
    /// Steps that the lost lines may have spoken of.
    pub steps: Vec<StepAddr>,
}

/// What is wrong with a place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DamageReason {
    /// A line holds no record.
    #[error(transparent)]
    Line(#[from] BadLine),
    /// Records are missing.
    #[error("records {expected} to {} are missing", found.saturating_sub(1))]
    Gap {
        /// The next number.
        expected: u64,
        /// The one that is there.
        found: u64,
    },
    /// A record that was there before.
    #[error("record {found} comes again")]
    Repeated {
        /// Its number.
        found: u64,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, byte {}: {}", self.line, self.offset, self.reason)?;
        if self.places > 1 {
            write!(f, " ({} more bad places)", self.places - 1)?;
        }
        if !self.steps.is_empty() {
            f.write_str("; steps concerned:")?;
            for step in self.steps.iter().take(20) {
                write!(f, " {step}")?;
            }
            if self.steps.len() > 20 {
                write!(f, " and {} more", self.steps.len() - 20)?;
            }
        }
        Ok(())
    }
}

/// A journal without its damaged lines.
#[derive(Clone, Debug, PartialEq)]
pub struct Salvaged {
    /// The new journal: old lines as they were, a `damaged` record where lines are lost.
    pub journal: Vec<u8>,
    /// The bytes that were taken out.
    pub damaged: Vec<u8>,
    /// Steps in doubt.
    pub steps: Vec<StepAddr>,
}

/// Reads a journal.
pub fn read(bytes: &[u8]) -> Result<Journal, Box<Damage>> {
    let scan = Scan::of(bytes);
    match scan.places.first() {
        None => Ok(Journal { records: scan.records, torn: scan.torn }),
        Some(first) => Err(Box::new(Damage {
            line: first.line,
            offset: first.bytes.start as u64,
            reason: first.reason.clone(),
            places: scan.places.len(),
            steps: scan
                .places
                .iter()
                .flat_map(|place| place.steps.iter().cloned())
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect(),
        })),
    }
}

/// Takes damaged lines out, once a person has accepted that. A torn last line goes as well.
pub fn salvage(bytes: &[u8], at: Timestamp) -> serde_json::Result<Salvaged> {
    let scan = Scan::of(bytes);
    let whole = scan.torn.map_or(bytes.len(), |torn| torn.offset as usize);
    let mut salvaged =
        Salvaged { journal: Vec::with_capacity(bytes.len()), damaged: Vec::new(), steps: Vec::new() };
    let mut steps = BTreeSet::new();
    let mut from = 0;
    for place in &scan.places {
        salvaged.journal.extend_from_slice(&bytes[from..place.bytes.start]);
        salvaged.damaged.extend_from_slice(&bytes[place.bytes.clone()]);
        from = place.bytes.end;
        let Some(through) = place.lost_through else { continue };
        steps.extend(place.steps.iter().cloned());
        let entry = Entry::Damaged {
            offset: place.bytes.start as u64,
            bytes: place.bytes.len() as u64,
            through,
            steps: place.steps.clone(),
        };
        let record = Record { v: VERSION, seq: place.expected, at, step: None, attempt: None, entry };
        salvaged.journal.extend_from_slice(&codec::encode(&record)?);
    }
    salvaged.journal.extend_from_slice(&bytes[from..whole]);
    salvaged.damaged.extend_from_slice(&bytes[whole..]);
    salvaged.steps = steps.into_iter().collect();
    Ok(salvaged)
}

/// A run of bad bytes.
struct Place {
    line: u64,
    bytes: Range<usize>,
    reason: DamageReason,
    /// The number that should stand here.
    expected: u64,
    /// The last number that is lost with it; `None` where nothing is.
    lost_through: Option<u64>,
    /// Lines in it that hold no record.
    unread: usize,
    steps: Vec<StepAddr>,
}

#[derive(Default)]
struct Scan {
    records: Vec<Record>,
    torn: Option<Torn>,
    places: Vec<Place>,
    /// Steps admitted and not ended, and all steps, as of the first `told` records.
    open: HashSet<StepAddr>,
    seen: HashSet<StepAddr>,
    told: usize,
}

impl Scan {
    fn of(bytes: &[u8]) -> Self {
        let mut scan = Self::default();
        let mut expected: u64 = 1;
        let mut start = 0;
        let mut line = 0;
        while start < bytes.len() {
            line += 1;
            let rest = &bytes[start..];
            let end = rest.iter().position(|byte| *byte == b'\n');
            let text = &rest[..end.unwrap_or(rest.len())];
            let next = start + end.map_or(rest.len(), |end| end + 1);
            let decoded = if end.is_some() { codec::decode(text) } else { Err(BadLine::NoChecksum) };
            match decoded {
                Ok(record) if record.seq < expected => {
                    let reason = DamageReason::Repeated { found: record.seq };
                    scan.bad(line, start..next, reason, expected);
                }
                Ok(record) => {
                    if record.seq > expected {
                        scan.gap(bytes, line, start, expected..record.seq);
                    }
                    expected = last_number(&record).saturating_add(1);
                    scan.records.push(record);
                }
                // No text that claw wrote holds a NUL: it is a block that the disk never got.
                Err(_) if next == bytes.len() && (end.is_none() || text.contains(&0)) => {
                    scan.torn = Some(Torn { offset: start as u64, bytes: (next - start) as u64 });
                }
                Err(reason) => scan.bad(line, start..next, reason.into(), expected),
            }
            start = next;
        }
        scan.judge_the_end(bytes, expected);
        scan
    }

    fn bad(&mut self, line: u64, bytes: Range<usize>, reason: DamageReason, expected: u64) {
        match self.places.last_mut() {
            Some(last) if last.bytes.end == bytes.start => {
                last.bytes.end = bytes.end;
                last.unread += usize::from(matches!(reason, DamageReason::Line(_)));
            }
            Some(_) | None => {
                let unread = usize::from(matches!(reason, DamageReason::Line(_)));
                let steps = Vec::new();
                self.places.push(Place { line, bytes, reason, expected, lost_through: None, unread, steps });
            }
        }
    }

    /// Numbers are missing before the line at `start`: lost with the bad bytes just before it, or without a trace.
    fn gap(&mut self, bytes: &[u8], line: u64, start: usize, missing: Range<u64>) {
        if self.places.last().is_none_or(|last| last.bytes.end != start) {
            let reason = DamageReason::Gap { expected: missing.start, found: missing.end };
            self.bad(line, start..start, reason, missing.start);
        }
        self.lose(bytes, missing.end - 1);
    }

    /// The steps concerned: those that the bad lines name, where each line names one that is known and there is a
    /// line for each number; else all that were open as well.
    fn lose(&mut self, bytes: &[u8], through: u64) {
        self.catch_up();
        let Some(place) = self.places.last_mut() else { return };
        let named: Vec<StepAddr> = bytes[place.bytes.clone()]
            .split(|byte| *byte == b'\n')
            .filter_map(step_of)
            .filter(|step| self.seen.contains(step))
            .collect();
        let mut steps: BTreeSet<StepAddr> = named.iter().cloned().collect();
        if place.unread == 0 || named.len() != place.unread || through - place.expected >= place.unread as u64
        {
            steps.extend(self.open.iter().cloned());
        }
        place.lost_through = Some(through);
        place.steps = steps.into_iter().collect();
    }

    fn catch_up(&mut self) {
        for record in &self.records[self.told..] {
            let Some(step) = &record.step else { continue };
            self.seen.insert(step.clone());
            match &record.entry {
                Entry::Admitted { .. } => {
                    self.open.insert(step.clone());
                }
                Entry::Ended(_) => {
                    self.open.remove(step);
                }
                Entry::Take(_)
                | Entry::Expanded { .. }
                | Entry::Intent { .. }
                | Entry::Done { .. }
                | Entry::Turn { .. }
                | Entry::Paused { .. }
                | Entry::RunEnded { .. }
                | Entry::Spawned { .. }
                | Entry::MergeEnqueued { .. }
                | Entry::MergeDelivered { .. }
                | Entry::Asked(_)
                | Entry::Answered(_)
                | Entry::Steered { .. }
                | Entry::Damaged { .. } => {}
            }
        }
        self.told = self.records.len();
    }

    /// Bad lines with no record after them: what they held is lost, and nobody knows how much it was.
    fn judge_the_end(&mut self, bytes: &[u8], expected: u64) {
        let end = self.torn.map_or(bytes.len(), |torn| torn.offset as usize);
        if self.places.last().is_some_and(|place| place.bytes.end == end && place.unread > 0) {
            self.lose(bytes, expected);
        }
    }
}

/// The address in a line that is no record any more, as far as it can be read.
fn step_of(line: &[u8]) -> Option<StepAddr> {
    const FIELD: &[u8] = br#""step":""#;
    let at = line.windows(FIELD.len()).position(|window| window == FIELD)? + FIELD.len();
    let rest = &line[at..];
    let end = rest.iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(&rest[..end]).ok()?.parse().ok()
}

/// The last number that a record stands for.
pub(super) fn last_number(record: &Record) -> u64 {
    match &record.entry {
        Entry::Damaged { through, .. } => record.seq.max(*through),
        Entry::Take(_)
        | Entry::Expanded { .. }
        | Entry::Admitted { .. }
        | Entry::Intent { .. }
        | Entry::Done { .. }
        | Entry::Turn { .. }
        | Entry::Ended(_)
        | Entry::Spawned { .. }
        | Entry::MergeEnqueued { .. }
        | Entry::MergeDelivered { .. }
        | Entry::Asked(_)
        | Entry::Answered(_)
        | Entry::Steered { .. }
        | Entry::Paused { .. }
        | Entry::RunEnded { .. } => record.seq,
    }
}

#[cfg(test)]
mod tests;
