//! `claw mcp`: servers of the settings, how each is, and what they offer.

use super::config::trust_what_was_said;
use super::runtime::block_on;
use crate::args::{FileScope, Format, McpAddFlags, McpCommand, McpOneFlags, McpRemoveFlags, ModelsFlags};
use crate::args::{SettingsFlags, Transport};
use crate::error::{ExpectedError, exit};
use crate::servers;
use crate::services::{SettingsOrigin, Setup, folder};
use crate::terminal::write_stdout;
use claw_agents::mcp::{McpPorts, McpServers, ServerReport, ServerState};
use claw_agents::settings;
use claw_kernel::visible::visible_line;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Servers that do not come up in this time are listed as they are then.
const PATIENCE: Duration = Duration::from_secs(15);
/// Characters of a description in a list.
const MOST_SHOWN: usize = 100;

/// Carries it out.
///
/// # Errors
/// Settings, an unknown server, standard output.
pub fn run(command: &McpCommand) -> Result<u8, ExpectedError> {
    match command {
        McpCommand::List(flags) => list(flags),
        McpCommand::Get(flags) => get(flags),
        McpCommand::Add(flags) => add(flags),
        McpCommand::Remove(flags) => remove(flags),
        McpCommand::Approve(flags) => approve(flags),
    }
}

fn usage(message: String, hint: &str) -> ExpectedError {
    ExpectedError::Usage { message, hint: Some(hint.to_owned()) }
}

/// Starts these servers. Within a runtime.
async fn started(setup: &Setup, only: Option<&str>) -> McpServers {
    let mut specs = servers::specs(setup);
    specs.retain(|spec| only.is_none_or(|name| spec.name == name));
    let redactor = Arc::new(setup.redactor(Vec::new()));
    for spec in &mut specs {
        spec.lazy = false;
    }
    let started = McpServers::start(specs, &setup.cwd, McpPorts::default(), servers::approvals(), redactor);
    started.settled(PATIENCE).await;
    started
}

fn data(report: &ServerReport) -> Value {
    json!({
        "name": report.name,
        "type": report.kind,
        "target": report.shown,
        "origin": report.origin.to_string(),
        "state": report.state.name(),
        "phase": report.phase.map(|phase| phase.name()),
        "reason": report.reason,
        "server": report.about,
        "tools": report.tools.iter().map(|(name, about)| json!({"name": name, "description": about})).collect::<Vec<_>>(),
        "warnings": report.warnings,
    })
}

fn list(flags: &ModelsFlags) -> Result<u8, ExpectedError> {
    let setup = Setup::read(flags.cwd.as_deref())?;
    let format = flags.output_format;
    block_on(async move {
        let servers = started(&setup, None).await;
        let reports = servers.reports();
        servers.stop().await;
        if format != Format::Text {
            let all: Vec<Value> = reports.iter().map(data).collect();
            write_stdout(format!("{}\n", Value::Array(all)))?;
            return Ok(exit::OK);
        }
        if reports.is_empty() {
            write_stdout("no servers; `claw mcp add NAME COMMAND…` adds one\n")?;
            return Ok(exit::OK);
        }
        let width = reports.iter().map(|report| report.name.chars().count()).max().unwrap_or_default();
        let mut out = String::new();
        for report in &reports {
            let _ = writeln!(out, "{}", line(report, width));
        }
        write_stdout(out)?;
        Ok(exit::OK)
    })
}

/// One server in one line.
fn line(report: &ServerReport, width: usize) -> String {
    let what = match (&report.reason, report.phase) {
        (Some(reason), Some(phase)) => format!("{}: {reason}", phase.name()),
        (Some(reason), None) => reason.clone(),
        (None, _) => format!("{} tools, {}", report.tools.len(), report.shown),
    };
    let (name, what) = (visible_line(&report.name), visible_line(&what));
    format!("{name:<width$}  {:<13}  {what}", report.state.name())
}

fn get(flags: &McpOneFlags) -> Result<u8, ExpectedError> {
    let setup = Setup::read(flags.rest.cwd.as_deref())?;
    let (name, format) = (flags.name.clone(), flags.rest.output_format);
    block_on(async move {
        let servers = started(&setup, Some(&name)).await;
        let reports = servers.reports();
        servers.stop().await;
        let Some(report) = reports.first() else { return Err(unknown(&setup, &name)) };
        if format != Format::Text {
            write_stdout(format!("{}\n", data(report)))?;
        } else {
            write_stdout(whole(report))?;
        }
        let serves = matches!(report.state, ServerState::Connected | ServerState::Changed);
        Ok(if serves { exit::OK } else { exit::FAILED })
    })
}

fn unknown(setup: &Setup, name: &str) -> ExpectedError {
    let names: Vec<String> = servers::specs(setup).into_iter().map(|spec| spec.name).collect();
    usage(format!("there is no server `{name}`"), &format!("servers are: {}", names.join(", ")))
}

