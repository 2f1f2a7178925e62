//! What counts, as values that other rooms use: nobody looks into JSON behind this.

use super::diagnostic::{Diagnostic, Severity};
use super::leaf::Leaf;
use super::merged::Merged;
use super::node::{Node, Value};
use super::origin::{Scope, Sourced};
use super::permissions::PermissionSettings;
use super::places::Places;
use super::sandbox::SandboxSection;
use crate::compaction::{CompactionSettings, Threshold};
use crate::trust::TrustItem;
use claw_providers::config::ProfileSettings;
use indexmap::IndexMap;
use std::path::PathBuf;

/// Something that another room reads: a hook, a server, an agent.
#[derive(Clone, Debug)]
pub struct RawItem {
    /// The event of a hook; the name of a server or agent.
    pub name: String,
    /// Where it stands.
    pub origin: super::Origin,
    /// What stands there, with the places of its parts.
    pub node: Node,
}

/// `plugins` and `enabledPlugins`.
#[derive(Clone, Debug, Default)]
pub struct PluginSettings {
    /// By id.
    pub enabled: IndexMap<String, Sourced<bool>>,
    /// Each folder in one of these is a plugin.
    pub external_directories: Vec<Sourced<PathBuf>>,
    /// Where plugins are installed.
    pub install_root: Option<Sourced<PathBuf>>,
    /// The list of installed ones.
    pub registry_path: Option<Sourced<PathBuf>>,
    /// Those that come with claw.
    pub bundled_root: Option<Sourced<PathBuf>>,
    /// The only sources that the policy lets plugins come from, as written.
    pub strict_marketplaces: Option<RawItem>,
}

/// `oauth`.
#[derive(Clone, Debug, Default)]
pub struct OauthSettings {
    /// Id of the client.
    pub client_id: Option<Sourced<String>>,
    /// Where the browser goes.
    pub authorize_url: Option<Sourced<String>>,
    /// Where tokens come from.
    pub token_url: Option<Sourced<String>>,
    /// The port that waits for the browser.
    pub callback_port: Option<Sourced<u16>>,
    /// What is asked for.
    pub scopes: Vec<String>,
    /// For a code that is pasted.
    pub manual_redirect_url: Option<Sourced<String>>,
}

/// `limits`: where a workflow says nothing.
#[derive(Clone, Debug, Default)]
pub struct LimitSettings {
    /// Agents at once.
    pub concurrency: Option<Sourced<usize>>,
    /// Commands at once.
    pub commands: Option<Sourced<usize>>,
    /// Agents of a run in all.
    pub agents: Option<Sourced<usize>>,
    /// Children of children.
    pub depth: Option<Sourced<u32>>,
    /// Requests in flight by provider.
    pub providers: IndexMap<String, usize>,
}

/// `compaction`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompactionSection {
    /// Whether a conversation shrinks by itself.
    pub auto: Option<bool>,
    /// Up to 1: a part of the window; above: tokens. Percent are parts already.
    pub threshold: Option<f64>,
    /// Messages that stay as they are.
    pub preserve_recent_messages: Option<usize>,
}

impl CompactionSection {
    /// What is not said is as it is without settings.
    pub fn settings(&self) -> CompactionSettings {
        let usual = CompactionSettings::default();
        let threshold = self.threshold.map(|said| match said {
            share if share <= 1.0 => Threshold::Share(share),
            tokens => Threshold::Tokens(tokens as u64),
        });
        CompactionSettings {
            auto: self.auto.unwrap_or(usual.auto),
            threshold: threshold.unwrap_or(usual.threshold),
            preserve_recent_messages: self.preserve_recent_messages.unwrap_or(usual.preserve_recent_messages),
        }
    }
}

/// Colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// For a dark terminal.
    Dark,
    /// For a light one.
    Light,
    /// None at all.
    None,
}

/// A command that prints the status line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusLine {
    /// The command line.
    pub command: String,
    /// Blanks in front.
    pub padding: u16,
}

/// All settings that count.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The model where none is named.
    pub model: Option<Sourced<String>>,
    /// More names for models.
    pub aliases: IndexMap<String, Sourced<String>>,
    /// Services beside the built-in ones.
    pub providers: IndexMap<String, Sourced<ProfileSettings>>,
    /// Mode and rules.
    pub permissions: PermissionSettings,
    /// Hooks, lowest first; `name` is the event, `node` one element of its list.
    pub hooks: Vec<RawItem>,
    /// A guard that fails warns instead of denying.
    pub hooks_fail_open: bool,
    /// MCP servers, each name once.
    pub mcp_servers: Vec<RawItem>,
    /// Plugins.
    pub plugins: PluginSettings,
    /// The wall round commands.
    pub sandbox: SandboxSection,
    /// Variables for claw and its commands.
    pub env: IndexMap<String, Sourced<String>>,
    /// For `claw login`.
    pub oauth: OauthSettings,
    /// A command that prints a key.
    pub api_key_helper: Option<Sourced<String>>,
    /// Colours.
    pub theme: Option<Sourced<Theme>>,
    /// A command that prints the status line.
    pub status_line: Option<Sourced<StatusLine>>,
    /// Agents by name, as written.
    pub agents: Vec<RawItem>,
    /// Ceilings.
    pub limits: LimitSettings,
    /// When a long conversation shrinks.
    pub compaction: CompactionSection,
    /// What the repository brings and nobody has decided on: it does not count.
    pub waiting: Vec<TrustItem>,
    /// What is wrong with values that only their meaning shows.
    pub problems: Vec<Diagnostic>,
}

