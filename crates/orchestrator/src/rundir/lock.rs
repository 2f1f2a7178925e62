//! One owner of a run at a time.

use super::{RunDir, RunDirError};
use claw_kernel::clock;
use claw_kernel::durable::{FileLock, LockFailed, Owner};
use claw_kernel::tasks;
use std::fs::{File, TryLockError};
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::Instant;

/// How long the files of a dead holder may stay open.
const WAIT_FOR_THE_DEAD: Duration = Duration::from_secs(2);
/// Between two looks at a holder that is dead or has no name yet.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
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
/// still. One who has just taken it and not yet written its name is waited for as well, so that the refusal names it.
pub async fn take_from_the_dead(run: &RunDir, socket: Option<PathBuf>) -> Result<FileLock, RunDirError> {
    let end = Instant::now() + WAIT_FOR_THE_DEAD;
    loop {
        let held = match take_lock(run, socket.clone()) {
            Err(RunDirError::Lock(held @ LockFailed::Held { .. })) => held,
            other => return other,
        };
        let lives = match &held {
            LockFailed::Held { owner: Some(owner), .. } => !super::is_gone(owner.pid, ""),
            LockFailed::Held { owner: None, .. } => false,
            LockFailed::Io { .. } => true,
        };
        if lives || Instant::now() >= end {
            return Err(held.into());
        }
        // A wait for the lock itself could not be given up, and nobody tells when a name is written.
        tokio::time::sleep(LOOK_AGAIN).await;
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
