//! From the command to its file.

use super::{answer, gc, list, message, pause, show, stop, watch};
use crate::args::RunsCommand;
use crate::commands::runtime::block_on;
use crate::error::{ExpectedError, exit};

/// Runs one of them.
///
/// # Errors
/// A run or step that is not there, state that cannot be read, an order that is refused, standard output.
pub fn run(command: &RunsCommand) -> Result<u8, ExpectedError> {
    match command {
        RunsCommand::List(flags) => list::run(flags).map(|()| exit::OK),
        RunsCommand::Show(flags) => show::run(flags).map(|()| exit::OK),
        RunsCommand::Watch(flags) => block_on(watch::run(flags)),
        RunsCommand::Stop(flags) => block_on(stop::run(flags)),
        RunsCommand::Pause(flags) => block_on(pause::run(flags)),
        RunsCommand::Answer(flags) => block_on(answer::run(flags)),
        RunsCommand::Message(flags) => block_on(message::run(flags)),
        RunsCommand::Gc(flags) => block_on(gc::run(flags)),
    }
}
