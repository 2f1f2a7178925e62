//! Named locks against other claw processes of the same project: files whose kernel lock dies with its holder.

use crate::scheduler::{NotLocked, StepIx};
use claw_kernel::cancel::CancelToken;
use claw_kernel::clock;
use claw_kernel::durable::{self, FileLock, LockFailed, Owner};
use claw_kernel::tasks;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The locks that steps of this run hold or wait for.
#[derive(Clone, Debug, Default)]
pub(crate) struct LockRoom(Arc<Mutex<HashMap<StepIx, Holding>>>);

#[derive(Debug)]
struct Holding {
    /// Cancelled: nobody wants them any more.
    unwanted: CancelToken,
    held: Vec<FileLock>,
}

impl LockRoom {
    /// Takes them in their order, waiting for other processes; says which one is not free, and when all are held, or why
    /// not.
    pub fn take(
        &self,
        step: StepIx,
        folder: PathBuf,
        names: Vec<String>,
        busy: impl Fn(String) + Send + Sync + 'static,
        say: impl FnOnce(Result<(), NotLocked>) + Send + 'static,
    ) {
        let unwanted = CancelToken::new();
        self.steps().insert(step, Holding { unwanted: unwanted.clone(), held: Vec::new() });
        let room = self.clone();
        tasks::spawn("locks", async move {
            let taken = tokio::select! {
                taken = take_all(folder, names, &busy) => taken.map_err(|error| NotLocked { message: error.to_string() }),
                () = unwanted.cancelled() => return,
            };
            let result = taken.map(|held| {
                if let Some(holding) = room.steps().get_mut(&step) {
                    holding.held = held;
                }
            });
            say(result);
        });
    }

    /// A step no longer needs its locks.
    pub fn let_go(&self, step: StepIx) {
        if let Some(holding) = self.steps().remove(&step) {
            holding.unwanted.cancel();
        }
    }

    fn steps(&self) -> MutexGuard<'_, HashMap<StepIx, Holding>> {
        // Every change of the map is whole: a panic elsewhere leaves it usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn take_all(
    folder: PathBuf,
    names: Vec<String>,
    busy: &(dyn Fn(String) + Send + Sync),
) -> Result<Vec<FileLock>, LockFailed> {
    durable::private_dir(&folder).map_err(|source| LockFailed::Io { path: folder.clone(), source })?;
    let owner = Owner { pid: std::process::id(), since: clock::now(), socket: None };
    let mut held = Vec::with_capacity(names.len());
    for name in names {
        let path = folder.join(format!("{name}.lock"));
        held.push(match FileLock::take(&path, &owner) {
            Err(LockFailed::Held { .. }) => {
                busy(name);
                FileLock::when_free(path, owner.clone()).await?
            }
            taken => taken?,
        });
    }
    Ok(held)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::{mpsc, oneshot};

    fn taken(
        room: &LockRoom,
        step: u32,
        folder: &tempfile::TempDir,
        told: &mpsc::UnboundedSender<String>,
    ) -> oneshot::Receiver<Result<(), NotLocked>> {
        let (say, said) = oneshot::channel();
        let told = told.clone();
        let busy = move |name| told.send(name).unwrap();
        room.take(StepIx(step), folder.path().join("locks"), vec!["a".into(), "b".into()], busy, |result| {
            let _ = say.send(result);
        });
        said
    }

    #[tokio::test]
    async fn a_second_process_gets_them_when_the_first_lets_go() {
        let folder = tempfile::tempdir().unwrap();
        // Two rooms stand for two processes: the kernel's locks belong to open files.
        let (mine, other) = (LockRoom::default(), LockRoom::default());
        let (told, mut busy) = mpsc::unbounded_channel();
        assert_eq!(taken(&mine, 1, &folder, &told).await.unwrap(), Ok(()));
        assert!(busy.try_recv().is_err());
        let mut waits = taken(&other, 1, &folder, &told);
        assert_eq!(busy.recv().await.as_deref(), Some("a"));
        assert!(waits.try_recv().is_err());
        mine.let_go(StepIx(1));
        assert_eq!(waits.await.unwrap(), Ok(()));
    }
}
