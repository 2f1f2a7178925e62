//! Lists of sessions: the beginning and the end of each file, never the whole.

use crate::transcript::{Record, first_line};
use claw_kernel::clock::Timestamp;
use claw_kernel::ids::SessionId;
use claw_providers::usage::Usage;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Bytes read at either end.
const END: u64 = 16 * 1024;
/// Sessions of one folder that are listed.
const MOST: usize = 2_000;

/// A session in a list.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Its id.
    pub id: SessionId,
    /// Its file.
    pub path: PathBuf,
    /// Last written.
    pub modified: Timestamp,
    /// When it began, where its beginning tells.
    pub began: Option<Timestamp>,
    /// Bytes of the file.
    pub bytes: u64,
    /// The user's name for it.
    pub name: Option<String>,
    /// The beginning of its first prompt.
    pub title: Option<String>,
    /// Prompts, where its end tells.
    pub prompts: Option<u32>,
    /// Spent, where it was left in good order.
    pub usage: Option<Usage>,
    /// What it was made from.
    pub from: Option<String>,
}

/// A file that is a session's by its name.
pub(super) struct SessionFile {
    pub(super) id: SessionId,
    pub(super) path: PathBuf,
    modified: Timestamp,
    bytes: u64,
}

/// The files of a folder, the one written last first.
pub(super) fn files(folder: &Path) -> io::Result<Vec<SessionFile>> {
    let entries = match folder.read_dir() {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut files: Vec<SessionFile> = entries.flatten().filter_map(|entry| file(&entry.path())).collect();
    // Two that were written in the same moment: the newer id goes first.
    files.sort_by_key(|file| std::cmp::Reverse((file.modified, file.id)));
    Ok(files)
}

fn file(path: &Path) -> Option<SessionFile> {
    let id = path.file_name()?.to_str()?.strip_suffix(".jsonl")?.parse().ok()?;
    let meta = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let since = meta.modified().ok()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    let modified = Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
    Some(SessionFile { id, path: path.to_owned(), modified, bytes: meta.len() })
}

pub(super) fn of(folder: &Path) -> io::Result<Vec<Listed>> {
    Ok(files(folder)?.into_iter().take(MOST).map(listed).collect())
}

/// The first line is a record of claw's.
pub(super) fn is_own(path: &Path) -> bool {
    let Ok(head) = File::open(path).and_then(|file| bytes_of(file, 0)) else { return false };
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.starts_with(b"{\"v\":") || line.is_empty()
}

fn listed(file: SessionFile) -> Listed {
    let SessionFile { id, path, modified, bytes } = file;
    let mut listed = Listed {
        id,
        modified,
        began: None,
        bytes,
        name: None,
        title: None,
        prompts: None,
        usage: None,
        from: None,
        path,
    };
    // What cannot be read is listed by its name alone.
    if let Ok((head, tail)) = ends(&listed.path, bytes) {
        for line in head.split(|byte| *byte == b'\n') {
            listed.at_head(line);
        }
        for line in tail.split(|byte| *byte == b'\n') {
            listed.at_tail(line);
        }
    }
    listed
}

fn ends(path: &Path, bytes: u64) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let head = bytes_of(File::open(path)?, 0)?;
    let tail = bytes_of(File::open(path)?, bytes.saturating_sub(END))?;
    Ok((head, tail))
}

fn bytes_of(mut file: File, from: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(END).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl Listed {
    fn at_head(&mut self, line: &[u8]) {
        match serde_json::from_slice::<Record>(line) {
            Ok(Record::Session { at, name, from, .. }) => {
                self.began.get_or_insert(at);
                self.name = name.or_else(|| self.name.take());
                self.from = from.or_else(|| self.from.take());
            }
            Ok(Record::Said { content, .. }) if self.title.is_none() => self.title = first_line(&content),
            Ok(Record::Prompt { text }) if self.title.is_none() => {
                self.title = first_line(&[claw_providers::message::Block::Text { text }]);
            }
            Ok(Record::Named { name }) => self.name = (!name.is_empty()).then_some(name),
            Ok(_) | Err(_) => {}
        }
    }

    fn at_tail(&mut self, line: &[u8]) {
        match serde_json::from_slice::<Record>(line) {
            Ok(Record::Closed { name, title, prompts, usage, .. }) => {
                self.name = name;
                self.title = (!title.is_empty()).then_some(title).or_else(|| self.title.take());
                self.prompts = Some(prompts);
                self.usage = Some(usage);
            }
            Ok(Record::Named { name }) => self.name = (!name.is_empty()).then_some(name),
            Ok(Record::Session { name: Some(name), .. }) => self.name = Some(name),
            Ok(Record::Said { prompt, .. }) => {
                self.prompts = Some(prompt);
                self.usage = None;
            }
            Ok(_) | Err(_) => {}
        }
    }
}