impl Settings {
    /// Makes values of what counts.
    pub(super) fn new(merged: &Merged, places: &Places) -> Self {
        let mut problems = Vec::new();
        Self {
            model: text(merged, &["model"]),
            aliases: texts(merged, &["aliases"]),
            providers: providers(merged, &mut problems),
            permissions: PermissionSettings::new(merged, places),
            hooks: raw(merged, &["hooks"]),
            hooks_fail_open: merged
                .one(&["hooksFailOpen"])
                .is_some_and(|leaf| leaf.node.value == Value::Bool(true)),
            mcp_servers: raw(merged, &["mcpServers"]),
            plugins: plugins(merged, places),
            sandbox: SandboxSection::new(merged, places),
            env: merged
                .below(&["env"])
                .map(|leaf| (leaf.name().to_owned(), leaf.sourced(scalar(&leaf.node))))
                .collect(),
            oauth: oauth(merged),
            api_key_helper: text(merged, &["apiKeyHelper"]),
            theme: merged.one(&["theme"]).map(|leaf| leaf.sourced(theme(&leaf.node))),
            status_line: status_line(merged),
            agents: raw(merged, &["agents"]),
            limits: limits(merged),
            compaction: compaction(merged),
            waiting: merged.waiting.clone(),
            problems,
        }
    }

    /// The value of a variable for claw itself: the policy's, else the process's, else the settings'.
    pub fn variable(&self, name: &str, process: Option<String>) -> Option<String> {
        let said = self.env.get(name);
        let policy = said.filter(|value| value.origin.scope == Scope::Managed);
        let own = process.filter(|value| !value.trim().is_empty());
        policy.map(|value| value.value.clone()).or(own).or_else(|| said.map(|value| value.value.clone()))
    }
}

pub(super) fn text(merged: &Merged, path: &[&str]) -> Option<Sourced<String>> {
    let leaf = merged.one(path)?;
    leaf.node.text().map(|text| leaf.sourced(text.to_owned()))
}

fn texts(merged: &Merged, path: &[&str]) -> IndexMap<String, Sourced<String>> {
    let pair = |leaf: &Leaf| Some((leaf.name().to_owned(), leaf.sourced(leaf.node.text()?.to_owned())));
    merged.below(path).filter_map(pair).collect()
}

/// Elements of a list that does not add up.
pub(super) fn list(merged: &Merged, path: &[&str]) -> Vec<String> {
    let leaf = merged.one(path);
    let elements = leaf.iter().flat_map(|leaf| leaf.node.elements());
    elements.filter_map(|node| node.text().map(str::to_owned)).collect()
}

fn scalar(node: &Node) -> String {
    node.text().map_or_else(|| node.to_json().to_string(), str::to_owned)
}

fn number(merged: &Merged, path: &[&str]) -> Option<Sourced<u64>> {
    let leaf = merged.one(path)?;
    leaf.node.to_json().as_u64().map(|number| leaf.sourced(number))
}

fn sized<T: TryFrom<u64>>(said: Option<Sourced<u64>>) -> Option<Sourced<T>> {
    let said = said?;
    let value = T::try_from(said.value).ok()?;
    Some(Sourced { value, origin: said.origin })
}

fn raw(merged: &Merged, path: &[&str]) -> Vec<RawItem> {
    merged.below(path).map(item).collect()
}

fn item(leaf: &Leaf) -> RawItem {
    RawItem { name: leaf.name().to_owned(), origin: leaf.origin(), node: leaf.node.clone() }
}

/// A path as written: from the file's folder, or from the home.
pub(super) fn path_of(leaf: &Leaf, text: &str, places: &Places) -> PathBuf {
    if text == "~" {
        return places.home.clone();
    }
    if let Some(rest) = text.strip_prefix("~/") {
        return places.home.join(rest);
    }
    let folder = leaf.place.source.file.as_deref().and_then(std::path::Path::parent);
    folder.unwrap_or(&places.cwd).join(text)
}

/// A path that is a value of its own.
fn path(merged: &Merged, key: &[&str], places: &Places) -> Option<Sourced<PathBuf>> {
    let leaf = merged.one(key)?;
    leaf.node.text().map(|text| leaf.sourced(path_of(leaf, text, places)))
}

