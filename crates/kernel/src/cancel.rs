//! The cancel token: a tree, session → run → step → tool.

/// Cancels itself and every token made below it.
pub use tokio_util::sync::CancellationToken as CancelToken;
/// Cancels a token when it is dropped.
pub use tokio_util::sync::DropGuard;
