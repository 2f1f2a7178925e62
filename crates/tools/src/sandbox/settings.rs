//! The settings of the sandbox, as a user writes them.

use super::hosts::{HostRule, Hosts};
use super::policy::Network;
use serde::{Deserialize, Serialize};

/// `sandbox` in the settings.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxSettings {
    /// Whether commands are held at all; if not, each one is asked for.
    pub enabled: bool,
    /// The most that is used of it.
    pub kind: KindSetting,
    /// What commands may write.
    pub filesystem: FilesystemSetting,
    /// Folders beside the workspace that commands may write (`allow-list`), or that are not masked (always); `~` is the
    /// home folder, other relative paths start at the workspace.
    #[serde(alias = "allowedMounts")]
    pub allowed_mounts: Vec<String>,
    /// The network of commands.
    pub network: NetworkSetting,
    /// Cache folders of build tools that commands write without a trace; `~` is the home folder.
    pub caches: Vec<String>,
    /// More variables of claw's environment that commands get, by name. Names of keys are left out all the same.
    pub env: Vec<String>,
}

/// The kind of sandbox that is used at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KindSetting {
    /// The best that the system has.
    #[default]
    Full,
    /// The write wall at most.
    WriteWall,
    /// None.
    None,
}

/// What commands may write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilesystemSetting {
    /// Everything: no sandbox, so each command is asked for.
    Off,
    /// The workspace.
    #[default]
    WorkspaceOnly,
    /// The workspace and `allowed_mounts`.
    AllowList,
}

/// The network of commands: `"off"`, `"on"`, or `{"allow-list": ["example.org"]}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkSetting {
    /// None.
    #[default]
    Off,
    /// These hosts and what lies below them, through a proxy of claw's.
    #[serde(alias = "allowList", alias = "allow_list")]
    AllowList(Vec<HostRule>),
    /// Free.
    On,
}

impl NetworkSetting {
    /// As a policy has it.
    pub fn network(&self) -> Network {
        match self {
            Self::Off => Network::Off,
            Self::AllowList(hosts) => Network::AllowList(Hosts::new(hosts.clone())),
            Self::On => Network::On,
        }
    }
}

/// Caches that most build tools use, below the home folder.
pub const CACHES: [&str; 10] = [
    "~/.cache",
    "~/.cargo",
    "~/.gradle",
    "~/.ivy2",
    "~/.m2",
    "~/.npm",
    "~/.nuget",
    "~/.pnpm-store",
    "~/.yarn",
    "~/go/pkg",
];

impl Default for SandboxSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            kind: KindSetting::default(),
            filesystem: FilesystemSetting::default(),
            allowed_mounts: Vec::new(),
            network: NetworkSetting::default(),
            caches: CACHES.map(str::to_owned).to_vec(),
            env: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_is_a_word_or_a_list_of_hosts_and_nothing_else() {
        let read = |text: &str| serde_json::from_str::<SandboxSettings>(text);
        assert_eq!(read("{}").unwrap(), SandboxSettings::default());
        assert_eq!(read(r#"{"network":"on"}"#).unwrap().network, NetworkSetting::On);
        let listed = read(r#"{"network":{"allow-list":["example.org"]},"filesystem":"allow-list"}"#).unwrap();
        assert!(
            matches!(listed.network.network(), Network::AllowList(hosts) if hosts.allow("a.example.org"))
        );
        for wrong in [r#"{"network":"onn"}"#, r#"{"networks":"on"}"#, r#"{"network":{"allow-list":["*"]}}"#] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
