//! Usage errors in our words: what is wrong, the nearest thing that is right. Never a prompt for a model.

use super::grammar::TalkFlags;
use super::meaning::Early;
use crate::error::ExpectedError;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use claw_kernel::near::nearest;
use claw_kernel::visible::visible_line;

/// Longest line that repeats what the user typed.
const QUOTED: usize = 240;

/// Says it in our words.
pub(super) fn explain(error: &clap::Error, root: &mut clap::Command) -> Early {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Early::Asked(error.render().to_string()),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Early::Incomplete(error.render().to_string()),
        ErrorKind::InvalidSubcommand => Early::Wrong(unknown_command(error, root)),
        _ => Early::Wrong(usage(error)),
    }
}

fn unknown_command(error: &clap::Error, root: &mut clap::Command) -> ExpectedError {
    let word = context(error, ContextKind::InvalidSubcommand).unwrap_or_default();
    if word.trim().is_empty() {
        return ExpectedError::EmptyCommand;
    }
    let rendered = error.render().to_string();
    root.build();
    let group = group_of(&rendered, root);
    let known: Vec<String> = group.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    let near = nearest(&word, known.iter().map(String::as_str)).map(str::to_owned);
    let group = (group.get_name() != root.get_name()).then(|| group.get_name().to_owned());
    ExpectedError::UnknownCommand { word: quoted(&word), group, near, known }
}

/// The command in whose usage line the error was found: `Usage: claw runs <COMMAND>`.
fn group_of<'a>(rendered: &str, root: &'a clap::Command) -> &'a clap::Command {
    let usage = rendered.lines().find_map(|line| line.strip_prefix("Usage: claw ")).unwrap_or_default();
    let first = usage.split(' ').next().unwrap_or_default();
    root.find_subcommand(first).filter(|sub| sub.has_subcommands()).unwrap_or(root)
}

/// What clap found, in one line; tips and possible values are the hint.
fn usage(error: &clap::Error) -> ExpectedError {
    let rendered = error.render().to_string();
    let arg = context(error, ContextKind::InvalidArg).unwrap_or_default();
    let value = context(error, ContextKind::InvalidValue).unwrap_or_default();
    let message = match (error.kind(), std::error::Error::source(error)) {
        (ErrorKind::ValueValidation, Some(cause)) => format!("{}: {cause}", flag(&arg)),
        (ErrorKind::InvalidValue, _) if !value.is_empty() => {
            format!("{}: unknown value `{value}`", flag(&arg))
        }
        (ErrorKind::UnknownArgument, _) if arg.starts_with('-') => format!("unknown flag `{arg}`"),
        (ErrorKind::UnknownArgument, _) => format!("unexpected argument `{arg}`"),
        (ErrorKind::MissingRequiredArgument, _) => {
            let missing: Vec<&str> =
                rendered.lines().skip(1).map(str::trim).take_while(|l| !l.is_empty()).collect();
            format!("{} is missing", missing.join(" "))
        }
        _ => rendered.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned(),
    };
    let hint = hints(&rendered);
    ExpectedError::Usage { message: quoted(&message), hint: (!hint.is_empty()).then_some(hint) }
}

/// `--model` of `--model <MODEL>`.
fn flag(arg: &str) -> &str {
    arg.split(' ').next().unwrap_or(arg)
}

fn hints(rendered: &str) -> String {
    let mut hints = Vec::new();
    for line in rendered.lines().map(str::trim) {
        let near = line.strip_prefix("tip: a similar ").and_then(|rest| rest.split_once("exists: '"));
        if let Some((_, name)) = near {
            hints.insert(0, format!("did you mean `{}`?", name.trim_end_matches('\'')));
        } else if let Some(values) = line.strip_prefix("[possible values: ") {
            hints.push(format!("values are {}", values.trim_end_matches(']')));
        } else if let Some(usage) = line.strip_prefix("Usage: ") {
            let command: Vec<&str> =
                usage.split(' ').take_while(|w| !w.starts_with(['[', '<', '-'])).collect();
            hints.push(format!("see `{} --help`", command.join(" ")));
        }
    }
    hints.join("; ").replace("?; ", "? ")
}

fn context(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(_) | None => None,
    }
}

/// One line, without controls, not longer than what helps.
fn quoted(text: &str) -> String {
    let shown = visible_line(text);
    if shown.chars().count() <= QUOTED {
        return shown.into_owned();
    }
    let head: String = shown.chars().take(QUOTED).collect();
    format!("{head}…")
}

/// A flag that only a question can have.
pub(super) fn first_flag(talk: &TalkFlags) -> Option<&'static str> {
    [
        (talk.output_format.is_some(), "--output-format"),
        (talk.include_partial_messages, "--include-partial-messages"),
        (talk.max_turns.is_some(), "--max-turns"),
        (talk.max_usd.is_some(), "--max-usd"),
        (talk.input_format.is_some(), "--input-format"),
    ]
    .into_iter()
    .find_map(|(given, name)| given.then_some(name))
}
