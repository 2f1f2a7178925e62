//! From the arguments to the exit code. Nothing is set up before the arguments are understood.

use crate::args::{Command, Early, Format, parse};
use crate::error::{ExpectedError, exit};
use crate::{commands, log, terminal};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// The program.
pub fn main() -> ExitCode {
    let code = match parse(std::env::args_os()) {
        Ok(command) => run(command),
        Err(Early::Asked(text)) => match terminal::write_stdout(text) {
            Ok(()) => exit::OK,
            Err(error) => tell(&error, Format::Text),
        },
        Err(Early::Incomplete(text)) => {
            terminal::say(&text);
            exit::USAGE
        }
        Err(Early::Wrong(error)) => tell(&error, Format::Text),
    };
    ExitCode::from(code)
}

fn run(command: Command) -> u8 {
    terminal::install_panic_hook();
    let format = format_of(&command);
    // The hook has told the panic; what is left is the exit code.
    let done = catch_unwind(AssertUnwindSafe(|| {
        log::start()?;
        dispatch(command)
    }));
    match done {
        Ok(Ok(code)) => code,
        Ok(Err(error)) => tell(&error, format),
        Err(_) => exit::FAULT,
    }
}

fn dispatch(command: Command) -> Result<u8, ExpectedError> {
    match command {
        Command::Run(flags) => commands::run::run(&flags),
        Command::Print(flags) => commands::print::run(*flags),
        Command::Workflow(command) => commands::workflow::run(&command),
        Command::Runs(command) => commands::runs::run(&command),
        Command::Models(flags) => commands::models::run(&flags),
        Command::Completions(shell) => commands::completions::run(shell),
    }
}

fn format_of(command: &Command) -> Format {
    use crate::args::{RunsCommand, WorkflowCommand};
    match command {
        Command::Run(flags) => flags.output_format,
        Command::Print(flags) => flags.talk.output_format.unwrap_or_default(),
        Command::Workflow(WorkflowCommand::Check(flags)) => flags.output_format,
        Command::Runs(RunsCommand::List(flags)) | Command::Models(flags) => flags.output_format,
        Command::Runs(RunsCommand::Show(flags)) => flags.rest().output_format,
        Command::Workflow(
            WorkflowCommand::Schema | WorkflowCommand::Graph(_) | WorkflowCommand::Reference,
        )
        | Command::Completions(_) => Format::Text,
    }
}

/// For people on standard error; for programs on standard output as well, so that it is never empty there.
fn tell(error: &ExpectedError, format: Format) -> u8 {
    terminal::say(&error.text());
    let told_already =
        matches!(error, ExpectedError::Pipe | ExpectedError::Stdout(_) | ExpectedError::Problems { .. });
    if format != Format::Text && !told_already {
        // Where standard output is gone as well, the exit code says it.
        let _ = terminal::write_stdout(format!("{}\n", error.json()));
    }
    error.exit_code()
}
