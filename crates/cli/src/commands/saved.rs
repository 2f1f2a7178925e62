//! `claw --resume REF /status /cost`: slash commands on a saved session, without a terminal.

use super::export::{form_of, write};
use super::runtime::block_on;
use crate::args::{Format, SavedCommand, SavedFlags, TalkFlags};
use crate::error::{ExpectedError, exit};
use crate::services::{Setup, config_home};
use crate::sessions::{self, Decided, store};
use crate::terminal::figures::money;
use crate::terminal::{say, write_stdout};
use claw_agents::compaction::tokens_of_all;
use claw_agents::lead::{Lead, LeadCommand, LeadEvent};
use claw_agents::permission::NobodyToAsk;
use claw_agents::session::{ExportForm, OpenSession};
use claw_kernel::durable::LogWriter;
use claw_kernel::visible::visible_line;
use claw_providers::usage::Usage;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc;

/// News that may wait.
const NEWS: usize = 64;

/// Runs them in their order, each on the session as the one before left it.
///
/// # Errors
/// The session cannot be opened; a command fails.
pub fn run(flags: SavedFlags) -> Result<u8, ExpectedError> {
    block_on(all(flags))
}

async fn all(flags: SavedFlags) -> Result<u8, ExpectedError> {
    let SavedFlags { commands, talk } = flags;
    let mut setup = Setup::read_with(talk.cwd.as_deref(), &talk.settings)?;
    let logs = setup.logs()?;
    let mut results = Vec::new();
    let mut code = exit::OK;
    for command in commands {
        let (result, ended) = one(command, &mut setup, &talk, &logs).await?;
        code = code.max(ended);
        if talk.output_format.unwrap_or_default() == Format::Text {
            write_stdout(text(&result))?;
        } else {
            results.push(result);
        }
    }
    match (talk.output_format.unwrap_or_default(), results.as_slice()) {
        (Format::Text, _) => {}
        (Format::Json, [only]) => write_stdout(format!("{only}\n"))?,
        (Format::Json, all) => write_stdout(format!("{}\n", Value::Array(all.to_vec())))?,
        (Format::StreamJson, all) => {
            write_stdout(all.iter().map(|one| format!("{one}\n")).collect::<String>())?;
        }
    }
    Ok(code)
}

/// One command's result, as an object, and its exit code.
async fn one(
    command: SavedCommand,
    setup: &mut Setup,
    talk: &TalkFlags,
    logs: &LogWriter,
) -> Result<(Value, u8), ExpectedError> {
    match command {
        SavedCommand::Status => {
            let session = opened(setup, talk, logs).await?;
            Ok((status(&session), exit::OK))
        }
        SavedCommand::Cost => {
            let session = opened(setup, talk, logs).await?;
            Ok((cost(&session), exit::OK))
        }
        SavedCommand::Export(file) => {
            let session = opened(setup, talk, logs).await?;
            let named = file.map(PathBuf::from);
            let form = form_of(named.as_deref());
            let ending = if form == ExportForm::Json { "json" } else { "md" };
            let to = setup.path(&named.unwrap_or_else(|| PathBuf::from(format!("{}.{ending}", session.id))));
            write(&session.path, &to, form)?;
            Ok((json!({ "command": "export", "session_id": session.id, "file": to }), exit::OK))
        }
        SavedCommand::Compact(keep) => compact(keep, setup, talk, logs).await,
    }
}

async fn opened(setup: &Setup, talk: &TalkFlags, logs: &LogWriter) -> Result<OpenSession, ExpectedError> {
    let session = sessions::open(&setup.cwd, &talk.session, logs, (None, "")).await?;
    for repair in &session.repairs {
        say(&format!("warning: {}: {}\n", session.path.display(), visible_line(repair)));
    }
    Ok(session)
}

fn status(session: &OpenSession) -> Value {
    let loaded = &session.loaded;
    json!({
        "command": "status",
        "session_id": session.id,
        "name": loaded.facts.name,
        "title": loaded.facts.title,
        "file": session.path,
        "folder": store(loaded.facts.head.as_ref().map_or(&session.path, |head| &head.folder)).workspace(),
        "model": loaded.facts.model,
        "prompts": loaded.facts.last_prompt,
        "messages": loaded.history.len(),
        "turns": loaded.turns,
        "compactions": loaded.facts.compactions,
        "context_tokens": tokens_of_all(&loaded.history),
        "usage": usage(&loaded.usage),
        "total_cost_usd": loaded.usage.usd,
    })
}

fn cost(session: &OpenSession) -> Value {
    let spent = &session.loaded.usage;
    json!({
        "command": "cost",
        "session_id": session.id,
        "usage": usage(spent),
        "total_tokens": spent.total(),
        "total_cost_usd": spent.usd,
    })
}

fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
        "requests_of_unknown_cost": usage.unknown,
    })
}

/// A lead does it: what a compaction needs is the same here.
async fn compact(
    keep: Option<String>,
    setup: &mut Setup,
    talk: &TalkFlags,
    logs: &LogWriter,
) -> Result<(Value, u8), ExpectedError> {
    let decided = Decided::of(setup, talk)?;
    let session = opened(setup, talk, logs).await?;
    let decided = decided.with_model_of(&session, setup, talk);
    let id = session.id;
    let services =
        setup.agent_services(Arc::new(NobodyToAsk), logs.clone(), vec![config_home()], Vec::new())?;
    let services = Arc::new(services);
    let (door, mut news) = mpsc::channel(NEWS);
    let lead = Lead::start(decided.lead(setup, talk, services.clone()), session, door);
    // A queue that is new has room.
    let _ = lead.order(LeadCommand::Compact { keep });
    let mut result = json!({ "command": "compact", "session_id": id, "removed_messages": 0 });
    let mut code = exit::OK;
    while let Some(event) = news.recv().await {
        match event {
            LeadEvent::Compacted { removed, before, after, without_model } => {
                result["removed_messages"] = json!(removed);
                result["pre_tokens"] = json!(before);
                result["post_tokens"] = json!(after);
                result["without_model"] = json!(without_model);
                let _ = lead.order(LeadCommand::Shutdown);
            }
            LeadEvent::Refused { what, why } => {
                result["why"] = json!(why);
                code = if what == "compact" { exit::OK } else { exit::FAILED };
                let _ = lead.order(LeadCommand::Shutdown);
            }
            LeadEvent::Closed => break,
            _ => {}
        }
    }
    lead.ended().await;
    services.mcp.stop().await;
    services.sandboxes.close();
    Ok((result, code))
}

/// `key: value` lines, money as people write it.
fn text(result: &Value) -> String {
    let mut lines = String::new();
    for (key, value) in result.as_object().into_iter().flatten() {
        let key = key.replace('_', " ");
        match value {
            Value::Object(more) => {
                for (name, value) in more {
                    lines.push_str(&format!("{:<26}{}\n", name.replace('_', " "), plain(value)));
                }
            }
            Value::Null if key == "total cost usd" => {
                lines.push_str(&format!("{:<26}unknown (a price is not known)\n", "cost"));
            }
            Value::Null => {}
            Value::Number(usd) if key == "total cost usd" => {
                lines.push_str(&format!("{:<26}{}\n", "cost", money(usd.as_f64())));
            }
            other => lines.push_str(&format!("{key:<26}{}\n", plain(other))),
        }
    }
    lines
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => visible_line(text).into_owned(),
        other => other.to_string(),
    }
}
