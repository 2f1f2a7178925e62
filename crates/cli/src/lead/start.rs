//! `claw` alone: makes what a conversation needs, gives it a screen, and goes from session to session.

use super::asker::ScreenPresenter;
use super::changes::branch;
use super::drive::{Drive, Ended, Wires};
use super::editor::HistoryFile;
use super::open::{Beginning, Wanted, open};
use super::plain::Plain;
use super::state::State;
use super::status::Status;
use crate::args::{PrintFlags, SessionFlags, TalkFlags};
use crate::commands;
use crate::error::ExpectedError;
use crate::services::{Setup, config_home};
use crate::terminal::paint::ThemeName;
use crate::terminal::{
    TerminalSurroundings, is_drawable, say, stdin_is_terminal, stdout_is_terminal, terminal_size,
};
use claw_agents::permission::Permissions;
use claw_agents::settings::Theme;
use claw_kernel::safe_name;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// News of the session's agents that may wait for the screen.
const TEAM_NEWS: usize = 64;
/// Agents that were told to stop hold the end up for so long at most.
const PATIENCE: Duration = Duration::from_secs(2);

/// Talks until the person ends it. A pipe instead of a person is one question.
///
/// # Errors
/// No terminal and no pipe, arguments, credentials, or a fault of the conversation.
pub fn run(flags: TalkFlags) -> Result<u8, ExpectedError> {
    if !stdin_is_terminal() {
        return commands::print::run(PrintFlags { text: None, talk: flags }).map_err(without_terminal);
    }
    if !stdout_is_terminal() {
        return Err(without_terminal(ExpectedError::EmptyPrompt));
    }
    let mut setup = Setup::read_with(flags.cwd.as_deref(), &flags.settings)?;
    commands::trusting::ask(&mut setup)?;
    setup.origin.tell(&setup.settings);
    let permission = setup.permission(flags.permission_mode, flags.allow_root)?;
    let tools = setup.tool_flags(&flags.allowed_tools, &flags.disallowed_tools)?;
    let model = setup.model(flags.model.as_deref());
    setup.check_model(&model)?;
    let wanted = wanted(&flags.session);
    let beginning = Beginning { flags, permission, model, wanted, tools };
    commands::block_on_task(sessions(Arc::new(setup), beginning))
}

/// The session that the flags name.
fn wanted(flags: &SessionFlags) -> Wanted {
    let named = match &flags.resume {
        Some(named) => named.clone().unwrap_or_else(|| "latest".to_owned()),
        None if flags.continue_latest => "latest".to_owned(),
        None => return Wanted::New,
    };
    if flags.fork_session { Wanted::Copy(named) } else { Wanted::Known(named) }
}

/// What is said where nobody can type.
fn without_terminal(error: ExpectedError) -> ExpectedError {
    match error {
        ExpectedError::EmptyPrompt => ExpectedError::Usage {
            message: "claw without a command is a conversation and wants a terminal".to_owned(),
            hint: Some("ask one question with `claw -p \"…\"`, or pipe it in; see `claw --help`".to_owned()),
        },
        other => other,
    }
}

async fn sessions(setup: Arc<Setup>, mut beginning: Beginning) -> Result<u8, ExpectedError> {
    let mut before: Option<Wanted> = None;
    loop {
        match session(&setup, &beginning).await {
            Ok(Ended::Exit(code)) => return Ok(code),
            Ok(Ended::Session { wanted, left }) => {
                beginning.wanted = wanted;
                before = Some(left);
            }
            // What cannot be opened is said, and the one before is there again.
            Err(error) => match before.take() {
                Some(wanted) => {
                    say(&error.text());
                    beginning.wanted = wanted;
                }
                None => return Err(error),
            },
        }
    }
}

async fn session(setup: &Arc<Setup>, beginning: &Beginning) -> Result<Ended, ExpectedError> {
    let (presenter, asks) = ScreenPresenter::new();
    let permissions = Permissions::new(Arc::new(presenter), Some(setup.origin.loaded.places.clone()));
    let (door, team_news) = mpsc::channel(TEAM_NEWS);
    let opened = open(setup, beginning, Arc::new(permissions), door).await?;
    let team = opened.team.clone();
    let orders = opened.orders.clone();
    let wires = Wires { orders: opened.orders, news: opened.news, asks, team: opened.team, team_news };
    let history = HistoryFile::at(project_folder(setup).join("history.jsonl"));
    let state = State::new(theme(setup), history.load(), status(setup, beginning), terminal_size());
    let ended = if is_drawable(&TerminalSurroundings::of_process(false)) {
        Drive::new(state, Arc::clone(setup), wires, history).run().await
    } else {
        Plain::new(state, Arc::clone(setup), wires).run().await
    };
    orders.stop_because("the user left");
    drop(orders);
    // What was told to stop and does not ends with the process.
    let _ = tokio::time::timeout(PATIENCE, opened.lead.ended()).await;
    let _ = tokio::time::timeout(PATIENCE, team.leave()).await;
    opened.services.mcp.stop().await;
    opened.services.sandboxes.close();
    ended
}

/// Where what belongs to this folder is kept.
pub(super) fn project_folder(setup: &Setup) -> PathBuf {
    config_home().join("projects").join(safe_name::encode(&setup.cwd.to_string_lossy()))
}

fn status(setup: &Setup, beginning: &Beginning) -> Status {
    Status {
        model: beginning.model.clone(),
        permission: beginning.permission,
        folder: setup.shown_path(&setup.cwd),
        branch: branch(&setup.cwd),
        tokens: (0, 0),
        usd: Some(0.0),
        context: None,
        agents: 0,
    }
}

/// As the settings say, else by what the terminal says of its ground.
fn theme(setup: &Setup) -> ThemeName {
    if let Some(theme) = &setup.settings.theme {
        return match theme.value {
            Theme::Dark => ThemeName::Dark,
            Theme::Light => ThemeName::Light,
            Theme::None => ThemeName::None,
        };
    }
    let ground = std::env::var("COLORFGBG").ok();
    match ground.as_deref().and_then(|colors| colors.rsplit(';').next()) {
        Some("7" | "15") => ThemeName::Light,
        Some(_) | None => ThemeName::Dark,
    }
}
