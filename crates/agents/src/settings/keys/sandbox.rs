//! `sandbox`.

use super::table::{Key, Ty, Who};
use crate::trust::ItemKind;

const SAND: Who = Who::Trusted(ItemKind::Sandbox);

const NETWORK: &[Key] = &[
    Key::new("mode", Ty::Word(&["off", "allow-list", "on"]), SAND, "off, through the proxy, on"),
    Key::new("hosts", Ty::List(&Ty::Text), SAND, "hosts of the allow-list"),
    Key::new("allow-list", Ty::List(&Ty::Text), SAND, "as `hosts`"),
    Key::new("allowedDomains", Ty::List(&Ty::Text), SAND, "as `hosts`"),
    Key::new(
        "deniedDomains",
        Ty::List(&Ty::Text),
        Who::Anyone,
        "not used by claw: what is not listed is denied",
    ),
    Key::new("allowUnixSockets", Ty::Any, Who::Anyone, "not used by claw"),
    Key::new("allowAllUnixSockets", Ty::Bool, Who::Anyone, "not used by claw"),
    Key::new("allowLocalBinding", Ty::Bool, Who::Anyone, "not used by claw"),
    Key::new("httpProxyPort", Ty::Int(0, 65535), Who::Anyone, "not used by claw: it has a proxy of its own"),
    Key::new("socksProxyPort", Ty::Int(0, 65535), Who::Anyone, "not used by claw"),
];

/// Keys of `sandbox`.
pub(super) const SANDBOX: &[Key] = &[
    Key::new("enabled", Ty::Bool, SAND, "whether there is a wall"),
    Key::new(
        "filesystem",
        Ty::Either(&[Ty::Word(&["off", "workspace-only", "allow-list"]), Ty::Any]),
        SAND,
        "what commands may write",
    ),
    Key::new("allowedMounts", Ty::List(&Ty::Path), SAND, "folders that commands may write as well"),
    Key::new(
        "network",
        Ty::Either(&[Ty::Word(&["off", "allow-list", "on"]), Ty::Table(NETWORK)]),
        SAND,
        "whether commands reach the network",
    ),
    Key::new("allowedHosts", Ty::List(&Ty::Text), SAND, "hosts of the allow-list"),
    Key::new("caches", Ty::List(&Ty::Path), SAND, "cache folders of build tools"),
    Key::new("env", Ty::List(&Ty::Text), SAND, "variables of yours that commands see"),
    Key::new("kind", Ty::Word(&["auto", "full", "write-wall", "none"]), SAND, "which wall"),
    Key::new(
        "autoAllowBashIfSandboxed",
        Ty::Bool,
        Who::Anyone,
        "not used by claw: what the wall holds is not asked",
    ),
    Key::new("allowUnsandboxedCommands", Ty::Bool, Who::Anyone, "not used by claw: it is always asked"),
    Key::new("excludedCommands", Ty::List(&Ty::Text), Who::Anyone, "not used by claw"),
    Key::new("enableWeakerNestedSandbox", Ty::Bool, Who::Anyone, "not used by claw"),
];
