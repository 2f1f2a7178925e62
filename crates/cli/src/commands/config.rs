//! `claw config`: every value that counts, where it stands and what it shadows.

mod set;

pub(super) use set::trust as trust_what_was_said;

use crate::args::{ConfigCommand, ConfigFlags, Format};
use crate::error::{ExpectedError, exit};
use crate::services::{SettingsOrigin, folder, is_secret};
use crate::terminal::write_stdout;
use claw_agents::settings::{Entry, Leaf, Merged, Severity, keys, reference};
use claw_kernel::near::nearest;
use claw_kernel::visible::visible_line;
use serde_json::{Value, json};
use std::fmt::Write;

/// What stands for a key.
const HIDDEN: &str = "(hidden)";

/// Shows the settings, or changes one. Exit 2 where a file cannot be used.
///
/// # Errors
/// An unknown section, decisions that cannot be read, standard output.
pub fn run(flags: &ConfigFlags) -> Result<u8, ExpectedError> {
    match flags.command() {
        Some(ConfigCommand::Set(flags)) => return set::run(flags),
        Some(ConfigCommand::Reference) => {
            write_stdout(reference())?;
            return Ok(exit::OK);
        }
        None => {}
    }
    let rest = flags.rest();
    let origin = SettingsOrigin::read(&folder(rest.cwd.as_deref())?, &rest.settings)?;
    let section = flags.section.as_deref().map(section).transpose()?;
    let merged = origin.loaded.merged(&|item| origin.trusts(item));
    let settings = origin.loaded.settle(&|item| origin.trusts(item));
    let problems: Vec<_> = origin.loaded.diagnostics.iter().chain(&settings.problems).collect();
    let shown = Shown { merged: &merged, section: section.as_deref() };
    let files: Vec<_> = origin.loaded.files().collect();
    let text = match rest.output_format {
        Format::Text => {
            let mut out = shown.text();
            for problem in &problems {
                let _ =
                    writeln!(out, "{}: {}", severity(problem.severity), visible_lines(&problem.to_string()));
            }
            out
        }
        Format::Json | Format::StreamJson => {
            format!(
                "{}\n",
                json!({ "settings": shown.data(), "files": files, "not_trusted": merged.waiting, "problems": problems })
            )
        }
    };
    write_stdout(text)?;
    let broken = problems.iter().any(|problem| problem.severity == Severity::Error);
    Ok(if broken { exit::USAGE } else { exit::OK })
}

/// The settings that count, or one section of them, for people.
///
/// # Errors
/// An unknown section.
pub fn listed(origin: &SettingsOrigin, typed: Option<&str>) -> Result<String, ExpectedError> {
    let section = typed.map(section).transpose()?;
    let merged = origin.loaded.merged(&|item| origin.trusts(item));
    Ok(Shown { merged: &merged, section: section.as_deref() }.text())
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

fn visible_lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(visible_line).collect();
    lines.join("\n")
}

/// A section as typed, in the spelling of the table.
fn section(typed: &str) -> Result<String, ExpectedError> {
    let first = typed.split('.').next().unwrap_or(typed);
    let path: Vec<String> = typed.split('.').map(keys::camel).collect();
    if keys::TOP.iter().any(|key| key.name == keys::camel(first)) {
        return Ok(path.join("."));
    }
    let names = || keys::TOP.iter().map(|key| key.name);
    let near = nearest(first, names()).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    let known: Vec<&str> = names().collect();
    Err(ExpectedError::Usage {
        message: format!("unknown section `{typed}`"),
        hint: Some(format!("{near}sections are {}", known.join(", "))),
    })
}

struct Shown<'a> {
    merged: &'a Merged,
    section: Option<&'a str>,
}

impl Shown<'_> {
    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.merged.entries().filter(|entry| {
            let key = entry.path.join(".");
            self.section.is_none_or(|section| {
                key == section || key.strip_prefix(section).is_some_and(|rest| rest.starts_with('.'))
            })
        })
    }

    fn text(&self) -> String {
        let mut out = String::new();
        for leaf in self.entries().flat_map(|entry| &entry.values) {
            let _ =
                writeln!(out, "{} = {}", visible_line(&key_of(leaf)), visible_line(&shown(leaf).to_string()));
            let _ = writeln!(out, "    {}", place(leaf));
            for lower in self.shadowed(leaf) {
                let value = shown(lower).to_string();
                let _ = writeln!(out, "    shadows {}  {}", visible_line(&value), place(lower));
            }
        }
        if out.is_empty() {
            out.push_str("nothing is set\n");
        }
        for item in &self.merged.waiting {
            let _ = writeln!(
                out,
                "not trusted: {} `{}`  {}  (claw trust accept {})",
                item.kind,
                visible_line(&item.line()),
                visible_line(&item.origin.to_string()),
                item.short()
            );
        }
        out
    }

    /// What a single value shadows; elements of lists that add up shadow nothing.
    fn shadowed(&self, leaf: &Leaf) -> &[Leaf] {
        let same = |entry: &&Entry| entry.path == leaf.path;
        self.merged.entries().find(same).map_or(&[], |entry| &entry.shadows)
    }

    fn data(&self) -> Vec<Value> {
        let leaves = self.entries().flat_map(|entry| &entry.values);
        leaves
            .map(|leaf| {
                let mut row = row(leaf);
                let shadows: Vec<Value> = self.shadowed(leaf).iter().map(row_of_shadow).collect();
                row["shadows"] = shadows.into();
                row
            })
            .collect()
    }
}

fn key_of(leaf: &Leaf) -> String {
    leaf.path.join(".")
}

fn place(leaf: &Leaf) -> String {
    let origin = leaf.origin();
    let scope = json!(origin.scope);
    format!("{} ({})", visible_line(&origin.to_string()), scope.as_str().unwrap_or_default())
}

fn row(leaf: &Leaf) -> Value {
    let origin = leaf.origin();
    json!({
        "key": key_of(leaf),
        "value": shown(leaf),
        "scope": origin.scope,
        "file": origin.file,
        "line": origin.line,
        "column": origin.column,
        "from": origin.to_string(),
    })
}

fn row_of_shadow(leaf: &Leaf) -> Value {
    row(leaf)
}

/// The value; a key of a provider is not shown, nor what goes to a server with every request.
fn shown(leaf: &Leaf) -> Value {
    let first = leaf.path.first().map_or("", String::as_str);
    let is_header = leaf.path.iter().any(|part| part == "headers");
    if is_header || first == "env" && is_secret(leaf.name()) {
        return HIDDEN.into();
    }
    let mut value = leaf.node.to_json();
    if first == "mcpServers" {
        for part in ["env", "headers"] {
            let Some(pairs) = value.get_mut(part).and_then(Value::as_object_mut) else { continue };
            pairs.values_mut().for_each(|value| *value = HIDDEN.into());
        }
    }
    value
}
