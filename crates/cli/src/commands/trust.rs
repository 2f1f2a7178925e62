//! `claw trust`: what this repository brings, what was decided on it, and decisions.

use crate::args::{Format, SettingsFlags, TrustCommand, TrustItemFlags, TrustItemsFlags, TrustListFlags};
use crate::error::{ExpectedError, exit};
use crate::services::{SettingsOrigin, folder};
use crate::terminal::write_stdout;
use claw_agents::trust::{Decided, Decision, TrustItem};
use claw_kernel::digest::Digest;
use claw_kernel::visible::visible_line;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// Digits that name an item.
const SHORT: usize = 8;

/// Shows or decides.
///
/// # Errors
/// An unknown item, decisions that cannot be read or kept, standard output.
pub fn run(command: &TrustCommand) -> Result<u8, ExpectedError> {
    match command {
        TrustCommand::List(flags) => list(flags)?,
        TrustCommand::Show(flags) => show(flags)?,
        TrustCommand::Accept(flags) => decide(flags, Decision::Trusted)?,
        TrustCommand::Refuse(flags) => decide(flags, Decision::Refused)?,
        TrustCommand::Revoke(flags) => revoke(flags)?,
    }
    Ok(exit::OK)
}

fn origin(cwd: Option<&Path>) -> Result<SettingsOrigin, ExpectedError> {
    SettingsOrigin::read(&folder(cwd)?, &SettingsFlags::default())
}

fn word(decision: Option<Decision>) -> &'static str {
    match decision {
        Some(Decision::Trusted) => "trusted",
        Some(Decision::Refused) => "refused",
        None => "undecided",
    }
}

/// Decisions on what the repository does not bring any more.
fn gone(origin: &SettingsOrigin) -> Vec<(&Digest, &Decided)> {
    let items = origin.loaded.items();
    let is_there = |digest: &Digest| items.iter().any(|item| item.digest == *digest);
    origin.decisions.iter().filter(|(digest, _)| !is_there(digest)).collect()
}

fn list(flags: &TrustListFlags) -> Result<(), ExpectedError> {
    let origin = origin(flags.cwd.as_deref())?;
    let text = match flags.output_format {
        Format::Text => text(&origin),
        Format::Json | Format::StreamJson => format!("{}\n", data(&origin)),
    };
    write_stdout(text)
}

fn text(origin: &SettingsOrigin) -> String {
    let mut out = String::new();
    let items = origin.loaded.items();
    let project = visible_line(&origin.loaded.places.project.display().to_string()).into_owned();
    if items.is_empty() {
        let _ = writeln!(out, "{project} brings nothing that needs a decision");
    } else {
        let _ = writeln!(out, "what {project} brings:");
    }
    for item in items {
        let state = word(origin.decisions.on(item));
        let _ = writeln!(out, "{}  {state:<9}  {}  {}", item.short(), item.kind, visible_line(&item.line()));
        let _ = writeln!(
            out,
            "          {}  {}",
            visible_line(&item.origin.to_string()),
            visible_line(&item.key)
        );
    }
    let gone = gone(origin);
    if !gone.is_empty() {
        out.push_str("\ndecided on, and not there any more:\n");
    }
    for (digest, decided) in gone {
        let state = word(Some(decided.decision));
        let line = decided.lines.join("; ");
        let _ = writeln!(
            out,
            "{}  {state:<9}  {}  {}",
            &digest.hex()[..SHORT],
            decided.kind,
            visible_line(&line)
        );
    }
    out
}

fn item_json(origin: &SettingsOrigin, item: &TrustItem) -> Value {
    json!({
        "id": item.short(),
        "state": word(origin.decisions.on(item)),
        "kind": item.kind,
        "key": item.key,
        "lines": item.lines,
        "file": item.origin.file,
        "line": item.origin.line,
        "column": item.origin.column,
        "digest": item.digest,
    })
}

fn data(origin: &SettingsOrigin) -> Value {
    let items: Vec<Value> = origin.loaded.items().into_iter().map(|item| item_json(origin, item)).collect();
    let gone: Vec<Value> = gone(origin)
        .into_iter()
        .map(|(digest, decided)| json!({ "id": &digest.hex()[..SHORT], "decided": decided }))
        .collect();
    json!({ "project": origin.loaded.places.project, "items": items, "gone": gone })
}

fn show(flags: &TrustItemFlags) -> Result<(), ExpectedError> {
    let rest = flags.rest();
    let origin = origin(rest.cwd.as_deref())?;
    let items = origin.loaded.items();
    let item = items
        .into_iter()
        .find(|item| is_named(&item.digest, &flags.item))
        .ok_or_else(|| unknown(&flags.item))?;
    if rest.output_format != Format::Text {
        return write_stdout(format!("{}\n", item_json(&origin, item)));
    }
    let mut out = format!("{}: {}\n", item.kind, word(origin.decisions.on(item)));
    let _ = writeln!(out, "{}  {}", visible_line(&item.origin.to_string()), visible_line(&item.key));
    for line in item.lines.iter().flat_map(|line| line.lines()) {
        let _ = writeln!(out, "  {}", visible_line(line));
    }
    let _ = writeln!(out, "digest {}", item.digest);
    write_stdout(out)
}

fn is_named(digest: &Digest, typed: &str) -> bool {
    typed.len() >= 4 && digest.hex().starts_with(&typed.to_lowercase())
}

fn unknown(typed: &str) -> ExpectedError {
    ExpectedError::NotFound {
        message: format!("there is no item `{typed}`"),
        hint: "`claw trust list` names them".to_owned(),
    }
}

fn decide(flags: &TrustItemsFlags, decision: Decision) -> Result<(), ExpectedError> {
    let origin = origin(flags.cwd.as_deref())?;
    let problems = origin.loaded.errors();
    if !problems.is_empty() {
        return Err(ExpectedError::Settings { problems });
    }
    let all = origin.loaded.items();
    let mut chosen = Vec::new();
    for typed in &flags.items {
        let found = all.iter().copied().find(|item| is_named(&item.digest, typed));
        chosen.push(found.ok_or_else(|| unknown(typed))?);
    }
    if flags.all {
        chosen = all;
    }
    origin.trust_file.decide(&chosen, decision)?;
    let mut out = String::new();
    for item in &chosen {
        let _ = writeln!(out, "{}: {}  {}", word(Some(decision)), item.kind, visible_line(&item.line()));
    }
    write_stdout(if out.is_empty() { "nothing to decide on\n".to_owned() } else { out })
}

fn revoke(flags: &TrustItemsFlags) -> Result<(), ExpectedError> {
    let origin = origin(flags.cwd.as_deref())?;
    let decided: Vec<Digest> = origin.decisions.iter().map(|(digest, _)| *digest).collect();
    let mut chosen = Vec::new();
    for typed in &flags.items {
        let found = decided.iter().find(|digest| is_named(digest, typed));
        chosen.push(*found.ok_or_else(|| unknown(typed))?);
    }
    if flags.all {
        chosen = decided;
    }
    origin.trust_file.forget(&chosen)?;
    write_stdout(format!("forgot {} decision{}\n", chosen.len(), if chosen.len() == 1 { "" } else { "s" }))
}
