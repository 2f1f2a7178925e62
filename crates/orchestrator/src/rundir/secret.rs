//! Secrets stand in a run's files as keyed digests: equal secrets are known as equal, and nobody who reads the files
//! can try values.

use claw_kernel::digest::Digest;
use claw_kernel::durable::{self, Mode, Sync};
use claw_kernel::ids::RunId;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

const LENGTH: usize = 32;

/// A user's own random key. Lies outside the runs, in a private file.
#[derive(Clone)]
pub struct SecretKey([u8; LENGTH]);

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretKey")
    }
}

impl SecretKey {
    /// Reads the key, or makes one where there is none. Two processes that do so at once get the same.
    pub fn load_or_make(path: &Path) -> io::Result<Self> {
        match Self::load(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => return other,
        }
        let mut key = [0; LENGTH];
        File::open("/dev/urandom")?.read_exact(&mut key)?;
        if let Some(folder) = path.parent() {
            durable::private_dir(folder)?;
        }
        let beside = path.with_extension(format!("{}.new", std::process::id()));
        durable::replace(&beside, &key, Mode::Private, Sync::Yes)?;
        // A link is made by one process only; the others read what it names.
        let linked = std::fs::hard_link(&beside, path);
        std::fs::remove_file(&beside)?;
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            Ok(()) | Err(_) => Self::load(path),
        }
    }

    /// A key for one run: what stands for a secret in one run tells nothing about another.
    pub fn of_run(&self, run: RunId) -> Self {
        let mixed = Digest::of_parts([self.0.as_slice(), run.to_string().as_bytes()]);
        let mut key = [0; LENGTH];
        key.copy_from_slice(&mixed.as_bytes()[..LENGTH]);
        Self(key)
    }

    /// What stands for a secret.
    pub fn digest(&self, secret: &str) -> Digest {
        let inner = Digest::of_parts([self.0.as_slice(), secret.as_bytes()]);
        Digest::of_parts([self.0.as_slice(), inner.as_ref()])
    }

    fn load(path: &Path) -> io::Result<Self> {
        let mut key = [0; LENGTH];
        File::open(path)?.read_exact(&mut key)?;
        Ok(Self(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_secret_has_another_digest_in_every_run() {
        let folder = tempfile::tempdir().unwrap();
        let key = SecretKey::load_or_make(&folder.path().join("key")).unwrap();
        let (one, other) = (RunId::fresh(), RunId::fresh());
        assert_eq!(key.of_run(one).digest("hunter2"), key.of_run(one).digest("hunter2"));
        assert_ne!(key.of_run(one).digest("hunter2"), key.of_run(other).digest("hunter2"));
        assert_ne!(key.of_run(one).digest("hunter2"), key.digest("hunter2"));
    }

    #[test]
    fn the_key_stays_and_two_users_digests_differ() {
        let folder = tempfile::tempdir().unwrap();
        let key = SecretKey::load_or_make(&folder.path().join("state/key")).unwrap();
        let again = SecretKey::load_or_make(&folder.path().join("state/key")).unwrap();
        let other = SecretKey::load_or_make(&folder.path().join("other")).unwrap();
        assert_eq!(key.digest("hunter2"), again.digest("hunter2"));
        assert_ne!(key.digest("hunter2"), other.digest("hunter2"));
        assert_eq!(folder.path().join("state").read_dir().unwrap().count(), 1);
    }
}
