//! From the arguments to the exit code. Nothing is set up before the arguments are understood.

use crate::args::{Command, Early, Format, parse};
use crate::error::{ExpectedError, exit};
use crate::{commands, lead, log, terminal};
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// The program.
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    if asks_for_version(&args) {
        return ExitCode::from(asked(version()));
    }
    let wanted = format_in(&args);
    let code = match parse(args) {
        Ok(command) => run(command),
        Err(Early::Asked(text)) => asked(text),
        Err(Early::Incomplete(text)) => {
            terminal::say(&text);
            exit::USAGE
        }
        Err(Early::Wrong(error)) => tell(&error, wanted),
    };
    ExitCode::from(code)
}

/// Scripts ask for it often: it costs no more than the start of a process.
fn asks_for_version(args: &[OsString]) -> bool {
    matches!(args, [_, flag] if flag == "--version" || flag == "-V")
}

fn version() -> String {
    format!("claw {}\n", env!("CARGO_PKG_VERSION"))
}

fn asked(text: String) -> u8 {
    match terminal::write_stdout(text) {
        Ok(()) => exit::OK,
        Err(error) => tell(&error, Format::Text),
    }
}

/// The format that arguments ask for which are not understood as a whole.
fn format_in(args: &[OsString]) -> Format {
    const FLAG: &str = "--output-format";
    let words: Vec<&str> = args.iter().filter_map(|word| word.to_str()).collect();
    let joined = words.iter().find_map(|word| word.strip_prefix(FLAG)?.strip_prefix('='));
    let behind = words.windows(2).find_map(|pair| (pair[0] == FLAG).then_some(pair[1]));
    match joined.or(behind) {
        Some("json") => Format::Json,
        Some("stream-json") => Format::StreamJson,
        Some(_) | None => Format::Text,
    }
}

fn run(command: Command) -> u8 {
    terminal::install_panic_hook();
    let format = format_of(&command);
    if terminal::stdout_is_closed() {
        // Before anything is spent on a result that has no place.
        return tell(&terminal::closed(), format);
    }
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
        Command::Lead(flags) => lead::run(*flags),
        Command::Init(flags) => commands::init::run(&flags),
        Command::Run(flags) => commands::run::run(&flags),
        Command::Print(flags) => commands::print::run(*flags),
        Command::Workflow(command) => commands::workflow::run(&command),
        Command::Runs(command) => commands::runs::run(&command),
        Command::Agents(command) => commands::agents::run(&command),
        Command::Skills(command) => commands::skills::run(&command),
        Command::Saved(flags) => commands::saved::run(*flags),
        Command::Resume(flags) => commands::resume::run(&flags),
        Command::Export(flags) => commands::export::run(&flags),
        Command::SystemPrompt(flags) => commands::system_prompt::run(&flags),
        Command::Models(flags) => commands::models::run(&flags),
        Command::Config(flags) => commands::config::run(&flags),
        Command::Trust(command) => commands::trust::run(&command),
        Command::Mcp(command) => commands::mcp::run(&command),
        Command::Login(flags) => commands::login::run(&flags),
        Command::Logout(flags) => commands::logout::run(&flags),
        Command::Sandbox(flags) => commands::sandbox::run(flags),
        Command::Doctor(flags) => commands::doctor::run(&flags),
        Command::Completions(shell) => commands::completions::run(shell),
    }
}

fn format_of(command: &Command) -> Format {
    use crate::args::{McpCommand, TrustCommand, WorkflowCommand};
    match command {
        Command::Run(flags) => flags.output_format,
        Command::Print(flags) => flags.talk.output_format.unwrap_or_default(),
        Command::Workflow(WorkflowCommand::Check(flags)) => flags.output_format,
        Command::Doctor(flags) => flags.output_format,
        Command::Agents(command) => command.rest().output_format,
        Command::Skills(command) => command.rest().output_format,
        Command::Saved(flags) => flags.talk.output_format.unwrap_or_default(),
        Command::Resume(flags) => flags.output_format,
        Command::Export(_) | Command::SystemPrompt(_) => Format::Text,
        Command::Models(flags) | Command::Init(flags) => flags.output_format,
        Command::Runs(command) => command.rest().output_format,
        Command::Config(flags) => flags.rest().output_format,
        Command::Mcp(McpCommand::List(flags)) => flags.output_format,
        Command::Mcp(McpCommand::Get(flags) | McpCommand::Approve(flags)) => flags.rest.output_format,
        Command::Trust(TrustCommand::List(flags)) => flags.output_format,
        Command::Trust(TrustCommand::Show(flags)) => flags.rest().output_format,
        Command::Workflow(
            WorkflowCommand::Schema | WorkflowCommand::Graph(_) | WorkflowCommand::Reference,
        )
        | Command::Trust(TrustCommand::Accept(_) | TrustCommand::Refuse(_) | TrustCommand::Revoke(_))
        | Command::Mcp(McpCommand::Add(_) | McpCommand::Remove(_))
        | Command::Login(_)
        | Command::Logout(_)
        | Command::Sandbox(_)
        | Command::Lead(_)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_one_that_the_help_tells() {
        let args = ["claw", "--version"].map(OsString::from);
        assert!(asks_for_version(&args) && !asks_for_version(&args[..1]));
        assert!(matches!(parse(args), Err(Early::Asked(text)) if text == version()));
    }

    #[test]
    fn the_format_is_known_even_where_the_arguments_are_wrong() {
        let of = |line: &str| format_in(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(of("claw run --output-format json --wrong"), Format::Json);
        assert_eq!(of("claw -p --output-format=stream-json --wrong"), Format::StreamJson);
        assert_eq!(of("claw -p --output-format jsn"), Format::Text);
        assert_eq!(of("claw --output-format"), Format::Text);
    }
}
