use super::*;
use crate::journal::record::{EndState, Ended};
use claw_kernel::digest::Digest;
use proptest::prelude::*;

fn record(seq: u64, step: &str, entry: Entry) -> Record {
    let step = (!step.is_empty()).then(|| step.parse().unwrap());
    let attempt = step.as_ref().map(|_| 1);
    Record {
        v: VERSION,
        seq,
        at: Timestamp::from_millis(1_764_581_022_042 + seq as i64),
        step,
        attempt,
        entry,
    }
}

fn admitted(seq: u64, step: &str) -> Record {
    record(seq, step, Entry::Admitted { key: Digest::of(step), agent: None })
}

fn ended(seq: u64, step: &str) -> Record {
    let ended = Ended {
        state: EndState::Succeeded,
        key: Some(Digest::of(step)),
        output: None,
        error: None,
        class: None,
        retry: false,
        usage: None,
        denials: Vec::new(),
    };
    record(seq, step, Entry::Ended(ended))
}

fn sample() -> Vec<Record> {
    vec![
        admitted(1, "a"),
        admitted(2, "b"),
        record(3, "a", Entry::Turn { turn: 1, bytes: 10, usage: None }),
        ended(4, "a"),
        admitted(5, "c=x%2Fy"),
        ended(6, "b"),
    ]
}

fn lines(records: &[Record]) -> Vec<Vec<u8>> {
    records.iter().map(|record| codec::encode(record).unwrap()).collect()
}

fn bytes(records: &[Record]) -> Vec<u8> {
    lines(records).concat()
}

fn steps(names: &[&str]) -> Vec<StepAddr> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

#[test]
fn what_was_written_is_read() {
    let journal = read(&bytes(&sample())).unwrap();
    assert_eq!(journal, Journal { records: sample(), torn: None });
    assert_eq!(read(b""), Ok(Journal::default()));
}

#[test]
fn a_journal_cut_at_any_byte_gives_its_whole_lines() {
    let whole = bytes(&sample());
    for cut in 0..whole.len() {
        let journal = read(&whole[..cut]).unwrap();
        let count = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(journal.records, sample()[..count]);
        let offset = whole[..cut].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let torn = (offset < cut).then(|| Torn { offset: offset as u64, bytes: (cut - offset) as u64 });
        assert_eq!(journal.torn, torn);
    }
}

#[test]
fn a_block_of_zeros_at_the_end_is_a_torn_line() {
    let mut torn = bytes(&sample());
    let length = torn.len();
    torn.extend([0; 512]);
    assert_eq!(read(&torn).unwrap().torn, Some(Torn { offset: length as u64, bytes: 512 }));
    torn.push(b'\n');
    assert_eq!(read(&torn).unwrap().records, sample());
}

#[test]
fn a_flipped_byte_anywhere_is_damage_at_its_line() {
    let whole = bytes(&sample());
    for at in 0..whole.len() - 1 {
        let mut bad = whole.clone();
        bad[at] ^= 0x20;
        let line = 1 + whole[..at].iter().filter(|byte| **byte == b'\n').count() as u64;
        let damage = read(&bad).unwrap_err();
        assert_eq!(damage.line, line, "byte {at}");
    }
}

#[test]
fn damage_names_line_offset_and_step() {
    let mut parts = lines(&sample());
    let offset = (parts[0].len() + parts[1].len() + parts[2].len()) as u64;
    let at = parts[3].len() - 60;
    parts[3][at] ^= 1;
    let damage = read(&parts.concat()).unwrap_err();
    assert_eq!(
        (damage.line, damage.offset, &damage.reason),
        (4, offset, &DamageReason::Line(BadLine::Checksum))
    );
    assert_eq!(damage.steps, steps(&["a"]));
    assert_eq!(
        damage.to_string(),
        format!("line 4, byte {offset}: the checksum is wrong; steps concerned: a")
    );
}

#[test]
fn a_bad_line_that_names_no_known_step_concerns_all_that_were_open() {
    let mut parts = lines(&sample());
    parts[2] = b"garbage\n".to_vec();
    assert_eq!(read(&parts.concat()).unwrap_err().steps, steps(&["a", "b"]));
}

#[test]
fn a_missing_record_is_a_gap_and_a_doubled_one_is_seen() {
    let mut parts = lines(&sample());
    let lost = parts.remove(3);
    let damage = read(&parts.concat()).unwrap_err();
    assert_eq!((damage.line, &damage.reason), (4, &DamageReason::Gap { expected: 4, found: 5 }));
    assert_eq!(damage.steps, steps(&["a", "b"]));
    parts.insert(3, lost.clone());
    parts.insert(4, lost);
    let damage = read(&parts.concat()).unwrap_err();
    assert_eq!((damage.line, &damage.reason), (5, &DamageReason::Repeated { found: 4 }));
    assert_eq!(damage.steps, []);
}

#[test]
fn what_was_salvaged_is_a_whole_journal_that_tells_of_the_loss() {
    let at = Timestamp::from_millis(5);
    let mut parts = lines(&sample());
    let old = parts[3].clone();
    parts[3][20] ^= 1;
    let salvaged = salvage(&parts.concat(), at).unwrap();
    assert_eq!(salvaged.damaged, parts[3]);
    assert_ne!(salvaged.damaged, old);
    assert_eq!(salvaged.steps, steps(&["a"]));
    let journal = read(&salvaged.journal).unwrap();
    assert_eq!(journal.records.len(), sample().len());
    assert!(matches!(&journal.records[3].entry, Entry::Damaged { through: 4, .. }));
    assert_eq!(journal.records[4..], sample()[4..]);
}

