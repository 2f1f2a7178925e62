//! Where the sessions of a project lie, and how one is named.

use super::error::SessionError;
use super::list::{self, Listed};
use claw_kernel::ids::SessionId;
use claw_kernel::{durable, safe_name};
use std::io;
use std::path::{Path, PathBuf};

/// Ids that an error names.
const MOST_NAMED: usize = 5;

/// The sessions of one working folder.
#[derive(Clone, Debug)]
pub struct Store {
    config_home: PathBuf,
    workspace: PathBuf,
    folder: PathBuf,
}

/// How a user names a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// The one written last.
    Latest,
    /// A file.
    Path(PathBuf),
    /// An id, the beginning of one, or a name.
    Word(String),
}

/// A session that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// One of claw's own.
    Own {
        /// Its id.
        id: SessionId,
        /// Its file.
        path: PathBuf,
    },
    /// A file of another program or of an older format: it is read into a new session.
    Foreign {
        /// The file.
        path: PathBuf,
    },
}

impl Reference {
    /// As typed; relative paths count from `folder`.
    pub fn read(typed: &str, folder: &Path) -> Self {
        let typed = typed.trim();
        if typed.is_empty() || typed == "latest" || typed == "last" {
            return Self::Latest;
        }
        let has_ending = Path::new(typed).extension().is_some_and(|end| end == "jsonl" || end == "json");
        if typed.contains('/') || has_ending {
            return Self::Path(folder.join(typed));
        }
        Self::Word(typed.to_owned())
    }
}

impl Store {
    /// The sessions of `workspace` (resolved, absolute) below the user's config home.
    pub fn new(config_home: &Path, workspace: &Path) -> Self {
        let name = safe_name::encode(&workspace.to_string_lossy());
        Self {
            config_home: config_home.to_owned(),
            workspace: workspace.to_owned(),
            folder: config_home.join("projects").join(name),
        }
    }

    /// The sessions of `workspace` in a folder that the settings name.
    pub fn in_folder(config_home: &Path, workspace: &Path, folder: PathBuf) -> Self {
        Self { config_home: config_home.to_owned(), workspace: workspace.to_owned(), folder }
    }

    /// Their folder. It may not exist.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The working folder that they belong to.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    pub(super) fn make_folder(&self) -> Result<(), SessionError> {
        durable::private_dir(&self.folder)
            .map_err(|source| SessionError::Io { path: self.folder.clone(), source })
    }

    /// The file of a session.
    pub fn file(&self, id: SessionId) -> PathBuf {
        self.folder.join(format!("{id}.jsonl"))
    }

    /// All sessions, the one written last first. Reads the beginning and the end of each.
    ///
    /// # Errors
    /// The folder cannot be read; a missing one is empty.
    pub fn list(&self) -> io::Result<Vec<Listed>> {
        list::of(&self.folder)
    }

    /// The session that is meant.
    ///
    /// # Errors
    /// There is none, or several are.
    pub fn find(&self, reference: &Reference) -> Result<Found, SessionError> {
        match reference {
            Reference::Latest => self.latest(),
            Reference::Path(path) => at(path),
            Reference::Word(word) => self.named(word),
        }
    }

    fn latest(&self) -> Result<Found, SessionError> {
        let newest = list::files(&self.folder).unwrap_or_default().into_iter().next();
        let newest = newest.ok_or_else(|| SessionError::None { folder: self.workspace.clone() })?;
        Ok(Found::Own { id: newest.id, path: newest.path })
    }

    fn named(&self, word: &str) -> Result<Found, SessionError> {
        let files = list::files(&self.folder).unwrap_or_default();
        let lower = word.to_lowercase();
        let mut begins: Vec<_> =
            files.iter().filter(|file| file.id.to_string().starts_with(&lower)).collect();
        if begins.is_empty() {
            let listed = self.list().unwrap_or_default();
            let by_name: Vec<SessionId> =
                listed.iter().filter(|one| one.name.as_deref() == Some(word)).map(|one| one.id).collect();
            begins = files.iter().filter(|file| by_name.contains(&file.id)).collect();
        }
        match begins.as_slice() {
            [one] => Ok(Found::Own { id: one.id, path: one.path.clone() }),
            [] => self.elsewhere(word),
            several => Err(SessionError::Ambiguous {
                reference: word.to_owned(),
                ids: several.iter().take(MOST_NAMED).map(|file| file.id.to_string()).collect(),
            }),
        }
    }

    /// Files of other formats in the places where they are usual, then other projects.
    fn elsewhere(&self, word: &str) -> Result<Found, SessionError> {
        if claw_kernel::safe_name::is_encoded(word) {
            for folder in self.foreign_folders() {
                for ending in ["json", "jsonl"] {
                    let path = folder.join(format!("{word}.{ending}"));
                    if path.is_file() {
                        return Ok(Found::Foreign { path });
                    }
                }
            }
        }
        let projects = self.config_home.join("projects");
        let folders = projects.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
        let mut files = folders.flat_map(|folder| list::files(&folder).unwrap_or_default());
        let lower = word.to_lowercase();
        match files.find(|file| lower.len() >= 8 && file.id.to_string().starts_with(&lower)) {
            Some(file) => Err(SessionError::Elsewhere { reference: word.to_owned(), path: file.path }),
            None => Err(SessionError::Unknown { reference: word.to_owned(), folder: self.workspace.clone() }),
        }
    }

    fn foreign_folders(&self) -> Vec<PathBuf> {
        let mut folders =
            vec![self.workspace.join(".claude/sessions"), self.workspace.join(".claw/sessions")];
        if let Some(home) = self.config_home.parent() {
            folders.push(home.join(".claude/sessions"));
            let plain: String = self
                .workspace
                .to_string_lossy()
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
                .collect();
            folders.push(home.join(".claude/projects").join(plain));
        }
        folders
    }
}

/// One of claw's own lies under its id; anything else is read as what it is.
fn at(path: &Path) -> Result<Found, SessionError> {
    let path = path.canonicalize().map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => {
            SessionError::NoSession { path: path.to_owned(), why: "there is no such file".to_owned() }
        }
        _ => SessionError::Io { path: path.to_owned(), source },
    })?;
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let id = stem.parse::<SessionId>().ok().filter(|_| list::is_own(&path));
    Ok(match id {
        Some(id) => Found::Own { id, path },
        None => Found::Foreign { path },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_an_id_and_what_has_a_slash_or_an_ending_is_a_path() {
        let folder = Path::new("/w");
        assert_eq!(Reference::read("latest", folder), Reference::Latest);
        assert_eq!(Reference::read("0190", folder), Reference::Word("0190".into()));
        assert_eq!(Reference::read("a/b", folder), Reference::Path("/w/a/b".into()));
        assert_eq!(Reference::read("x.jsonl", folder), Reference::Path("/w/x.jsonl".into()));
    }
}
