//! Slash commands on a saved session: `claw --resume REF /status /cost`.
//!
//! They are taken out before the grammar sees the line: a word that begins with a slash is a path everywhere else.

use std::ffi::OsString;

/// A slash command that needs no running conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SavedCommand {
    /// `/status`
    Status,
    /// `/cost`
    Cost,
    /// `/compact [what to keep]`
    Compact(Option<String>),
    /// `/export [FILE]`
    Export(Option<String>),
}

const NAMES: [&str; 4] = ["/status", "/cost", "/compact", "/export"];

/// The line without the slash commands at its end, and these. Nothing is taken where no session is named.
pub(super) fn take(mut args: Vec<OsString>) -> (Vec<OsString>, Vec<SavedCommand>) {
    let is_resume = |word: &OsString| {
        word.to_str().is_some_and(|word| {
            word == "--resume" || word.starts_with("--resume=") || word == "--continue" || word == "-c"
        })
    };
    let Some(resume) = args.iter().position(is_resume) else { return (args, Vec::new()) };
    let is_name = |word: &OsString| word.to_str().is_some_and(|word| NAMES.contains(&word));
    let Some(first) = args.iter().skip(resume + 1).position(is_name) else { return (args, Vec::new()) };
    let words = args.split_off(resume + 1 + first);
    let mut commands: Vec<SavedCommand> = Vec::new();
    let mut rest = Vec::new();
    for word in words {
        let text = word.to_string_lossy().into_owned();
        match (text.as_str(), commands.last_mut()) {
            ("/status", _) => commands.push(SavedCommand::Status),
            ("/cost", _) => commands.push(SavedCommand::Cost),
            ("/compact", _) => commands.push(SavedCommand::Compact(None)),
            ("/export", _) => commands.push(SavedCommand::Export(None)),
            (flag, _) if flag.starts_with('-') => rest.push(word),
            (more, Some(SavedCommand::Compact(said) | SavedCommand::Export(said))) if rest.is_empty() => {
                *said = Some(said.take().map_or_else(|| more.to_owned(), |said| format!("{said} {more}")));
            }
            // The grammar says what is wrong with it.
            _ => rest.push(word),
        }
    }
    args.extend(rest);
    (args, commands)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(line: &str) -> (String, Vec<SavedCommand>) {
        let (rest, commands) = take(line.split(' ').map(OsString::from).collect());
        let rest: Vec<String> = rest.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        (rest.join(" "), commands)
    }

    #[test]
    fn commands_stand_behind_the_session_and_take_their_words() {
        assert_eq!(
            taken("claw --resume latest /status /cost --output-format json"),
            (
                "claw --resume latest --output-format json".to_owned(),
                vec![SavedCommand::Status, SavedCommand::Cost]
            )
        );
        assert_eq!(
            taken("claw --resume /tmp/x.jsonl /compact keep this /export a.md").1,
            [SavedCommand::Compact(Some("keep this".into())), SavedCommand::Export(Some("a.md".into()))]
        );
        assert_eq!(taken("claw -p /status").1, []);
    }
}
