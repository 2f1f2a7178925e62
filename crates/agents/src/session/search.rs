//! Words in the sessions of a project.

use super::error::SessionError;
use super::list::{self, Listed};
use super::store::Store;
use crate::transcript::Record;
use claw_providers::message::Block;
use std::path::Path;

/// Hits that are told.
const MOST: usize = 50;
/// Hits of one session.
const MOST_OF_ONE: usize = 5;
/// Bytes of a file that is looked through.
const MOST_BYTES: u64 = 64 << 20;
/// Characters on either side.
const AROUND: usize = 60;

/// A place where the words stand.
#[derive(Clone, Debug)]
pub struct Hit {
    /// The session.
    pub session: Listed,
    /// The words with what stands around them, one line.
    pub text: String,
}

impl Store {
    /// Texts of prompts and answers that hold the words, in any case; the newest sessions first. Blocks.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn search(&self, words: &str) -> Result<Vec<Hit>, SessionError> {
        let words = words.trim().to_lowercase();
        let listed =
            self.list().map_err(|source| SessionError::Io { path: self.folder().to_owned(), source })?;
        let mut hits = Vec::new();
        if words.is_empty() {
            return Ok(hits);
        }
        for session in listed {
            let places = if session.bytes <= MOST_BYTES { places(&session.path, &words) } else { Vec::new() };
            hits.extend(places.into_iter().map(|text| Hit { session: session.clone(), text }));
            if hits.len() >= MOST {
                break;
            }
        }
        hits.truncate(MOST);
        Ok(hits)
    }
}

fn places(path: &Path, words: &str) -> Vec<String> {
    debug_assert!(list::is_own(path));
    let Ok(bytes) = std::fs::read(path) else { return Vec::new() };
    let mut found = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        let content = match serde_json::from_slice::<Record>(line) {
            Ok(Record::Said { content, .. }) => content,
            Ok(Record::Message { message, .. }) => message.content,
            Ok(Record::Prompt { text }) => vec![Block::Text { text }],
            Ok(_) | Err(_) => continue,
        };
        found.extend(content.iter().filter_map(Block::as_text).filter_map(|text| around(text, words)));
        if found.len() >= MOST_OF_ONE {
            found.truncate(MOST_OF_ONE);
            break;
        }
    }
    found
}

fn around(text: &str, words: &str) -> Option<String> {
    let lower = text.to_lowercase();
    let at = lower.find(words)?;
    // Lower case may be longer or shorter: the place is counted in characters.
    let place = lower[..at].chars().count();
    let start = place.saturating_sub(AROUND);
    let piece: String = text.chars().skip(start).take(2 * AROUND + words.chars().count()).collect();
    Some(piece.split_whitespace().collect::<Vec<_>>().join(" "))
}
