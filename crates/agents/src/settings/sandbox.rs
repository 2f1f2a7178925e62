//! `sandbox`, as written: the room of the sandbox gives it its meaning.

use super::merged::Merged;
use super::node::Value;
use super::places::Places;
use super::typed::{list, path_of};
use std::path::PathBuf;

/// What commands may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filesystem {
    /// Everything.
    Off,
    /// The workspace.
    WorkspaceOnly,
    /// The workspace and the folders that are listed.
    AllowList,
}

/// Whether commands reach the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// They do not.
    Off,
    /// These hosts, through the proxy.
    AllowList(Vec<String>),
    /// They do.
    On,
}

/// `sandbox`; `None`: nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxSection {
    /// Whether there is a wall.
    pub enabled: Option<bool>,
    /// What commands may write.
    pub filesystem: Option<Filesystem>,
    /// Folders that commands may write as well.
    pub allowed_mounts: Vec<PathBuf>,
    /// Whether commands reach the network.
    pub network: Option<Network>,
    /// Cache folders of build tools.
    pub caches: Vec<PathBuf>,
    /// Variables of the user that commands see.
    pub env: Vec<String>,
    /// Which wall; `None` = the best there is.
    pub kind: Option<String>,
}

impl SandboxSection {
    pub(super) fn new(merged: &Merged, places: &Places) -> Self {
        let word = |name: &str| merged.one(&["sandbox", name]).and_then(|leaf| leaf.node.text());
        let folders = |name: &str| -> Vec<PathBuf> {
            let leaf = merged.one(&["sandbox", name]);
            let paths =
                leaf.iter().flat_map(|leaf| leaf.node.elements().iter().map(move |node| (leaf, node)));
            paths.filter_map(|(leaf, node)| Some(path_of(leaf, node.text()?, places))).collect()
        };
        Self {
            enabled: merged.one(&["sandbox", "enabled"]).map(|leaf| leaf.node.value == Value::Bool(true)),
            filesystem: match word("filesystem") {
                Some("off") => Some(Filesystem::Off),
                Some("workspace-only") => Some(Filesystem::WorkspaceOnly),
                Some("allow-list") => Some(Filesystem::AllowList),
                Some(_) | None => None,
            },
            allowed_mounts: folders("allowedMounts"),
            network: network(merged, word("network")),
            caches: folders("caches"),
            env: list(merged, &["sandbox", "env"]),
            kind: word("kind").filter(|kind| *kind != "auto").map(str::to_owned),
        }
    }
}

fn network(merged: &Merged, word: Option<&str>) -> Option<Network> {
    let mode = merged.one(&["sandbox", "network", "mode"]).and_then(|leaf| leaf.node.text());
    let mut hosts = list(merged, &["sandbox", "allowedHosts"]);
    hosts.extend(list(merged, &["sandbox", "network", "hosts"]));
    hosts.extend(list(merged, &["sandbox", "network", "allow-list"]));
    hosts.extend(list(merged, &["sandbox", "network", "allowedDomains"]));
    match mode.or(word) {
        Some("off") => Some(Network::Off),
        Some("on") => Some(Network::On),
        Some(_) => Some(Network::AllowList(hosts)),
        None if hosts.is_empty() => None,
        None => Some(Network::AllowList(hosts)),
    }
}
