//! `sandbox`: from what is written to what the room of the sandbox takes.

use super::diagnostic::{Diagnostic, Severity};
use super::leaf::Leaf;
use super::merged::Merged;
use super::node::{Node, Value};
use super::places::Places;
use super::typed::{list, path_of};
use claw_tools::sandbox::{FilesystemSetting, HostRule, KindSetting, NetworkSetting, SandboxSettings};

/// Where hosts of the allow-list stand.
const HOSTS: [&[&str]; 4] = [
    &["sandbox", "allowedHosts"],
    &["sandbox", "network", "hosts"],
    &["sandbox", "network", "allow-list"],
    &["sandbox", "network", "allowedDomains"],
];

/// What is not said is as it is without settings.
pub(super) fn sandbox(merged: &Merged, places: &Places, problems: &mut Vec<Diagnostic>) -> SandboxSettings {
    let usual = SandboxSettings::default();
    let word = |name: &str| merged.one(&["sandbox", name]).and_then(|leaf| leaf.node.text());
    let folders = |name: &str| {
        merged.one(&["sandbox", name]).map(|leaf| -> Vec<String> {
            let texts = leaf.node.elements().iter().filter_map(Node::text);
            texts.map(|text| path_of(leaf, text, places).display().to_string()).collect()
        })
    };
    let enabled = merged.one(&["sandbox", "enabled"]).map(|leaf| leaf.node.value == Value::Bool(true));
    SandboxSettings {
        enabled: enabled.unwrap_or(usual.enabled),
        kind: match word("kind") {
            Some("write-wall") => KindSetting::WriteWall,
            Some("none") => KindSetting::None,
            Some(_) | None => KindSetting::Full,
        },
        filesystem: match word("filesystem") {
            Some("off") => FilesystemSetting::Off,
            Some("allow-list") => FilesystemSetting::AllowList,
            Some(_) | None => FilesystemSetting::WorkspaceOnly,
        },
        allowed_mounts: folders("allowedMounts").unwrap_or_default(),
        network: network(merged, word("network"), problems),
        caches: folders("caches").unwrap_or(usual.caches),
        env: list(merged, &["sandbox", "env"]),
    }
}

/// Hosts alone mean the allow-list.
fn network(merged: &Merged, word: Option<&str>, problems: &mut Vec<Diagnostic>) -> NetworkSetting {
    let mode = merged.one(&["sandbox", "network", "mode"]).and_then(|leaf| leaf.node.text());
    let mut hosts = Vec::new();
    for leaf in HOSTS.iter().filter_map(|path| merged.one(path)) {
        hosts.extend(leaf.node.elements().iter().filter_map(|node| host(leaf, node, problems)));
    }
    match mode.or(word) {
        Some("off") => NetworkSetting::Off,
        Some("on") => NetworkSetting::On,
        Some(_) => NetworkSetting::AllowList(hosts),
        None if hosts.is_empty() => NetworkSetting::Off,
        None => NetworkSetting::AllowList(hosts),
    }
}

fn host(leaf: &Leaf, node: &Node, problems: &mut Vec<Diagnostic>) -> Option<HostRule> {
    match HostRule::try_from(node.text()?.to_owned()) {
        Ok(host) => Some(host),
        Err(error) => {
            let origin = node.place.origin(&leaf.key());
            problems.push(Diagnostic::new(Severity::Error, origin, error.to_string()));
            None
        }
    }
}
