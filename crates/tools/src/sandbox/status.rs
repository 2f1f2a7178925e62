//! What of a policy the running system holds: for reports, `doctor` and the data of `bash`.

use serde::Serialize;

/// The kind of sandbox in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WallKind {
    /// Namespaces of each command's own, with a read-only system, masks and no network; Landlock and a filter of system
    /// calls beside them.
    Full,
    /// Writes and TCP are held by Landlock.
    WriteWall,
    /// Nothing is held.
    None,
}

/// The network of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkState {
    /// None.
    Off,
    /// Some hosts.
    AllowList,
    /// Free.
    On,
}

/// What commands write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilesystemState {
    /// Everything.
    Off,
    /// Nothing but a private temporary folder.
    ReadOnly,
    /// The workspace.
    WorkspaceOnly,
    /// The workspace and more folders.
    AllowList,
    /// A copy of the workspace that is thrown away.
    PrivateCopy,
}

/// What holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxStatus {
    /// The kind.
    pub kind: WallKind,
    /// Whether it is wanted.
    pub enabled: bool,
    /// Whether this system has the full one.
    pub supported: bool,
    /// Whether commands are held.
    pub active: bool,
    /// Namespaces of each command's own.
    pub namespaces: Vec<&'static str>,
    /// The network of commands, as it is wanted.
    pub network: NetworkState,
    /// What commands write.
    pub filesystem: FilesystemState,
    /// Whether claw runs in a container.
    pub in_container: bool,
    /// Version of Landlock; 0 for none.
    pub abi: u32,
    /// Whether the network is held off as it is wanted: by the write wall, TCP only.
    pub network_held: bool,
    /// Whether governing files that exist are read-only to commands.
    pub governors_held: bool,
    /// Why it is less than it could be.
    pub reason: Option<String>,
}

impl SandboxStatus {
    /// Nothing holds, for a reason.
    pub fn none(reason: impl Into<String>) -> Self {
        Self {
            kind: WallKind::None,
            enabled: false,
            supported: false,
            active: false,
            namespaces: Vec::new(),
            network: NetworkState::On,
            filesystem: FilesystemState::Off,
            in_container: false,
            abi: 0,
            network_held: false,
            governors_held: false,
            reason: Some(reason.into()),
        }
    }

    /// Whether the wall stands.
    pub fn is_walled(&self) -> bool {
        match self.kind {
            WallKind::Full | WallKind::WriteWall => true,
            WallKind::None => false,
        }
    }
}
