//! A session as a document: everything that was said, summaries and rewinds included. Pure.

use crate::transcript::Record;
use claw_kernel::ids::SessionId;
use claw_providers::message::{Block, Message, Role};
use claw_providers::usage::Usage;
use serde_json::{Value, json};
use std::fmt::Write;

/// Bytes of a result in Markdown.
const MOST_RESULT: usize = 4_000;

/// How it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportForm {
    /// For people.
    Markdown,
    /// For programs.
    Json,
}

/// One thing that happened.
enum Step {
    Message(Message),
    Compacted { removed: usize },
}

/// The document of a session file's bytes.
pub fn export(bytes: &[u8], form: ExportForm) -> String {
    let mut told = Told::default();
    for line in bytes.split(|byte| *byte == b'\n') {
        if let Ok(record) = serde_json::from_slice::<Record>(line) {
            told.take(record);
        }
    }
    match form {
        ExportForm::Markdown => told.markdown(),
        ExportForm::Json => format!("{:#}\n", told.json()),
    }
}

#[derive(Default)]
struct Told {
    id: Option<SessionId>,
    name: Option<String>,
    model: Option<String>,
    usage: Option<Usage>,
    steps: Vec<Step>,
    prompts: Vec<(u32, usize)>,
}

impl Told {
    fn take(&mut self, record: Record) {
        match record {
            Record::Session { id, model, name, .. } => {
                self.id = Some(id);
                self.model = Some(model);
                self.name = name.or_else(|| self.name.take());
            }
            Record::Named { name } => self.name = (!name.is_empty()).then_some(name),
            Record::Prompt { text } => self.steps.push(Step::Message(Message::user(text))),
            Record::Said { prompt, content, .. } => {
                self.prompts.push((prompt, self.steps.len()));
                self.steps.push(Step::Message(Message { role: Role::User, content }));
            }
            Record::Told { text, .. } => self.steps.push(Step::Message(Message::user(text))),
            Record::Message { message, .. } => self.steps.push(Step::Message(message)),
            Record::Compaction { removed, .. } => self.steps.push(Step::Compacted { removed }),
            Record::Rewound { prompt } => {
                if let Some(place) = self.prompts.iter().position(|(number, _)| *number == prompt) {
                    self.steps.truncate(self.prompts[place].1);
                    self.prompts.truncate(place);
                }
            }
            Record::Usage { usage, .. } => {
                self.usage = Some(self.usage.unwrap_or(Usage::NOTHING).plus(&usage));
            }
            Record::Meta { .. }
            | Record::Abandoned { .. }
            | Record::Permission { .. }
            | Record::End(_)
            | Record::Snapshot { .. }
            | Record::Agent { .. }
            | Record::Team { .. }
            | Record::Repaired { .. }
            | Record::Closed { .. } => {}
        }
    }

    fn json(&self) -> Value {
        let steps = self.steps.iter().map(|step| match step {
            Step::Message(message) => json!(message),
            Step::Compacted { removed } => json!({ "compacted": removed }),
        });
        json!({
            "version": 1,
            "session_id": self.id,
            "name": self.name,
            "model": self.model,
            "usage": self.usage,
            "messages": steps.collect::<Vec<_>>(),
        })
    }

    fn markdown(&self) -> String {
        let mut out = format!("# {}\n", self.name.as_deref().unwrap_or("A session of claw"));
        // Writing to a text cannot fail.
        if let Some(id) = self.id {
            let _ = writeln!(out, "\n- Session: {id}");
        }
        if let Some(model) = &self.model {
            let _ = writeln!(out, "- Model: {model}");
        }
        if let Some(usage) = &self.usage {
            let money = usage.usd.map_or_else(|| "price unknown".to_owned(), |usd| format!("${usd:.4}"));
            let _ = writeln!(out, "- Tokens: {} ({money})", usage.total());
        }
        let mut speaker = None;
        for step in &self.steps {
            match step {
                Step::Compacted { removed } => {
                    let _ = writeln!(out, "\n*({removed} messages gave way to a summary here)*");
                }
                Step::Message(message) => section(message, &mut speaker, &mut out),
            }
        }
        out
    }
}

fn section(message: &Message, speaker: &mut Option<Role>, out: &mut String) {
    let only_results = message.content.iter().all(|block| matches!(block, Block::ToolResult { .. }));
    if *speaker != Some(message.role) && !only_results {
        *speaker = Some(message.role);
        out.push_str(match message.role {
            Role::User => "\n## You\n",
            Role::Assistant => "\n## claw\n",
        });
    }
    for block in &message.content {
        let _ = match block {
            Block::Text { text } => writeln!(out, "\n{}", text.trim_end()),
            Block::ToolUse { name, input, .. } => {
                writeln!(out, "\n**{name}**\n{}", fenced(&format!("{input:#}")))
            }
            Block::ToolResult { content, is_error, .. } => {
                let word = if *is_error { "Error" } else { "Result" };
                writeln!(out, "\n{word}:\n{}", fenced(&short(content)))
            }
            Block::Image(image) => writeln!(out, "\n*({})*", image.media_type),
            Block::Thinking { .. } | Block::RedactedThinking { .. } => Ok(()),
        };
    }
}

fn short(text: &str) -> String {
    if text.len() <= MOST_RESULT {
        return text.to_owned();
    }
    let cut = text.floor_char_boundary(MOST_RESULT);
    format!("{}\n[{} bytes cut]", &text[..cut], text.len() - cut)
}

/// A fence that the text cannot close.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}\n{}\n{fence}", text.trim_end())
}