fn providers(merged: &Merged, problems: &mut Vec<Diagnostic>) -> IndexMap<String, Sourced<ProfileSettings>> {
    let mut said: IndexMap<String, (serde_json::Map<String, serde_json::Value>, &Leaf)> = IndexMap::new();
    for leaf in merged.below(&["providers"]) {
        let (Some(name), Some(key)) = (leaf.path.get(1), leaf.path.get(2)) else { continue };
        let (object, _) = said.entry(name.clone()).or_insert_with(|| (serde_json::Map::new(), leaf));
        match leaf.path.get(3) {
            None => drop(object.insert(key.clone(), leaf.node.to_json())),
            Some(inner) => {
                let below = object.entry(key.clone()).or_insert_with(|| serde_json::json!({}));
                if let Some(below) = below.as_object_mut() {
                    below.insert(inner.clone(), leaf.node.to_json());
                }
            }
        }
    }
    let mut all = IndexMap::new();
    for (name, (object, first)) in said {
        match serde_json::from_value(object.into()) {
            Ok(profile) => drop(all.insert(name, first.sourced(profile))),
            Err(error) => {
                let mut origin = first.origin();
                origin.key = format!("providers.{name}");
                problems.push(
                    Diagnostic::new(
                        Severity::Error,
                        origin,
                        format!("this provider cannot be used: {error}"),
                    )
                    .with_help("see `claw config reference`"),
                );
            }
        }
    }
    all
}

fn plugins(merged: &Merged, places: &Places) -> PluginSettings {
    let on = |leaf: &Leaf| leaf.sourced(leaf.node.value != Value::Bool(false));
    let mut enabled = IndexMap::new();
    for section in [&["plugins", "enabled"][..], &["enabledPlugins"]] {
        for leaf in merged.below(section) {
            enabled.insert(leaf.name().to_owned(), on(leaf));
        }
    }
    let external = merged.many(&["plugins", "externalDirectories"]).iter();
    PluginSettings {
        enabled,
        external_directories: external
            .filter_map(|leaf| Some(leaf.sourced(path_of(leaf, leaf.node.text()?, places))))
            .collect(),
        install_root: path(merged, &["plugins", "installRoot"], places),
        registry_path: path(merged, &["plugins", "registryPath"], places),
        bundled_root: path(merged, &["plugins", "bundledRoot"], places),
        strict_marketplaces: merged.one(&["strictKnownMarketplaces"]).map(item),
    }
}

fn oauth(merged: &Merged) -> OauthSettings {
    OauthSettings {
        client_id: text(merged, &["oauth", "clientId"]),
        authorize_url: text(merged, &["oauth", "authorizeUrl"]),
        token_url: text(merged, &["oauth", "tokenUrl"]),
        callback_port: sized(number(merged, &["oauth", "callbackPort"])),
        scopes: list(merged, &["oauth", "scopes"]),
        manual_redirect_url: text(merged, &["oauth", "manualRedirectUrl"]),
    }
}

fn theme(node: &Node) -> Theme {
    match node.text() {
        Some("none") => Theme::None,
        Some(name) if name.starts_with("light") => Theme::Light,
        Some(_) | None => Theme::Dark,
    }
}

fn status_line(merged: &Merged) -> Option<Sourced<StatusLine>> {
    if let Some(command) = text(merged, &["statusLine"]) {
        return Some(Sourced {
            value: StatusLine { command: command.value, padding: 0 },
            origin: command.origin,
        });
    }
    let command = text(merged, &["statusLine", "command"])?;
    let padding =
        sized(number(merged, &["statusLine", "padding"])).map_or(0, |said: Sourced<u16>| said.value);
    Some(Sourced { value: StatusLine { command: command.value, padding }, origin: command.origin })
}

fn limits(merged: &Merged) -> LimitSettings {
    let providers = merged.below(&["limits", "providers"]);
    LimitSettings {
        concurrency: sized(number(merged, &["limits", "concurrency"])),
        commands: sized(number(merged, &["limits", "commands"])),
        agents: sized(number(merged, &["limits", "agents"])),
        depth: sized(number(merged, &["limits", "depth"])),
        providers: providers
            .filter_map(|leaf| {
                let most = leaf.node.to_json().as_u64().and_then(|most| usize::try_from(most).ok())?;
                Some((leaf.name().to_owned(), most))
            })
            .collect(),
    }
}

fn compaction(merged: &Merged) -> CompactionSection {
    let threshold = merged.one(&["compaction", "threshold"]).and_then(|leaf| leaf.node.to_json().as_f64());
    CompactionSection {
        auto: merged.one(&["compaction", "auto"]).map(|leaf| leaf.node.value == Value::Bool(true)),
        threshold: threshold.map(|said| if said > 1.0 && said <= 100.0 { said / 100.0 } else { said }),
        preserve_recent_messages: sized(number(merged, &["compaction", "preserveRecentMessages"]))
            .map(|said: Sourced<usize>| said.value),
    }
}
