//! The runtime that commands with agents live in.

use crate::error::ExpectedError;
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
