//! One owner of a run at a time.

use super::{RunDir, RunDirError};
use claw_kernel::clock;
use claw_kernel::durable::{FileLock, LockFailed, Owner};
use claw_kernel::tasks;
use std::fs::{File, TryLockError};
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

/// How long the files of a dead holder may stay open.
const WAIT_FOR_THE_DEAD: Duration = Duration::from_secs(2);
/// Looks of others that a taker lets pass.
const LOOKS: u32 = 5;

/// Whether somebody works on a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// Nobody.
    Nobody,
    /// A process; `None` where the file does not tell which.
    Process(Option<Owner>),
}

impl Holder {
    /// Whether somebody does.
    pub fn is_held(&self) -> bool {
        matches!(self, Self::Process(_))
    }
}

/// Takes a run for this process, until the lock is dropped. `LockFailed::Held` names who has it.
pub fn take_lock(run: &RunDir, socket: Option<PathBuf>) -> Result<FileLock, RunDirError> {
    let owner = Owner { pid: std::process::id(), since: clock::now(), socket };
    let mut looks = 0;
    loop {
        match FileLock::take(&run.lock(), &owner) {
            // Somebody who only looked had it for the blink of an eye.
            Err(LockFailed::Held { .. }) if looks < LOOKS && !holder(run).is_held() => looks += 1,
            other => return Ok(other?),
        }
    }
}

/// As [`take_lock`]; where the holder is dead, waits for a moment: a child that it was about to start may hold its files
/// still.
pub async fn take_from_the_dead(run: &RunDir, socket: Option<PathBuf>) -> Result<FileLock, RunDirError> {
    let held = match take_lock(run, socket.clone()) {
        Err(RunDirError::Lock(held @ LockFailed::Held { .. })) => held,
        other => return other,
    };
    let is_dead = match &held {
        LockFailed::Held { owner: Some(owner), .. } => super::is_gone(owner.pid, ""),
        LockFailed::Held { owner: None, .. } | LockFailed::Io { .. } => false,
    };
    if !is_dead {
        return Err(held.into());
    }
    let path = run.lock();
    let owner = Owner { pid: std::process::id(), since: clock::now(), socket };
    let waited = tasks::blocking("lock", move || FileLock::wait(&path, &owner));
    match tokio::time::timeout(WAIT_FOR_THE_DEAD, waited).await {
        Ok(Ok(taken)) => Ok(taken?),
        Ok(Err(_)) | Err(_) => Err(held.into()),
    }
}

/// Whom the lock's file names: who has the run, or had it last.
pub fn named_owner(run: &RunDir) -> Option<Owner> {
    let mut text = String::new();
    File::open(run.lock()).ok()?.take(4096).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// Waits until nobody holds a run; the value is whether that is so within this time.
pub async fn until_free(run: &RunDir, within: Duration) -> bool {
    let path = run.lock();
    let free = tasks::blocking("lock", move || File::open(path).is_ok_and(|file| file.lock_shared().is_ok()));
    matches!(tokio::time::timeout(within, free).await, Ok(Ok(true)))
}

/// Who holds a run. Changes nothing.
pub fn holder(run: &RunDir) -> Holder {
    let Ok(file) = File::open(run.lock()) else { return Holder::Nobody };
    match file.try_lock_shared() {
        Ok(()) => Holder::Nobody,
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let told = file.take(4096).read_to_string(&mut text).is_ok();
            Holder::Process(told.then(|| serde_json::from_str(&text).ok()).flatten())
        }
        Err(TryLockError::Error(_)) => Holder::Nobody,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use claw_kernel::durable::private_dir;
    use claw_kernel::ids::RunId;

    #[test]
    fn a_second_process_learns_who_has_the_run_and_a_look_takes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::at(folder.path(), RunId::fresh());
        private_dir(run.root()).unwrap();
        assert_eq!(holder(&run), Holder::Nobody);
        let held = take_lock(&run, Some("/x/socket".into())).unwrap();
        match holder(&run) {
            Holder::Process(Some(owner)) => assert_eq!(owner.pid, std::process::id()),
            other => panic!("{other:?}"),
        }
        assert!(matches!(
            take_lock(&run, None),
            Err(RunDirError::Lock(LockFailed::Held { owner: Some(_), .. }))
        ));
        drop(held);
        assert_eq!(holder(&run), Holder::Nobody);
        take_lock(&run, None).unwrap();
    }
}
