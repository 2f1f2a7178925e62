//! One record is one line: JSON whose last field is the checksum of all that stands before it.
//!
//! Pure. Knows nothing of files or of the order of records: see `reader.rs`.

use super::record::{Record, VERSION};
use serde::Deserialize;

/// `,"crc":"01234567"}`.
const TAIL: usize = 18;

/// A line that holds no record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLine {
    /// Cut off, or never a record.
    #[error("the line has no checksum")]
    NoChecksum,
    /// Its bytes are not those that were written.
    #[error("the checksum is wrong")]
    Checksum,
    /// Of another version of this format.
    #[error("the record is of version {0}; this claw reads version {VERSION}")]
    Version(u64),
    /// The bytes are as they were written, but say nothing that this program knows.
    #[error("the record cannot be understood: {0}")]
    Shape(String),
}

/// The line of a record, with its line end.
pub fn encode(record: &Record) -> serde_json::Result<Vec<u8>> {
    let mut line = Vec::with_capacity(512);
    serde_json::to_writer(&mut line, record)?;
    line.pop();
    let tail = tail(&line);
    line.extend_from_slice(&tail);
    line.push(b'\n');
    Ok(line)
}

/// The record of a line without its line end.
pub fn decode(line: &[u8]) -> Result<Record, BadLine> {
    let body = line.len().checked_sub(TAIL).ok_or(BadLine::NoChecksum)?;
    let (body, found) = line.split_at(body);
    if !found.starts_with(br#","crc":""#) || !found.ends_with(br#""}"#) {
        return Err(BadLine::NoChecksum);
    }
    if tail(body) != found {
        return Err(BadLine::Checksum);
    }
    let record: Record = serde_json::from_slice(line).map_err(|error| shape(line, &error))?;
    if record.v == VERSION { Ok(record) } else { Err(BadLine::Version(u64::from(record.v))) }
}

fn tail(body: &[u8]) -> [u8; TAIL] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut tail = *br#","crc":"00000000"}"#;
    let crc = crc32c::crc32c(body);
    for (digit, shift) in tail[8..16].iter_mut().zip((0..8).rev()) {
        *digit = HEX[(crc >> (4 * shift)) as usize & 15];
    }
    tail
}

/// A record of a newer format may have any shape: say so rather than what is wrong with it here.
fn shape(line: &[u8], error: &serde_json::Error) -> BadLine {
    #[derive(Deserialize)]
    struct Versioned {
        v: u64,
    }
    match serde_json::from_slice::<Versioned>(line) {
        Ok(Versioned { v }) if v != u64::from(VERSION) => BadLine::Version(v),
        Ok(_) | Err(_) => BadLine::Shape(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::record::{EndState, Ended, Entry};
    use claw_kernel::clock::Timestamp;
    use claw_providers::usage::Usage;

    fn ended() -> Record {
        Record {
            v: VERSION,
            seq: 7,
            at: Timestamp::from_millis(1_764_581_022_042),
            step: Some("fix@2/edit".parse().unwrap()),
            attempt: Some(1),
            entry: Entry::Ended(Ended {
                state: EndState::Succeeded,
                key: None,
                output: None,
                error: None,
                class: None,
                retry: false,
                usage: Some(Usage::NOTHING),
                denials: Vec::new(),
            }),
        }
    }

    #[test]
    fn a_line_has_the_shape_that_the_contract_names() {
        let line = String::from_utf8(encode(&ended()).unwrap()).unwrap();
        assert!(
            line.starts_with(
                r#"{"v":1,"seq":7,"at":"2025-12-01T09:23:42.042Z","step":"fix@2/edit","attempt":1,"event":"ended","data":{"state":"succeeded","#
            ),
            "{line}"
        );
        assert!(line.ends_with("\"}\n"), "{line}");
        assert_eq!(decode(line.trim_end().as_bytes()), Ok(ended()));
    }

    #[test]
    fn the_checksum_is_that_of_the_line_up_to_its_comma() {
        let line = encode(&ended()).unwrap();
        let body = &line[..line.len() - TAIL - 1];
        let written = std::str::from_utf8(&line[line.len() - 11..line.len() - 3]).unwrap();
        assert_eq!(written, format!("{:08x}", crc32c::crc32c(body)));
    }

    #[test]
    fn a_flipped_bit_anywhere_is_seen() {
        let line = encode(&ended()).unwrap();
        let line = &line[..line.len() - 1];
        for at in 0..line.len() {
            for bit in 0..8 {
                let mut bad = line.to_vec();
                bad[at] ^= 1 << bit;
                assert!(decode(&bad).is_err(), "byte {at}, bit {bit}");
            }
        }
    }

    #[test]
    fn a_record_of_a_newer_format_is_called_that() {
        let mut body = br#"{"v":9,"event":"dreamt""#.to_vec();
        let tail = tail(&body);
        body.extend_from_slice(&tail);
        assert_eq!(decode(&body), Err(BadLine::Version(9)));
    }

    #[test]
    fn a_checksum_that_holds_does_not_make_a_record() {
        let mut body = br#"{"v":1,"seq":1,"at":"2025-12-01T09:23:42.042Z","step":"../x","event":"turn","data":{"turn":1,"bytes":1}"#.to_vec();
        let tail = tail(&body);
        body.extend_from_slice(&tail);
        assert!(matches!(decode(&body), Err(BadLine::Shape(_))));
    }
}
