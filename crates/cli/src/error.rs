//! Errors at the top: what, where, what to do next, and the exit code of the process.

use claw_agents::settings::EditError;
use std::path::PathBuf;

/// Exit codes of the program, as its users know them.
pub mod exit {
    /// It succeeded.
    pub const OK: u8 = 0;
    /// It failed.
    pub const FAILED: u8 = 1;
    /// The file or the arguments are wrong.
    pub const USAGE: u8 = 2;
    /// A budget or a limit ended it.
    pub const LIMIT: u8 = 3;
    /// It waits for a provider or a person.
    pub const PAUSED: u8 = 4;
    /// Another process holds the run.
    pub const HELD: u8 = 6;
    /// A fault of claw itself.
    pub const FAULT: u8 = 70;
    /// State cannot be read or written.
    pub const STATE: u8 = 74;
    /// SIGHUP.
    pub const HANGUP: u8 = 129;
    /// SIGINT.
    pub const INTERRUPT: u8 = 130;
    /// SIGPIPE.
    pub const PIPE: u8 = 141;
    /// SIGTERM.
    pub const TERMINATE: u8 = 143;
}

/// An error that a user can do something about.
#[derive(Debug, thiserror::Error)]
pub enum ExpectedError {
    /// No command at all.
    #[error("the command is empty")]
    EmptyCommand,
    /// A word that is no command.
    #[error("unknown command `{}{word}`", group.as_ref().map(|group| format!("{group} ")).unwrap_or_default())]
    UnknownCommand {
        /// As typed.
        word: String,
        /// The command below which it was looked for.
        group: Option<String>,
        /// The nearest.
        near: Option<String>,
        /// All there are.
        known: Vec<String>,
    },
    /// The arguments do not fit.
    #[error("{message}")]
    Usage {
        /// What is wrong.
        message: String,
        /// What would be right.
        hint: Option<String>,
    },
    /// A question without words.
    #[error("the question is empty")]
    EmptyPrompt,
    /// A name that is no tool.
    #[error("unknown tool `{word}`")]
    UnknownTool {
        /// As typed.
        word: String,
        /// The nearest.
        near: Option<String>,
        /// All there are.
        known: Vec<String>,
    },
    /// A mode that the environment names and nobody knows.
    #[error("{variable}: {source}")]
    ModeVariable {
        /// The variable.
        variable: &'static str,
        /// What is wrong with it.
        source: claw_agents::permission::UnknownMode,
    },
    /// Settings that cannot be used.
    #[error("{}", settings_words(.problems))]
    Settings {
        /// What is wrong; never empty.
        problems: Vec<claw_agents::settings::Diagnostic>,
    },
    /// A text that is no permission rule.
    #[error("{0}")]
    Rule(#[from] claw_agents::permission::RuleError),
    /// A settings file was not changed.
    #[error("{0}")]
    Edit(#[from] claw_agents::settings::EditError),
    /// Decisions on what a repository brings cannot be read or kept.
    #[error("{}", with_cause(.0))]
    Trust(#[from] claw_agents::trust::TrustError),
    /// What `claw login` keeps cannot be read or kept.
    #[error("{0}")]
    Saved(#[from] claw_providers::saved::SavedError),
    /// Full access for root.
    #[error("danger-full-access as root changes anything on this machine")]
    RootNeedsConsent,
    /// A file or folder cannot be read.
    #[error("cannot read {}: {}", path.display(), io_words(source))]
    CannotRead {
        /// Which.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
        /// A file beside it with a near name.
        near: Option<String>,
    },
    /// Standard input cannot be read.
    #[error("cannot read standard input: {0}")]
    Stdin(std::io::Error),
    /// Values for inputs that are none.
    #[error("{}: {message}", path.display())]
    Inputs {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// The workflow file has problems; they have been printed.
    #[error("{} has {}", file.display(), if *count == 1 { "a problem".to_owned() } else { format!("{count} problems") })]
    Problems {
        /// The file.
        file: PathBuf,
        /// How many.
        count: usize,
    },
    /// No credentials, an unknown provider, a configuration that cannot work.
    #[error("{0}")]
    Provider(#[from] claw_providers::error::ProviderErrorKind),
    /// No such run or step.
    #[error("{message}")]
    NotFound {
        /// What was looked for.
        message: String,
        /// What to do.
        hint: String,
    },
    /// A run could not be started or went down with its state.
    #[error("{message}")]
    Run {
        /// What happened.
        message: String,
        /// Of the process.
        code: u8,
        /// What to do.
        hint: Option<String>,
    },
    /// State cannot be read or written.
    #[error("cannot write {}: {source}", path.display())]
    CannotWrite {
        /// Where.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A filter of `CLAW_LOG` that is none.
    #[error("CLAW_LOG: `{filter}` is not a log filter")]
    LogFilter {
        /// As set.
        filter: String,
    },
    /// A session that cannot be found, opened or changed.
    #[error(transparent)]
    Session(#[from] claw_agents::session::SessionError),
    /// The reader of standard output went away. Nothing is said.
    #[error("nobody reads standard output")]
    Pipe,
    /// Standard output cannot be written.
    #[error("cannot write standard output: {0}")]
    Stdout(std::io::Error),
    /// A large run was not wanted.
    #[error("not started")]
    Declined,
    /// A fault of claw itself.
    #[error("claw itself failed: {0}")]
    Fault(String),
}

/// All of them: the first line says what, the rest where.
fn settings_words(problems: &[claw_agents::settings::Diagnostic]) -> String {
    match problems {
        [one] => one.to_string(),
        all => {
            let list: Vec<String> = all.iter().map(ToString::to_string).collect();
            format!("the settings have {} problems\n{}", all.len(), list.join("\n"))
        }
    }
}

fn with_cause(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

/// The system's words without its number.
fn io_words(error: &std::io::Error) -> String {
    let text = error.to_string();
    let words = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = words.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

impl ExpectedError {
    /// Of the process.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::EmptyCommand
            | Self::UnknownCommand { .. }
            | Self::Usage { .. }
            | Self::EmptyPrompt
            | Self::UnknownTool { .. }
            | Self::ModeVariable { .. }
            | Self::Settings { .. }
            | Self::Rule(_)
            | Self::RootNeedsConsent
            | Self::CannotRead { .. }
            | Self::Stdin(_)
            | Self::Inputs { .. }
            | Self::Problems { .. }
            | Self::Provider(_)
            | Self::NotFound { .. }
            | Self::LogFilter { .. }
            | Self::Declined => exit::USAGE,
            Self::Run { code, .. } => *code,
            Self::Session(error) => session_code(error),
            Self::Edit(error) => match error {
                EditError::Broken { .. } | EditError::Read { .. } => exit::USAGE,
                EditError::Write { .. } | EditError::Locked(_) | EditError::Trust(_) => exit::STATE,
            },
            Self::CannotWrite { .. } | Self::Stdout(_) | Self::Trust(_) | Self::Saved(_) => exit::STATE,
            Self::Pipe => exit::PIPE,
            Self::Fault(_) => exit::FAULT,
        }
    }

    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::EmptyCommand => Some("see `claw --help`; to ask a model: `claw -p \"…\"`".to_owned()),
            Self::UnknownCommand { word, group, near, known } => {
                Some(unknown_command_hint(word, group.as_deref(), near.as_deref(), known))
            }
            Self::Usage { hint, .. } | Self::Run { hint, .. } => hint.clone(),
            Self::EmptyPrompt => {
                Some("write the question behind -p, or pipe it: `claw -p < question.txt`".to_owned())
            }
            Self::UnknownTool { near, known, .. } => {
                let near = near.as_ref().map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
                Some(format!("{near}tools are {}", known.join(", ")))
            }
            Self::Rule(_) => Some(
                "write `Tool`, `Tool(exact text)`, `Tool(first words:*)`, a path or a glob, `WebFetch(domain:example.org)` or `mcp__server__tool`"
                    .to_owned(),
            ),
            Self::RootNeedsConsent => {
                Some("add --allow-root, or set CLAW_ALLOW_ROOT=1 in a container".to_owned())
            }
            Self::CannotRead { near, .. } => near.as_ref().map(|near| format!("did you mean `{near}`?")),
            Self::Provider(kind) => provider_hint(kind),
            Self::NotFound { hint, .. } => Some(hint.clone()),
            Self::Session(error) => error.hint(),
            Self::LogFilter { .. } => {
                Some("write a level (error, warn, info, debug, trace) or target=level, by comma".to_owned())
            }
            Self::Inputs { .. } => Some("write a table of names and values, as JSON or TOML".to_owned()),
            Self::Settings { .. } => Some("`claw config` shows all settings with their places".to_owned()),
            Self::Saved(_) => Some("repair it or move it away, and use `claw login` again".to_owned()),
            Self::Trust(_) => Some("repair it or move it away: without it, nothing is trusted".to_owned()),
            Self::Problems { .. }
            | Self::Edit(_)
            | Self::ModeVariable { .. }
            | Self::Stdin(_)
            | Self::CannotWrite { .. }
            | Self::Pipe
            | Self::Stdout(_)
            | Self::Declined => None,
            Self::Fault(_) => Some("set CLAW_LOG=debug and run it again: the log says more".to_owned()),
        }
    }

    /// `error: …` and `hint: …`, each ended by a line feed; empty where nothing is to be said.
    pub fn text(&self) -> String {
        if matches!(self, Self::Pipe) {
            return String::new();
        }
        let mut text = format!("error: {}\n", claw_kernel::visible::visible(&self.to_string()));
        if let Some(hint) = self.hint() {
            text.push_str(&format!("hint: {}\n", claw_kernel::visible::visible(&hint)));
        }
        text
    }

    /// The same for programs.
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({ "error": self.to_string(), "hint": self.hint(), "exit_code": self.exit_code() })
    }
}

fn session_code(error: &claw_agents::session::SessionError) -> u8 {
    use claw_agents::session::SessionError as E;
    match error {
        E::Held { .. } => exit::HELD,
        E::Unknown { .. }
        | E::None { .. }
        | E::Elsewhere { .. }
        | E::Ambiguous { .. }
        | E::TooLarge { .. }
        | E::NoSession { .. } => exit::USAGE,
        E::Unreadable(_) | E::Io { .. } | E::Log(_) => exit::STATE,
        E::Task(_) => exit::FAULT,
    }
}

fn unknown_command_hint(word: &str, group: Option<&str>, near: Option<&str>, known: &[String]) -> String {
    let prefix = group.map(|group| format!("{group} ")).unwrap_or_default();
    if let Some(near) = near {
        return format!("did you mean `claw {prefix}{near}`?");
    }
    let list = format!("commands are {}", known.join(", "));
    if group.is_none() && word.contains(' ') {
        return format!("to ask a model: `claw -p \"…\"`; {list}");
    }
    list
}

fn provider_hint(kind: &claw_providers::error::ProviderErrorKind) -> Option<String> {
    use claw_providers::error::ProviderErrorKind as Kind;
    match kind {
        Kind::MissingCredentials { .. } => {
            Some("a local server needs no key: set OPENAI_BASE_URL to its address".to_owned())
        }
        Kind::UnknownProvider { .. } => Some("`claw models` lists providers and models".to_owned()),
        Kind::Status { .. }
        | Kind::Connect { .. }
        | Kind::Broken { .. }
        | Kind::TooLarge { .. }
        | Kind::Stalled { .. }
        | Kind::Exhausted { .. }
        | Kind::WaitTooLong { .. }
        | Kind::Closed { .. }
        | Kind::Cancelled
        | Kind::Config(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use claw_providers::error::ProviderErrorKind;
    use std::io::{Error, ErrorKind};

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|text| (*text).to_owned()).collect()
    }

    fn usage_errors() -> Vec<ExpectedError> {
        vec![
            ExpectedError::EmptyCommand,
            ExpectedError::UnknownCommand {
                word: "runn".into(),
                group: None,
                near: Some("run".into()),
                known: texts(&["run"]),
            },
            ExpectedError::UnknownCommand {
                word: "gc".into(),
                group: Some("runs".into()),
                near: None,
                known: texts(&["list", "show"]),
            },
            ExpectedError::Usage { message: "unknown flag `--x`".into(), hint: None },
            ExpectedError::EmptyPrompt,
            ExpectedError::UnknownTool {
                word: "Reed".into(),
                near: Some("read_file".into()),
                known: texts(&["bash", "read_file"]),
            },
            ExpectedError::ModeVariable {
                variable: "CLAW_PERMISSION_MODE",
                source: "read-onyl".parse::<claw_agents::permission::Permission>().unwrap_err(),
            },
            ExpectedError::RootNeedsConsent,
            ExpectedError::Rule(
                claw_agents::permission::Rule::parse(
                    claw_agents::permission::Kind::Allow,
                    claw_agents::settings::Sourced {
                        value: "Bash(ls".into(),
                        origin: claw_agents::settings::Origin::flag("--allowedTools"),
                    },
                )
                .unwrap_err(),
            ),
            ExpectedError::LogFilter { filter: "a=b=c".into() },
            ExpectedError::Declined,
        ]
    }

    fn settings_errors() -> Vec<ExpectedError> {
        use claw_agents::settings::{Diagnostic, Origin, Scope, Severity};
        let origin = Origin {
            scope: Scope::User,
            file: Some("/s.json".into()),
            line: 3,
            column: 7,
            key: "permissions.deny".into(),
        };
        let problem =
            Diagnostic::new(Severity::Error, origin, "this is a text, and should be a list of texts")
                .with_help("write [\"bash\"]");
        vec![
            ExpectedError::Settings { problems: vec![problem.clone()] },
            ExpectedError::Settings { problems: vec![problem.clone(), problem.clone()] },
            ExpectedError::Edit(EditError::Broken { path: "/s.json".into(), problem: Box::new(problem) }),
            ExpectedError::Trust(claw_agents::trust::TrustError::Newer {
                path: "/trust.json".into(),
                version: 2,
            }),
            ExpectedError::Saved(claw_providers::saved::SavedError::Broken {
                path: "/credentials.json".into(),
                line: 2,
            }),
        ]
    }

    fn other_errors() -> Vec<ExpectedError> {
        vec![
            ExpectedError::CannotRead {
                path: "w.tml".into(),
                source: Error::from_raw_os_error(2),
                near: Some("w.toml".into()),
            },
            ExpectedError::Stdin(Error::other("more than 16 MiB")),
            ExpectedError::Inputs { path: "in.json".into(), message: "the inputs must be a table".into() },
            ExpectedError::Problems { file: "w.toml".into(), count: 1 },
            ExpectedError::Problems { file: "w.toml".into(), count: 3 },
            ExpectedError::Provider(ProviderErrorKind::MissingCredentials {
                provider: "xai".into(),
                variables: texts(&["XAI_API_KEY"]),
            }),
            ExpectedError::Provider(ProviderErrorKind::UnknownProvider {
                name: "nope".into(),
                model: "nope/x".into(),
            }),
            ExpectedError::NotFound { message: "there is no run `01`".into(), hint: "list them".into() },
            ExpectedError::Run {
                message: "the run is held by process 7".into(),
                code: exit::HELD,
                hint: None,
            },
            ExpectedError::CannotWrite { path: "/x".into(), source: Error::from(ErrorKind::StorageFull) },
            ExpectedError::Session(claw_agents::session::SessionError::Unknown {
                reference: "0190".into(),
                folder: "/p".into(),
            }),
            ExpectedError::Session(claw_agents::session::SessionError::Held {
                id: "0190".into(),
                owner: None,
            }),
            ExpectedError::Session(claw_agents::session::SessionError::Ambiguous {
                reference: "0".into(),
                ids: texts(&["01", "02"]),
            }),
            ExpectedError::Pipe,
            ExpectedError::Stdout(Error::from(ErrorKind::StorageFull)),
            ExpectedError::Fault("no thread left\u{1b}[2J".into()),
        ]
    }

    #[test]
    fn every_error_says_what_and_what_to_do() {
        let all = usage_errors().into_iter().chain(settings_errors()).chain(other_errors());
        let said: Vec<String> =
            all.map(|error| format!("[{}]\n{}", error.exit_code(), error.text())).collect();
        insta::assert_snapshot!(said.join("\n"));
    }

    #[test]
    fn usage_errors_end_with_two() {
        assert!(usage_errors().iter().all(|error| error.exit_code() == exit::USAGE));
    }
}
