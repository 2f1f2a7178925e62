//! The only room that starts processes: a job is described, run to its end, and nothing of it is left.
//!
//! Owns groups, environment, time, bounded output, the private temporary folder. Knows nothing of tools or models.

mod capture;
mod detached;
mod env;
mod held;
mod job;
mod pipes;
mod run;
mod scratch;
mod start;

pub(crate) use capture::Capture;
pub use capture::{Kept, SpilledOutput, Stream};
pub use detached::{Detached, detached};
pub(crate) use env::is_secret;
pub use env::on_path;
pub use held::{Held, Talk, hold};
pub use job::{Job, Program, SpillTo};
pub use run::{End, Finished, Live, Tap, no_more_grace, run, run_live};
pub(crate) use scratch::Scratch;
pub(crate) use start::{raise_house, try_mounts, try_rooms};

#[cfg(test)]
mod tests;
