//! Where the history of a project is kept: one JSON text a line, private, bounded.

use super::history::{History, MOST};
use claw_kernel::durable::{self, Mode, Sync};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Bytes of the file that are read, from its end.
const MOST_BYTES: u64 = 4 * 1024 * 1024;
/// A longer entry is not kept.
const LONGEST: usize = 64 * 1024;

/// The file.
#[derive(Clone, Debug)]
pub struct HistoryFile {
    path: PathBuf,
}

impl HistoryFile {
    /// At this place; it need not exist.
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// What it holds; lines that are none are left out.
    pub fn load(&self) -> History {
        History::new(entries(&self.path).unwrap_or_default())
    }

    /// Adds an entry to what other processes wrote meanwhile.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add(&self, text: &str) -> io::Result<()> {
        if text.len() > LONGEST {
            return Ok(());
        }
        if let Some(folder) = self.path.parent() {
            durable::private_dir(folder)?;
        }
        let mut all = entries(&self.path).unwrap_or_default();
        if all.last().is_some_and(|last| last == text) {
            return Ok(());
        }
        all.push(text.to_owned());
        let surplus = all.len().saturating_sub(MOST);
        let lines: String = all
            .iter()
            .skip(surplus)
            .filter_map(|entry| serde_json::to_string(entry).ok())
            .map(|line| line + "\n")
            .collect();
        durable::replace(&self.path, lines.as_bytes(), Mode::Private, Sync::No)
    }
}

fn entries(path: &Path) -> io::Result<Vec<String>> {
    let file = std::fs::File::open(path)?;
    let mut text = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_two_processes_are_kept_and_broken_lines_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sub/history.jsonl");
        let (one, two) = (HistoryFile::at(path.clone()), HistoryFile::at(path.clone()));
        one.add("first\nwith two lines").unwrap();
        two.add("second").unwrap();
        two.add("second").unwrap();
        one.add("third").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "\"first\\nwith two lines\"\n\"second\"\n\"third\"\n");
        durable::replace(&path, format!("{text}\"torn").as_bytes(), Mode::Private, Sync::No).unwrap();
        assert_eq!(one.load().len(), 3);
        let mode = std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
}
