//! What can be said of messages without a model: scope, tools, requests, pending work, files, timeline. Pure.

use claw_providers::message::{Block, Message, Role};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Characters of a request or a point.
const MOST_LINE: usize = 240;
/// Characters of a line of the timeline.
const MOST_MOMENT: usize = 120;
const MOST_REQUESTS: usize = 4;
const MOST_PENDING: usize = 4;
const MOST_FILES: usize = 20;
/// Keys of inputs that hold a path.
const PATHS: [&str; 4] = ["path", "file_path", "filePath", "notebook_path"];
/// Words that tell of work that is not done.
const PENDING: [&str; 6] = ["todo", "to do", "next", "pending", "remaining", "follow up"];

/// The points of a summary.
pub(super) fn points(messages: &[Arc<Message>]) -> String {
    let mut lines = vec![scope(messages)];
    let tools = tools(messages);
    if !tools.is_empty() {
        lines.push(format!("- Tools used: {}.", tools.join(", ")));
    }
    let requests = requests(messages);
    if !requests.is_empty() {
        lines.push("- Requests of the user, newest last:".to_owned());
        lines.extend(requests.into_iter().map(|text| format!("  - {text}")));
    }
    let pending = pending(messages);
    if !pending.is_empty() {
        lines.push("- Pending work:".to_owned());
        lines.extend(pending.into_iter().map(|text| format!("  - {text}")));
    }
    let files: Vec<String> = files(messages).into_iter().take(MOST_FILES).collect();
    if !files.is_empty() {
        lines.push(format!("- Key files: {}.", files.join(", ")));
    }
    lines.join("\n")
}

/// One line for each of the newest messages, at most so many bytes.
pub(super) fn timeline(messages: &[Arc<Message>], most: usize) -> String {
    let mut lines = Vec::new();
    let mut bytes = 0;
    for line in messages.iter().rev().filter_map(|message| moment(message)) {
        bytes += line.len() + 1;
        if bytes > most {
            break;
        }
        lines.push(line);
    }
    lines.reverse();
    lines.join("\n")
}

fn moment(message: &Message) -> Option<String> {
    let words: Vec<String> = message
        .content
        .iter()
        .filter_map(|block| match block {
            Block::Text { text } => Some(text.split_whitespace().collect::<Vec<_>>().join(" ")),
            Block::ToolUse { name, input, .. } => Some(format!("[{name} {}]", subject(input))),
            Block::ToolResult { is_error: true, .. } => Some("[failed]".to_owned()),
            Block::ToolResult { .. }
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::Image(_) => None,
        })
        .collect();
    let who = match message.role {
        Role::User => "user",
        Role::Assistant => "claw",
    };
    let words = words.join(" ");
    (!words.trim().is_empty()).then(|| format!("- {who}: {}", short(words.trim(), MOST_MOMENT)))
}

fn scope(messages: &[Arc<Message>]) -> String {
    let is_said = |m: &&Arc<Message>| m.role == Role::User && !m.text().trim().is_empty();
    let said = messages.iter().filter(is_said).count();
    let answers = messages.iter().filter(|m| m.role == Role::Assistant).count();
    let blocks = messages.iter().flat_map(|m| &m.content);
    let results = blocks.filter(|b| matches!(b, Block::ToolResult { .. })).count();
    format!(
        "- Scope: {} messages ({said} of the user, {answers} of the model, {results} tool results).",
        messages.len()
    )
}

fn tools(messages: &[Arc<Message>]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, _) in uses(messages) {
        *counts.entry(name).or_default() += 1;
    }
    counts.into_iter().map(|(name, count)| format!("{name} ({count})")).collect()
}

fn uses(messages: &[Arc<Message>]) -> impl Iterator<Item = (&str, &Value)> {
    messages.iter().flat_map(|m| &m.content).filter_map(|block| match block {
        Block::ToolUse { name, input, .. } => Some((name.as_str(), input)),
        Block::Text { .. }
        | Block::Thinking { .. }
        | Block::RedactedThinking { .. }
        | Block::ToolResult { .. }
        | Block::Image(_) => None,
    })
}

/// The first request and the newest.
fn requests(messages: &[Arc<Message>]) -> Vec<String> {
    let of_user = messages.iter().filter(|m| m.role == Role::User);
    let all: Vec<String> = of_user
        .filter_map(|message| message.content.iter().rev().find_map(Block::as_text))
        .filter(|text| !text.trim().is_empty())
        .map(|text| short(&text.split_whitespace().collect::<Vec<_>>().join(" "), MOST_LINE))
        .collect();
    let newest = all.len().saturating_sub(MOST_REQUESTS - 1).max(1).min(all.len());
    all.iter().take(1).chain(&all[newest..]).cloned().collect()
}

fn pending(messages: &[Arc<Message>]) -> Vec<String> {
    let mut lines: Vec<String> = messages
        .iter()
        .rev()
        .filter(|m| m.role == Role::Assistant)
        .flat_map(|m| m.text().lines().map(str::to_owned).collect::<Vec<_>>())
        .filter(|line| {
            let lower = line.to_lowercase();
            PENDING.iter().any(|word| lower.contains(word))
        })
        .map(|line| short(line.trim(), MOST_LINE))
        .take(MOST_PENDING)
        .collect();
    lines.reverse();
    lines
}

fn files(messages: &[Arc<Message>]) -> BTreeSet<String> {
    let named = |input: &Value| PATHS.iter().find_map(|key| input.get(*key)?.as_str().map(str::to_owned));
    uses(messages).filter_map(|(_, input)| named(input)).map(|path| short(&path, MOST_LINE)).collect()
}

/// The word of an input that says most.
fn subject(input: &Value) -> String {
    let keys = ["command", "pattern", "url", "query", "description"];
    let known = PATHS.iter().chain(&keys).find_map(|key| input.get(*key)?.as_str());
    short(&known.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" "), 60)
}

pub(super) fn short(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}
