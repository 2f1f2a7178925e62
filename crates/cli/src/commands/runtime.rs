//! The runtime that commands with agents live in.

use crate::error::ExpectedError;
use claw_kernel::tasks;
use std::future::Future;

/// Runs a future to its end. Threads that still wait for somebody are left to the end of the process.
///
/// # Errors
/// The runtime cannot be made, or what the future says.
pub(super) fn block_on<F>(future: F) -> Result<u8, ExpectedError>
where
    F: Future<Output = Result<u8, ExpectedError>>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| ExpectedError::Fault(format!("cannot start the runtime: {error}")))?;
    let result = runtime.block_on(future);
    runtime.shutdown_background();
    result
}

/// As [`block_on`], for what is woken often: as a task it is woken like any other, while the calling thread would have to
/// be woken by the system each time.
///
/// # Errors
/// As [`block_on`]; a panic is a fault.
pub fn block_on_task<F>(future: F) -> Result<u8, ExpectedError>
where
    F: Future<Output = Result<u8, ExpectedError>> + Send + 'static,
{
    block_on(async {
        let ended = tasks::spawn("main", future).await;
        ended.unwrap_or_else(|gone| Err(ExpectedError::Fault(gone.to_string())))
    })
}
