//! Writes settings, ignore lines and a CLAUDE.md where they are missing.

use super::describe::describe;
use super::stack::Stack;
use crate::args::{Format, ModelsFlags};
use crate::error::{ExpectedError, exit};
use crate::services::Setup;
use crate::terminal::write_stdout;
use claw_kernel::durable::{self, Mode, Sync};
use serde_json::json;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// It was not there.
    Created,
    /// Lines were added.
    Extended,
    /// It has all it needs.
    LeftAlone,
}

impl Beginning {
    fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Extended => "extended",
            Self::LeftAlone => "left alone",
        }
    }
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDone {
    /// From the project's folder.
    pub path: PathBuf,
    /// What became of it.
    pub what: Beginning,
}

impl fmt::Display for FileDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<10}  {}", self.what.word(), self.path.display())
    }
}

const SETTINGS: &str = ".claw/settings.json";
const SETTINGS_TEXT: &str = "{\n  \"permissions\": {\n    \"defaultMode\": \"workspace-write\"\n  }\n}\n";
const IGNORE: &str = ".gitignore";
const IGNORE_HEAD: &str = "# State and personal settings of coding agents";
const IGNORE_LINES: [&str; 3] = [".claw/", ".claude/settings.local.json", ".claude/sessions/"];
const MEMORY: &str = "CLAUDE.md";

/// `claw init`.
///
/// # Errors
/// The folder cannot be read or written.
pub fn run(flags: &ModelsFlags) -> Result<u8, ExpectedError> {
    let setup = Setup::read(flags.cwd.as_deref())?;
    let done = begin(&setup.cwd)?;
    match flags.output_format {
        Format::Text => {
            let lines: String = done.iter().map(|file| format!("{file}\n")).collect();
            write_stdout(lines)?;
        }
        Format::Json | Format::StreamJson => {
            let files: Vec<_> =
                done.iter().map(|file| json!({ "path": file.path, "result": file.what.word() })).collect();
            write_stdout(format!("{}\n", json!({ "folder": setup.cwd, "files": files })))?;
        }
    }
    Ok(exit::OK)
}

/// Begins a project in this folder.
///
/// # Errors
/// A file cannot be read or written.
pub fn begin(folder: &Path) -> Result<Vec<FileDone>, ExpectedError> {
    let settings = created(folder, SETTINGS, || SETTINGS_TEXT.to_owned())?;
    let ignore = ignored(folder)?;
    let memory = created(folder, MEMORY, || describe(folder, &Stack::of(folder)))?;
    Ok(vec![settings, ignore, memory])
}

fn created(folder: &Path, name: &str, text: impl FnOnce() -> String) -> Result<FileDone, ExpectedError> {
    let path = folder.join(name);
    let done = |what| FileDone { path: PathBuf::from(name), what };
    // Whatever stands there, a broken link too, is somebody's.
    if path.symlink_metadata().is_ok() {
        return Ok(done(Beginning::LeftAlone));
    }
    write(&path, &text())?;
    Ok(done(Beginning::Created))
}

fn ignored(folder: &Path) -> Result<FileDone, ExpectedError> {
    let path = folder.join(IGNORE);
    let done = |what| FileDone { path: PathBuf::from(IGNORE), what };
    let before = match std::fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(source) => return Err(ExpectedError::CannotRead { path, source, near: None }),
    };
    let text = before.clone().unwrap_or_default();
    let has = |line: &str| {
        let bare = |text: &str| text.trim().trim_matches('/').to_owned();
        text.lines().any(|there| bare(there) == bare(line))
    };
    let missing: Vec<&str> = IGNORE_LINES.into_iter().filter(|line| !has(line)).collect();
    if missing.is_empty() {
        return Ok(done(Beginning::LeftAlone));
    }
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut whole = text;
    if !whole.is_empty() {
        if !whole.ends_with('\n') {
            whole.push_str(newline);
        }
        whole.push_str(newline);
    }
    for line in std::iter::once(IGNORE_HEAD).chain(missing) {
        whole.push_str(line);
        whole.push_str(newline);
    }
    // A link's target is meant, not the link.
    let target = path.canonicalize().unwrap_or(path);
    write(&target, &whole)?;
    Ok(done(if before.is_some() { Beginning::Extended } else { Beginning::Created }))
}

fn write(path: &Path, text: &str) -> Result<(), ExpectedError> {
    let failed = |source| ExpectedError::CannotWrite { path: path.to_owned(), source };
    if let Some(folder) = path.parent() {
        durable::private_dir(folder).map_err(failed)?;
    }
    durable::replace(path, text.as_bytes(), Mode::Keep, Sync::Yes).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(folder: &Path, name: &str, text: &str) {
        write(&folder.join(name), text).unwrap();
    }

    fn whats(done: &[FileDone]) -> Vec<Beginning> {
        done.iter().map(|file| file.what).collect()
    }

    #[test]
    fn a_second_run_changes_nothing() {
        use Beginning::{Created, Extended, LeftAlone};
        let folder = tempfile::tempdir().unwrap();
        put(folder.path(), ".gitignore", "/target\n.claw");
        put(folder.path(), "Cargo.toml", "[package]\nname = \"x\"\n");
        assert_eq!(whats(&begin(folder.path()).unwrap()), [Created, Extended, Created]);
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        let before = [read(SETTINGS), read(IGNORE), read(MEMORY)];
        assert_eq!(
            before[1],
            format!("/target\n.claw\n\n{IGNORE_HEAD}\n.claude/settings.local.json\n.claude/sessions/\n")
        );
        assert!(before[2].contains("cargo test"), "{}", before[2]);
        assert_eq!(whats(&begin(folder.path()).unwrap()), [LeftAlone, LeftAlone, LeftAlone]);
        assert_eq!([read(SETTINGS), read(IGNORE), read(MEMORY)], before);
    }

    #[test]
    fn an_empty_folder_gets_all_three() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(whats(&begin(folder.path()).unwrap()), [Beginning::Created; 3]);
        assert!(serde_json::from_str::<serde_json::Value>(SETTINGS_TEXT).is_ok());
    }
}
