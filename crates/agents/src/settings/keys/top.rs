//! The top level.

use super::permissions::PERMISSIONS;
use super::plugins::PLUGINS;
use super::providers::PROVIDER;
use super::sandbox::SANDBOX;
use super::table::{Key, Ty, Who};
use crate::trust::ItemKind;

const THEMES: &[&str] =
    &["dark", "light", "none", "dark-daltonized", "light-daltonized", "dark-ansi", "light-ansi"];

const STATUS_LINE: &[Key] = &[
    Key::new("type", Ty::Word(&["command"]), Who::Anyone, "`command`"),
    Key::new("command", Ty::Text, Who::Trusted(ItemKind::StatusLine), "prints the line"),
    Key::new("padding", Ty::Int(0, 100), Who::Anyone, "blanks in front"),
];

const LIMIT: Who = Who::Trusted(ItemKind::Limit);

const LIMITS: &[Key] = &[
    Key::new("concurrency", Ty::Int(1, 100_000), LIMIT, "agents at once, where a workflow says nothing"),
    Key::new("commands", Ty::Int(1, 100_000), LIMIT, "commands at once, where a workflow says nothing"),
    Key::new("agents", Ty::Int(1, 10_000_000), LIMIT, "agents of a run in all, where it says nothing"),
    Key::new("depth", Ty::Int(0, 100), LIMIT, "children of children, where a workflow says nothing"),
    Key::new("providers", Ty::Map(&Ty::Int(1, 100_000)), LIMIT, "requests in flight by provider"),
];

const COMPACTION: &[Key] = &[
    Key::new("auto", Ty::Bool, Who::Anyone, "whether a conversation shrinks by itself"),
    Key::new(
        "threshold",
        Ty::Float(0.0, 1e9),
        Who::Anyone,
        "part of the window (0.8), percent (80), or tokens (150000)",
    ),
    Key::new("preserveRecentMessages", Ty::Int(0, 1000), Who::Anyone, "messages that stay as they are"),
];

const OAUTH: &[Key] = &[
    Key::new("clientId", Ty::Text, Who::User, "id of the client"),
    Key::new("authorizeUrl", Ty::Text, Who::User, "where the browser goes"),
    Key::new("tokenUrl", Ty::Text, Who::User, "where tokens come from"),
    Key::new("callbackPort", Ty::Int(1, 65535), Who::User, "the port that waits for the browser"),
    Key::new("scopes", Ty::List(&Ty::Text), Who::User, "what is asked for"),
    Key::new("manualRedirectUrl", Ty::Text, Who::User, "for a code that is pasted"),
];

/// Keys of the top level.
pub const TOP: &[Key] = &[
    Key::new("model", Ty::Text, Who::Anyone, "the model where none is named"),
    Key::new("aliases", Ty::Map(&Ty::Text), Who::Anyone, "more names for models"),
    Key::new("providers", Ty::Map(&Ty::Table(PROVIDER)), Who::User, "services beside the built-in ones"),
    Key::new("permissions", Ty::Table(PERMISSIONS), Who::Anyone, "mode and rules"),
    Key::new("hooks", Ty::Map(&Ty::List(&Ty::Any)), Who::Trusted(ItemKind::Hook), "commands at events")
        .adds_up(),
    Key::new("hooksFailOpen", Ty::Bool, Who::User, "a guard that fails warns instead of denying"),
    Key::new("mcpServers", Ty::Map(&Ty::Server), Who::Trusted(ItemKind::Server), "MCP servers by name"),
    Key::new("plugins", Ty::Table(PLUGINS), Who::Anyone, "where plugins lie"),
    Key::new(
        "enabledPlugins",
        Ty::Map(&Ty::Either(&[Ty::Bool, Ty::List(&Ty::Text)])),
        Who::Trusted(ItemKind::Plugin),
        "plugins by id: on or off",
    ),
    Key::new("sandbox", Ty::Table(SANDBOX), Who::Anyone, "the wall round commands"),
    Key::new(
        "env",
        Ty::Map(&Ty::Scalar),
        Who::Trusted(ItemKind::Variable),
        "variables for claw and its commands",
    ),
    Key::new("oauth", Ty::Table(OAUTH), Who::User, "for `claw login`"),
    Key::new(
        "apiKeyHelper",
        Ty::Text,
        Who::Trusted(ItemKind::KeyHelper),
        "a command that prints a key; not run by this version",
    ),
    Key::new("theme", Ty::Word(THEMES), Who::Anyone, "colours"),
    Key::new(
        "statusLine",
        Ty::Either(&[Ty::Text, Ty::Table(STATUS_LINE)]),
        Who::Trusted(ItemKind::StatusLine),
        "a command that prints the status line",
    ),
    Key::new("agents", Ty::Map(&Ty::Any), Who::Trusted(ItemKind::Agent), "agents by name"),
    Key::new("limits", Ty::Table(LIMITS), Who::Anyone, "ceilings"),
    Key::new("compaction", Ty::Table(COMPACTION), Who::Anyone, "when a long conversation shrinks"),
    Key::new("telemetry", Ty::Either(&[Ty::Bool, Ty::Any]), Who::User, "claw sends none; kept for plugins"),
    Key::new(
        "allowManagedPermissionRulesOnly",
        Ty::Bool,
        Who::Managed,
        "rules of other files do not count, except denials",
    ),
    Key::new("allowManagedHooksOnly", Ty::Bool, Who::Managed, "hooks of other files do not count"),
    Key::new("strictKnownMarketplaces", Ty::Any, Who::Managed, "the only sources of plugins"),
];
