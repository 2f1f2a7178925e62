//! A run seen and ordered from another process: the socket on which its owner listens, the words on it, both ends.
//!
//! Owns the socket and what goes over it. Decides nothing: orders go to the run, which takes or refuses them.

mod client;
mod error;
mod lines;
mod offline;
mod peer;
mod place;
mod server;
mod wire;

pub use client::{Connection, Told, Watching};
pub use error::ControlError;
pub use offline::{answer, open_questions};
pub(crate) use place::{Listener, forget};
pub(crate) use server::Server;
pub use wire::Order;
