//! What tests need to look at claw from outside: a provider that plays a script and checks what it is
//! asked, a home and a project that nobody else sees, the built program, a terminal.
//!
//! The kit knows the wire and the files that users see, none of our crates: what it finds wrong is wrong
//! for everybody. It speaks by panicking, with everything it has seen so far in the message.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test tool reports a broken test by a panic"
)]

mod claw;
mod machine;
mod provider;
mod pty;
mod run_folder;
mod sandbox;

pub use claw::{Claw, Output, Running, Signal};
pub use machine::{processes_with, replace_file, run_program, wait_until};
pub use provider::{End, Ended, Gate, Reply, Request, Route, ScriptedProvider, Wire, violations_in};
pub use pty::{Key, Pty, PtyOutput, Screen, Terminal};
pub use run_folder::RunFolder;
pub use sandbox::{CANARY, Sandbox};
