//! What of a policy the running system holds: for reports, `doctor` and the data of `bash`.

use serde::Serialize;

/// The kind of sandbox in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WallKind {
    /// Writes and TCP are held by Landlock.
    WriteWall,
    /// Nothing is held.
    None,
}

/// What holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SandboxStatus {
    /// The kind.
    pub kind: WallKind,
    /// Version of Landlock; 0 for none.
    pub abi: u32,
    /// Whether TCP is held off.
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
            abi: 0,
            network_held: false,
            governors_held: false,
            reason: Some(reason.into()),
        }
    }

    /// Whether the wall stands.
    pub fn is_walled(&self) -> bool {
        match self.kind {
            WallKind::WriteWall => true,
            WallKind::None => false,
        }
    }
}
