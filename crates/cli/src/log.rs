//! The log file: only where `CLAW_LOG` asks for one, without secrets, never on the terminal.

use crate::error::ExpectedError;
use crate::services::{known_secrets, state_folder};
use claw_kernel::durable;
use claw_kernel::redact::Redactor;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Opens the log where one is asked for.
///
/// # Errors
/// `CLAW_LOG` is no filter, or the file cannot be made.
pub fn start() -> Result<(), ExpectedError> {
    let Some(filter) = variable("CLAW_LOG") else { return Ok(()) };
    let rules: EnvFilter = filter.parse().map_err(|_| ExpectedError::LogFilter { filter: filter.clone() })?;
    let path = match variable("CLAW_LOG_FILE") {
        Some(path) => PathBuf::from(path),
        None => fresh_file()?,
    };
    let file = open(&path)?;
    let door = Door { file: Arc::new(Mutex::new(file)), redactor: Arc::new(Redactor::new(known_secrets())) };
    let log = tracing_subscriber::fmt().with_env_filter(rules).with_ansi(false).with_writer(door);
    // A second one in this process is not an error of the user: the first stays.
    let _ = log.try_init();
    Ok(())
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

fn fresh_file() -> Result<PathBuf, ExpectedError> {
    let folder = state_folder().join("logs");
    durable::private_dir(&folder)
        .map_err(|source| ExpectedError::CannotWrite { path: folder.clone(), source })?;
    Ok(folder.join(format!(
        "{}-{}.log",
        claw_kernel::clock::now().to_string().replace(':', ""),
        std::process::id()
    )))
}

fn open(path: &Path) -> Result<File, ExpectedError> {
    let opened = match durable::create_stream(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => File::options().append(true).open(path),
        other => other,
    };
    opened.map_err(|source| ExpectedError::CannotWrite { path: path.to_owned(), source })
}

/// Writes one record at a time.
#[derive(Clone)]
struct Door {
    file: Arc<Mutex<File>>,
    redactor: Arc<Redactor>,
}

impl<'a> MakeWriter<'a> for Door {
    type Writer = Self;
    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Write for Door {
    /// The subscriber hands over whole records.
    fn write(&mut self, record: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(record);
        let clean = self.redactor.apply(&text);
        self.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(clean.as_bytes())?;
        Ok(record.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_reaches_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let file = Arc::new(Mutex::new(open(&path).unwrap()));
        let redactor = Arc::new(Redactor::new(["sk-canary-1234".to_owned()]));
        let mut door = Door { file, redactor };
        door.write_all(b"key=sk-canary-1234 sent\n").unwrap();
        drop(open(&path).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "key=[redacted] sent\n");
    }
}