fn whole(report: &ServerReport) -> String {
    let mut out = String::new();
    let mut row = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(out, "{name}: {}", visible_line(value));
        }
    };
    row("name", &report.name);
    row("type", &report.kind);
    row("target", &report.shown);
    row("written in", &report.origin.to_string());
    row("state", report.state.name());
    row("phase", report.phase.map_or("", |phase| phase.name()));
    row("reason", report.reason.as_deref().unwrap_or_default());
    row("server", &report.about);
    for warning in &report.warnings {
        row("warning", warning);
    }
    for (name, about) in &report.tools {
        let first = about.lines().next().unwrap_or_default();
        let first: String = first.chars().take(MOST_SHOWN).collect();
        let _ = writeln!(out, "  {name}  {}", visible_line(&first));
    }
    out
}

fn file(origin: &SettingsOrigin, scope: FileScope) -> PathBuf {
    let places = &origin.loaded.places;
    match scope {
        FileScope::User => places.user_file(),
        FileScope::Local => places.local_file(),
        FileScope::Project => places.project_file(),
    }
}

fn pairs(typed: &[String], between: char, flag: &str) -> Result<Map<String, Value>, ExpectedError> {
    let pair = |one: &String| match one.split_once(between) {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), Value::from(value.trim())))
        }
        Some(_) | None => Err(usage(
            format!("`{one}` is no NAME{between}VALUE"),
            &format!("write {flag} NAME{between}VALUE"),
        )),
    };
    typed.iter().map(pair).collect()
}

fn entry(flags: &McpAddFlags) -> Result<Value, ExpectedError> {
    let mut entry = Map::new();
    let Some((first, rest)) = flags.target.split_first() else {
        return Err(usage("the program or the address is missing".to_owned(), "see `claw mcp add --help`"));
    };
    match flags.transport {
        Transport::Stdio => {
            if first.starts_with("http://") || first.starts_with("https://") {
                return Err(usage(format!("`{first}` is an address"), "write --transport http"));
            }
            entry.insert("type".to_owned(), json!("stdio"));
            entry.insert("command".to_owned(), json!(first));
            entry.insert("args".to_owned(), json!(rest));
        }
        Transport::Http => {
            entry.insert("type".to_owned(), json!("http"));
            entry.insert("url".to_owned(), json!(first));
        }
    }
    let (env, headers) = (pairs(&flags.env, '=', "--env")?, pairs(&flags.header, ':', "--header")?);
    for (key, pairs) in [("env", env), ("headers", headers)] {
        if !pairs.is_empty() {
            entry.insert(key.to_owned(), Value::Object(pairs));
        }
    }
    Ok(Value::Object(entry))
}

fn add(flags: &McpAddFlags) -> Result<u8, ExpectedError> {
    let origin = SettingsOrigin::read(&folder(flags.cwd.as_deref())?, &SettingsFlags::default())?;
    let (file, path) = (file(&origin, flags.scope), path(&flags.name));
    settings::set(&origin.loaded.places, &file, &path, &entry(flags)?)?;
    if flags.scope != FileScope::User {
        trust_what_was_said(&origin, &file, &path)?;
    }
    let words = format!("added {} in {}", flags.name, file.display());
    write_stdout(visible_line(&words).into_owned() + "\n")?;
    Ok(exit::OK)
}

fn path(name: &str) -> [String; 2] {
    ["mcpServers".to_owned(), name.to_owned()]
}

fn remove(flags: &McpRemoveFlags) -> Result<u8, ExpectedError> {
    let origin = SettingsOrigin::read(&folder(flags.cwd.as_deref())?, &SettingsFlags::default())?;
    let file = file(&origin, flags.scope);
    if !settings::unset(&origin.loaded.places, &file, &path(&flags.name))? {
        return Err(usage(
            format!("{} holds no server `{}`", file.display(), flags.name),
            "`claw mcp list --output-format json` tells where each is written; --scope names another file",
        ));
    }
    let words = format!("removed {} from {}", flags.name, file.display());
    write_stdout(visible_line(&words).into_owned() + "\n")?;
    Ok(exit::OK)
}

fn approve(flags: &McpOneFlags) -> Result<u8, ExpectedError> {
    let setup = Setup::read(flags.rest.cwd.as_deref())?;
    let name = flags.name.clone();
    block_on(async move {
        let servers = started(&setup, Some(&name)).await;
        if servers.is_empty() {
            return Err(unknown(&setup, &name));
        }
        let approved = servers.approve(&name).await;
        let tools = servers.reports().first().map_or(0, |report| report.tools.len());
        servers.stop().await;
        match approved {
            Ok(true) => {
                let words = format!("{name}: {tools} tools are approved as they are");
                write_stdout(visible_line(&words).into_owned() + "\n")?;
                Ok(exit::OK)
            }
            Ok(false) => Err(usage(format!("`{name}` does not serve"), "see `claw mcp get`")),
            Err(fault) => Err(usage(format!("`{name}`: {fault}"), "see `claw mcp get`")),
        }
    })
}