#[test]
fn several_lost_numbers_become_one_record_and_the_numbers_go_on() {
    let mut parts = lines(&sample());
    parts.drain(2..4);
    let salvaged = salvage(&parts.concat(), Timestamp::from_millis(5)).unwrap();
    let journal = read(&salvaged.journal).unwrap();
    assert!(matches!(&journal.records[2], Record { seq: 3, entry: Entry::Damaged { through: 4, .. }, .. }));
    assert_eq!(journal.records[3..], sample()[4..]);
}

#[test]
fn a_line_that_took_no_number_goes_without_a_word_in_the_journal() {
    let mut parts = lines(&sample());
    parts.insert(2, b"\n".to_vec());
    let salvaged = salvage(&parts.concat(), Timestamp::from_millis(5)).unwrap();
    assert_eq!(salvaged.journal, bytes(&sample()));
    assert_eq!(salvaged.steps, []);
}

fn any_edit() -> impl Strategy<Value = Vec<u8>> {
    let whole = bytes(&sample());
    let length = whole.len();
    prop::collection::vec((0..length, 0_u8..5, any::<u8>(), 1_usize..600), 1..4).prop_map(move |edits| {
        let mut bytes = whole.clone();
        for (at, kind, byte, long) in edits {
            let at = at.min(bytes.len());
            let end = (at + long).min(bytes.len());
            match kind {
                0 => bytes.truncate(at),
                1 => bytes[at..end].fill(0),
                2 => bytes.insert(at, byte),
                3 => drop(bytes.drain(at..end)),
                _ => {
                    let copy = bytes[at..end].to_vec();
                    bytes.splice(at..at, copy);
                }
            }
        }
        bytes
    })
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused_and_can_be_salvaged(bytes in prop_oneof![any_edit(), prop::collection::vec(any::<u8>(), 0..400)]) {
        let _ = read(&bytes);
        let salvaged = salvage(&bytes, Timestamp::from_millis(5)).unwrap();
        let journal = read(&salvaged.journal).unwrap();
        prop_assert_eq!(journal.torn, None);
    }

    #[test]
    fn records_that_stayed_whole_are_never_lost(bytes in any_edit()) {
        let salvaged = salvage(&bytes, Timestamp::from_millis(5)).unwrap();
        let journal = read(&salvaged.journal).unwrap();
        let mut at = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if let Ok(record) = codec::decode(line.strip_suffix(b"\n").unwrap_or(b"")) && record.seq > at {
                at = record.seq;
                prop_assert!(journal.records.contains(&record));
            }
        }
    }
}

/// About 20 KB.
fn long_sample() -> Vec<Record> {
    let of = |n: u64| {
        if n.is_multiple_of(2) {
            ended(n, &format!("s{}", n / 2))
        } else {
            admitted(n, &format!("s{}", n.div_ceil(2)))
        }
    };
    (1..=90).map(of).collect()
}

/// Every byte with `CLAW_LONG_TESTS=1`, some of them without.
fn places(length: usize) -> impl Iterator<Item = usize> {
    let long = std::env::var("CLAW_LONG_TESTS").is_ok_and(|long| long == "1");
    (0..length).step_by(if long { 1 } else { 97 })
}

#[test]
fn of_a_long_journal_a_flipped_byte_costs_one_line() {
    let records = long_sample();
    let whole = bytes(&records);
    assert!(whole.len() > 15_000, "{}", whole.len());
    for at in places(whole.len() - 1) {
        let mut bad = whole.clone();
        bad[at] ^= 0x01;
        let start = whole[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let damage = read(&bad).unwrap_err();
        assert_eq!(damage.offset, start as u64, "byte {at}");
        let salvaged = salvage(&bad, Timestamp::from_millis(5)).unwrap();
        let journal = read(&salvaged.journal).unwrap();
        // A line end that is gone makes one bad line of two.
        let most = if whole[at] == b'\n' { 2 } else { 1 };
        let lost = records.iter().filter(|record| !journal.records.contains(record)).count();
        assert!(lost <= most, "byte {at}: {lost} records are lost");
    }
}

#[test]
fn of_a_long_journal_a_cut_costs_its_last_line_and_a_second_copy_of_any_is_seen() {
    let records = long_sample();
    let whole = bytes(&records);
    for cut in places(whole.len()) {
        let journal = read(&whole[..cut]).unwrap();
        let count = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(journal.records, records[..count], "cut at {cut}");
    }
    let lines = lines(&records);
    for (at, line) in lines.iter().enumerate() {
        let doubled = [lines[..=at].concat(), line.clone(), lines[at + 1..].concat()].concat();
        let damage = read(&doubled).unwrap_err();
        assert_eq!(damage.reason, DamageReason::Repeated { found: at as u64 + 1 });
    }
}

fn fixture(name: &str) -> Vec<u8> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/journal/v1");
    std::fs::read(folder.join(name)).unwrap()
}

#[test]
fn the_frozen_journals_stay_readable() {
    let bytes = fixture("every-event.jsonl");
    let journal = read(&bytes).unwrap();
    assert_eq!((journal.records.len(), journal.torn), (24, None));
    assert_eq!(
        journal.records.iter().flat_map(|record| codec::encode(record).unwrap()).collect::<Vec<_>>(),
        bytes
    );
    let torn = read(&fixture("torn.jsonl")).unwrap();
    assert_eq!((torn.records.len(), torn.torn.is_some()), (23, true));
    let damage = read(&fixture("damaged.jsonl")).unwrap_err();
    assert_eq!((damage.line, damage.steps), (6, steps(&["diff"])));
}
