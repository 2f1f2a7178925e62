//! What an agent may do: reach and asking.

use serde::{Deserialize, Serialize};

/// How far effects may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// Nothing is changed.
    ReadOnly,
    /// The workspace is changed, inside the sandbox.
    WorkspaceWrite,
    /// Everything.
    DangerFullAccess,
}

/// When somebody is asked. Ordered from loose to strict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Asking {
    /// Only for what leaves the sandbox.
    OutsideSandbox,
    /// For every effect.
    EveryEffect,
    /// Never: what would be asked is denied.
    Never,
}

/// A mode is two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Permission {
    /// How far.
    pub reach: Reach,
    /// When asked.
    pub asking: Asking,
}

impl Permission {
    /// The default mode.
    pub const WORKSPACE_WRITE: Self = Self { reach: Reach::WorkspaceWrite, asking: Asking::OutsideSandbox };
    /// Nothing is changed.
    pub const READ_ONLY: Self = Self { reach: Reach::ReadOnly, asking: Asking::OutsideSandbox };

    /// The smaller reach and the stricter asking.
    pub fn intersect(self, other: Self) -> Self {
        Self { reach: self.reach.min(other.reach), asking: self.asking.max(other.asking) }
    }
}
