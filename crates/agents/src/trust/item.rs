//! One thing that a repository brings, with its exact words and a digest that changes with them.

use crate::settings::{Leaf, Node, Origin};
use claw_kernel::digest::Digest;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What it would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ItemKind {
    /// Runs a command at an event.
    Hook,
    /// Starts or reaches an MCP server.
    Server,
    /// Sets a variable.
    Variable,
    /// Runs a command that prints a key.
    KeyHelper,
    /// Runs a command that prints the status line.
    StatusLine,
    /// Switches a plugin on or off, or says where plugins lie.
    Plugin,
    /// Lets calls run without a question.
    AllowRule,
    /// Lets agents work in another folder.
    Folder,
    /// A mode that is wider than the user's.
    Mode,
    /// Changes the wall round commands.
    Sandbox,
    /// Raises a ceiling.
    Limit,
    /// An agent with hooks or servers of its own.
    Agent,
}

impl ItemKind {
    /// As people say it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Hook => "hook",
            Self::Server => "MCP server",
            Self::Variable => "variable",
            Self::KeyHelper => "key helper",
            Self::StatusLine => "status line",
            Self::Plugin => "plugin",
            Self::AllowRule => "allow rule",
            Self::Folder => "folder",
            Self::Mode => "permission mode",
            Self::Sandbox => "sandbox",
            Self::Limit => "limit",
            Self::Agent => "agent",
        }
    }
}

impl fmt::Display for ItemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// One thing that a repository brings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrustItem {
    /// What it would do.
    pub kind: ItemKind,
    /// Its key, without its number in a list.
    pub key: String,
    /// Exactly what would run, be reached or be set: a line each, as written (controls are not made visible here).
    pub lines: Vec<String>,
    /// Where it stands.
    pub origin: Origin,
    /// Of its kind, its key and its whole value; not of its place.
    pub digest: Digest,
}

impl TrustItem {
    /// Of something that a file says.
    pub fn of(leaf: &Leaf, kind: ItemKind) -> Self {
        let key = leaf.path.join(".");
        let value = leaf.node.to_json();
        let words = serde_json::to_string(&kind).unwrap_or_default();
        let parts = std::iter::once(words).chain(leaf.path.iter().cloned()).chain([value.to_string()]);
        Self {
            kind,
            lines: lines(kind, leaf),
            origin: leaf.origin(),
            digest: Digest::of_parts(parts.collect::<Vec<_>>()),
            key,
        }
    }

    /// In one line: what runs, or the key and its value.
    pub fn line(&self) -> String {
        self.lines.join("; ")
    }

    /// The beginning of its digest: enough to name it among those of a project.
    pub fn short(&self) -> String {
        self.digest.hex().chars().take(8).collect()
    }
}

fn lines(kind: ItemKind, leaf: &Leaf) -> Vec<String> {
    let node = &leaf.node;
    match kind {
        ItemKind::Hook => hook(node),
        ItemKind::Server => server(node),
        ItemKind::Variable => {
            let value = node.text().map_or_else(|| node.to_json().to_string(), str::to_owned);
            vec![format!("{}={value}", leaf.name())]
        }
        ItemKind::KeyHelper | ItemKind::AllowRule | ItemKind::Folder | ItemKind::Mode => vec![plain(node)],
        ItemKind::StatusLine => vec![plain(node)],
        ItemKind::Plugin | ItemKind::Sandbox | ItemKind::Limit | ItemKind::Agent => {
            vec![format!("{} = {}", leaf.name(), node.to_json())]
        }
    }
}

fn plain(node: &Node) -> String {
    node.text().map_or_else(|| node.to_json().to_string(), str::to_owned)
}

/// A command line, or a matcher with its command lines.
fn hook(node: &Node) -> Vec<String> {
    let commands: Vec<String> = node
        .get("hooks")
        .iter()
        .flat_map(|hooks| hooks.elements())
        .map(|hook| hook.get("command").map_or_else(|| hook.to_json().to_string(), plain))
        .collect();
    match node.text() {
        Some(command) => vec![command.to_owned()],
        None if commands.is_empty() => vec![node.to_json().to_string()],
        None => commands,
    }
}

/// The command line or the address, then everything else that is written there.
fn server(node: &Node) -> Vec<String> {
    let words =
        node.get("command").into_iter().chain(node.get("args").into_iter().flat_map(|args| args.elements()));
    let command = words.map(|word| quoted(&plain(word))).collect::<Vec<_>>().join(" ");
    let first = if command.is_empty() { node.get("url").map(plain).unwrap_or_default() } else { command };
    let known = ["command", "args", "url", "type"];
    let rest = node.members().iter().filter(|member| !known.contains(&member.name.as_str()));
    std::iter::once(first)
        .chain(rest.map(|member| format!("{}: {}", member.name, member.node.to_json())))
        .collect()
}

/// As a shell would want it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
