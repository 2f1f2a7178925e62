//! What `claw login` saved: one private file of the user. Other fields of that file stay as they are.

use crate::credentials::Secret;
use claw_kernel::clock;
use claw_kernel::durable::{self, FileLock, LockFailed, Mode, Owner, Sync};
use indexmap::IndexMap;
use serde_json::{Map, Value};
use std::io;
use std::path::{Path, PathBuf};

const KEYS: &str = "apiKeys";
const LOGIN: &str = "oauth";

/// The file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// It is no JSON object. Its content is not told: it holds keys.
    #[error("{} is no JSON object (line {line})", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// Where it breaks, from 1.
        line: usize,
    },
    /// It cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another process writes it.
    #[error(transparent)]
    Locked(#[from] LockFailed),
}

/// `credentials.json` of the config home.
#[derive(Clone, Debug)]
pub struct SavedFile {
    path: PathBuf,
}

/// What is in it. `Debug` shows no key.
#[derive(Clone, Debug, Default)]
pub struct Saved {
    /// Keys by provider, lower case.
    pub keys: IndexMap<String, Secret>,
    /// The access token of a login that has not run out.
    pub login: Option<Secret>,
}

impl SavedFile {
    /// In the folder of the user's settings.
    pub fn new(config_home: &Path) -> Self {
        Self { path: config_home.join("credentials.json") }
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is in it; nothing where it is not there.
    ///
    /// # Errors
    /// It cannot be read or is no JSON object.
    pub fn read(&self) -> Result<Saved, SavedError> {
        let whole = self.whole()?;
        let text = |value: &Value| value.as_str().and_then(Secret::new);
        let keys = whole.get(KEYS).and_then(Value::as_object);
        let pair = |(name, key): (&String, &Value)| Some((name.to_lowercase(), text(key)?));
        let login = whole.get(LOGIN).filter(|login| holds(login));
        Ok(Saved {
            keys: keys.into_iter().flatten().filter_map(pair).collect(),
            login: login.and_then(|login| text(login.get("accessToken")?)),
        })
    }

    /// Keeps a key. On disk when it returns, readable by the user alone.
    ///
    /// # Errors
    /// The file cannot be read, locked or written.
    pub fn save_key(&self, provider: &str, key: &Secret) -> Result<(), SavedError> {
        let name = provider.to_lowercase();
        self.change(|whole| {
            let keys = whole.entry(KEYS).or_insert_with(|| Value::Object(Map::new()));
            if !keys.is_object() {
                *keys = Value::Object(Map::new());
            }
            if let Some(keys) = keys.as_object_mut() {
                keys.insert(name, key.reveal().into());
            }
            true
        })
    }

    /// Removes the key of a provider; for Anthropic its login too. `None`: all that claw saved. Tells whether there was one.
    ///
    /// # Errors
    /// The file cannot be read, locked or written.
    pub fn forget(&self, provider: Option<&str>) -> Result<bool, SavedError> {
        let mut found = false;
        self.change(|whole| {
            if provider.is_none_or(|name| name.eq_ignore_ascii_case("anthropic")) {
                found |= whole.shift_remove(LOGIN).is_some();
            }
            if let Some(keys) = whole.get_mut(KEYS).and_then(Value::as_object_mut) {
                let before = keys.len();
                keys.retain(|name, _| provider.is_some_and(|wanted| !name.eq_ignore_ascii_case(wanted)));
                found |= keys.len() < before;
                if keys.is_empty() {
                    whole.shift_remove(KEYS);
                }
            }
            found
        })?;
        Ok(found)
    }

    /// `change` tells whether anything is to be written.
    fn change(&self, change: impl FnOnce(&mut Map<String, Value>) -> bool) -> Result<(), SavedError> {
        let failed = |source| SavedError::Write { path: self.path.clone(), source };
        durable::private_dir(self.path.parent().unwrap_or(Path::new("."))).map_err(failed)?;
        let owner = Owner { pid: std::process::id(), since: clock::now(), socket: None };
        let _held = FileLock::wait(&self.path.with_extension("lock"), &owner)?;
        let mut whole = self.whole()?;
        if !change(&mut whole) {
            return Ok(());
        }
        let mut text = serde_json::to_string_pretty(&whole).map_err(|error| failed(error.into()))?;
        text.push('\n');
        durable::replace(&self.path, text.as_bytes(), Mode::Private, Sync::Yes).map_err(failed)
    }

    fn whole(&self) -> Result<Map<String, Value>, SavedError> {
        match std::fs::read_to_string(&self.path) {
            Ok(text) => serde_json::from_str(&text)
                .map_err(|error| SavedError::Broken { path: self.path.clone(), line: error.line() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Map::new()),
            Err(source) => Err(SavedError::Read { path: self.path.clone(), source }),
        }
    }
}

/// Whether a login has not run out: `expiresAt` in seconds or milliseconds.
fn holds(login: &Value) -> bool {
    let Some(until) = login.get("expiresAt").and_then(Value::as_u64) else { return true };
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let until = if until > 100_000_000_000 { until / 1000 } else { until };
    until > now
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_kept_privately_beside_what_others_wrote_and_forgotten_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = SavedFile::new(&folder.path().join("home"));
        assert!(file.read().unwrap().keys.is_empty());
        durable::private_dir(file.path().parent().unwrap()).unwrap();
        let text = r#"{"other": {"a": 1}, "oauth": {"accessToken": "tok", "expiresAt": 1}}"#;
        durable::replace(file.path(), text.as_bytes(), Mode::Private, Sync::No).unwrap();
        file.save_key("OpenAI", &Secret::new("sk-1").unwrap()).unwrap();
        let saved = file.read().unwrap();
        assert_eq!(saved.keys["openai"].reveal(), "sk-1");
        assert!(saved.login.is_none(), "it has run out");
        assert!(!format!("{saved:?}").contains("sk-1"));
        assert_eq!(file.path().metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(file.forget(Some("openai")).unwrap() && !file.forget(Some("openai")).unwrap());
        assert!(std::fs::read_to_string(file.path()).unwrap().contains("\"other\""));
    }

    #[test]
    fn a_broken_file_is_told_without_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let file = SavedFile::new(folder.path());
        durable::replace(file.path(), b"{\"apiKeys\": sk-secret", Mode::Private, Sync::No).unwrap();
        let error = file.read().unwrap_err().to_string();
        assert!(error.contains("line 1") && !error.contains("sk-secret"), "{error}");
        assert!(file.save_key("x", &Secret::new("y").unwrap()).is_err());
    }
}
