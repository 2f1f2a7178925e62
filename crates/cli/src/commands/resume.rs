//! `claw resume`: the sessions of a folder, off a terminal: listed, searched, named, deleted.

use super::runtime::block_on;
use crate::args::{Format, ResumeFlags};
use crate::error::{ExpectedError, exit};
use crate::services::{Setup, folder};
use crate::sessions::store;
use crate::terminal::figures::money;
use crate::terminal::write_stdout;
use claw_agents::session::{Hit, Listed, Reference, SessionError, Store};
use claw_kernel::clock;
use claw_kernel::visible::visible_line;
use serde_json::{Value, json};
use std::fmt::Write;

/// Sessions that a list for people shows.
const MOST_SHOWN: usize = 50;

/// Does what the flags say.
///
/// # Errors
/// The session cannot be found or changed; standard output.
pub fn run(flags: &ResumeFlags) -> Result<u8, ExpectedError> {
    let cwd = folder(flags.cwd.as_deref())?;
    let store = store(&cwd);
    if let Some(words) = &flags.search {
        let hits = store.search(words)?;
        write_stdout(in_format(flags.output_format, &hits, hit_json, hits_text))?;
        return Ok(exit::OK);
    }
    if flags.delete || flags.rename.is_some() {
        let reference = Reference::read(flags.reference.as_deref().unwrap_or_default(), &cwd);
        return block_on(change(flags.clone(), store, reference));
    }
    let listed =
        store.list().map_err(|source| SessionError::Io { path: store.folder().to_owned(), source })?;
    let listed = match &flags.reference {
        None => listed,
        Some(typed) => {
            let found = store.find(&Reference::read(typed, &cwd))?;
            let is_it =
                |one: &Listed| matches!(&found, claw_agents::session::Found::Own { id, .. } if *id == one.id);
            listed.into_iter().filter(is_it).collect()
        }
    };
    write_stdout(in_format(flags.output_format, &listed, listed_json, list_text))?;
    Ok(exit::OK)
}

async fn change(flags: ResumeFlags, store: Store, reference: Reference) -> Result<u8, ExpectedError> {
    let found = store.find(&reference)?;
    match &flags.rename {
        Some(name) => {
            let logs = Setup::read(flags.cwd.as_deref())?.logs()?;
            store.rename(found, &logs, name).await?;
        }
        None => store.delete(found).await?,
    }
    Ok(exit::OK)
}

fn in_format<T>(format: Format, all: &[T], json: fn(&T) -> Value, text: fn(&[T]) -> String) -> String {
    match format {
        Format::Text => text(all),
        Format::Json => format!("{}\n", Value::Array(all.iter().map(json).collect())),
        Format::StreamJson => all.iter().map(|one| format!("{}\n", json(one))).collect(),
    }
}

fn listed_json(one: &Listed) -> Value {
    json!({
        "session_id": one.id,
        "name": one.name,
        "title": one.title,
        "modified": one.modified.to_string(),
        "began": one.began.map(|at| at.to_string()),
        "prompts": one.prompts,
        "bytes": one.bytes,
        "total_cost_usd": one.usage.and_then(|usage| usage.usd),
        "from": one.from,
        "path": one.path,
    })
}

fn hit_json(hit: &Hit) -> Value {
    json!({ "session_id": hit.session.id, "name": hit.session.name, "text": hit.text })
}

fn list_text(all: &[Listed]) -> String {
    if all.is_empty() {
        return "no session yet in this folder\n".to_owned();
    }
    let mut text = String::new();
    for one in all.iter().take(MOST_SHOWN) {
        let title = one.name.as_deref().or(one.title.as_deref()).unwrap_or("(nothing was said)");
        let prompts = one.prompts.map(|n| format!("{n} prompts, ")).unwrap_or_default();
        let cost = one.usage.and_then(|usage| usage.usd).map(|usd| format!(", {}", money(Some(usd))));
        // Writing to a text cannot fail.
        let _ = writeln!(
            text,
            "{}  {}\n  {prompts}{}{}",
            one.id,
            visible_line(title),
            ago(one),
            cost.unwrap_or_default()
        );
    }
    if all.len() > MOST_SHOWN {
        let _ = writeln!(text, "… and {} more", all.len() - MOST_SHOWN);
    }
    text.push_str("go on with one: claw --resume ID -p \"…\"\n");
    text
}

fn ago(one: &Listed) -> String {
    let seconds = clock::now().since(one.modified).as_secs();
    match seconds {
        0..60 => "just now".to_owned(),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

fn hits_text(hits: &[Hit]) -> String {
    if hits.is_empty() {
        return "nothing was found\n".to_owned();
    }
    let line = |hit: &Hit| format!("{}  …{}…\n", hit.session.id, visible_line(&hit.text));
    hits.iter().map(line).collect()
}
