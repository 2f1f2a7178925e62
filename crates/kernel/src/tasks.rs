//! The only door to `tokio::spawn`: whoever starts a task holds its handle, and a panic becomes a value.

use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinError, JoinHandle};

/// A task that gave no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskFailed {
    /// It panicked.
    #[error("task `{name}` panicked: {message}")]
    Panicked {
        /// The task.
        name: &'static str,
        /// What the panic said.
        message: String,
    },
    /// It was aborted.
    #[error("task `{name}` was aborted")]
    Aborted {
        /// The task.
        name: &'static str,
    },
}

/// A running task. Dropping the handle leaves it running: its owner cancels it by its token.
#[derive(Debug)]
pub struct TaskHandle<T> {
    name: &'static str,
    join: JoinHandle<T>,
}

impl<T> TaskHandle<T> {
    /// Ends it at its next await.
    pub fn abort(&self) {
        self.join.abort();
    }

    /// A handle that only aborts.
    pub fn abort_handle(&self) -> AbortHandle {
        self.join.abort_handle()
    }
}

impl<T> Future for TaskHandle<T> {
    type Output = Result<T, TaskFailed>;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let name = self.name;
        Pin::new(&mut self.join).poll(cx).map(|done| done.map_err(|error| failed(name, error)))
    }
}

fn failed(name: &'static str, error: JoinError) -> TaskFailed {
    match error.try_into_panic() {
        Ok(payload) => TaskFailed::Panicked { name, message: panic_message(payload.as_ref()) },
        Err(_) => TaskFailed::Aborted { name },
    }
}

/// The words of a panic's payload.
pub fn panic_message(payload: &(dyn std::any::Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

/// Starts a task.
#[expect(clippy::disallowed_methods, reason = "this is the room that owns tokio::spawn")]
pub fn spawn<F>(name: &'static str, future: F) -> TaskHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    TaskHandle { name, join: tokio::spawn(future) }
}

/// Runs blocking work off the runtime's threads; at most as many at once as there are cores, and two.
#[expect(clippy::disallowed_methods, reason = "this is the room that owns spawn_blocking")]
pub async fn blocking<T, F>(name: &'static str, work: F) -> Result<T, TaskFailed>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    static ROOM: OnceLock<Semaphore> = OnceLock::new();
    let room = ROOM.get_or_init(|| {
        Semaphore::new(std::thread::available_parallelism().map_or(1, std::num::NonZero::get) + 2)
    });
    // The semaphore is never closed.
    let _permit = room.acquire().await.map_err(|_| TaskFailed::Aborted { name })?;
    tokio::task::spawn_blocking(work).await.map_err(|error| failed(name, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_a_value() {
        let task = spawn("bad", async { panic!("boom {}", 1) });
        let failed: Result<(), _> = task.await;
        assert_eq!(failed, Err(TaskFailed::Panicked { name: "bad", message: "boom 1".into() }));
        assert_eq!(blocking("sum", || 1 + 1).await, Ok(2));
    }
}
