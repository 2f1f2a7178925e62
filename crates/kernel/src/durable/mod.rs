//! Durable files: append with group commit, atomic replace, kernel lock. The only room that writes files.

mod lock;
mod log;
mod replace;

pub use lock::{FileLock, LockFailed, Owner};
pub use log::{Durability, Log, LogFailed, LogWriter, Ticket as LogTicket};
pub use replace::{Mode, Sync, append_in_place, create, create_stream, private_dir, replace, truncate};
