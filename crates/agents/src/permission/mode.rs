//! Modes: a reach and a way of asking, with the names that people and other programs use for them.

use claw_kernel::near::nearest;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

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

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
            Self::DangerFullAccess => "danger-full-access",
        })
    }
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
    /// Everything is allowed.
    pub const DANGER_FULL_ACCESS: Self =
        Self { reach: Reach::DangerFullAccess, asking: Asking::OutsideSandbox };

    /// The smaller reach and the stricter asking.
    pub fn intersect(self, other: Self) -> Self {
        Self { reach: self.reach.min(other.reach), asking: self.asking.max(other.asking) }
    }
}

/// `read-only`, `workspace-write`, `prompt`; a mixture is told by both values.
impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.reach, self.asking) {
            (reach, Asking::OutsideSandbox) => reach.fmt(f),
            (Reach::WorkspaceWrite, Asking::EveryEffect) => f.write_str("prompt"),
            (reach, Asking::EveryEffect) => write!(f, "{reach}, asking for every effect"),
            (Reach::WorkspaceWrite, Asking::Never) => f.write_str("dontAsk"),
            (reach, Asking::Never) => write!(f, "{reach}, asking never"),
        }
    }
}

/// A name that is no mode. Never taken for a looser one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown permission mode `{name}`{}; modes are {}", near.as_deref().map(|n| format!(" (did you mean `{n}`?)")).unwrap_or_default(), SHOWN.join(", "))]
pub struct UnknownMode {
    /// As typed.
    pub name: String,
    /// The nearest name, where one is near.
    pub near: Option<String>,
}

/// The names that errors offer.
const SHOWN: [&str; 5] = ["read-only", "workspace-write", "danger-full-access", "plan", "prompt"];

const PROMPT: Permission = Permission { reach: Reach::WorkspaceWrite, asking: Asking::EveryEffect };
const DONT_ASK: Permission = Permission { reach: Reach::WorkspaceWrite, asking: Asking::Never };

/// All names, ours first.
const NAMES: [(&str, Permission); 13] = [
    ("read-only", Permission::READ_ONLY),
    ("workspace-write", Permission::WORKSPACE_WRITE),
    ("danger-full-access", Permission::DANGER_FULL_ACCESS),
    ("plan", Permission::READ_ONLY),
    ("prompt", PROMPT),
    ("default", Permission::WORKSPACE_WRITE),
    ("acceptEdits", Permission::WORKSPACE_WRITE),
    ("auto", Permission::WORKSPACE_WRITE),
    ("dontAsk", DONT_ASK),
    ("bypassPermissions", Permission::DANGER_FULL_ACCESS),
    ("dangerFullAccess", Permission::DANGER_FULL_ACCESS),
    ("allow", Permission::DANGER_FULL_ACCESS),
    ("workspaceWrite", Permission::WORKSPACE_WRITE),
];

fn folded(name: &str) -> String {
    name.trim().chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

impl FromStr for Permission {
    type Err = UnknownMode;

    /// In any case, with or without `-` and `_`.
    fn from_str(name: &str) -> Result<Self, UnknownMode> {
        let wanted = folded(name);
        NAMES.iter().find(|(known, _)| folded(known) == wanted).map(|(_, mode)| *mode).ok_or_else(|| {
            let near = nearest(name.trim(), NAMES.iter().map(|(known, _)| *known)).map(str::to_owned);
            UnknownMode { name: name.to_owned(), near }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_of_other_programs_are_understood() {
        for (name, reach, asking) in [
            ("acceptEdits", Reach::WorkspaceWrite, Asking::OutsideSandbox),
            ("default", Reach::WorkspaceWrite, Asking::OutsideSandbox),
            ("dontAsk", Reach::WorkspaceWrite, Asking::Never),
            ("bypassPermissions", Reach::DangerFullAccess, Asking::OutsideSandbox),
            ("plan", Reach::ReadOnly, Asking::OutsideSandbox),
            ("prompt", Reach::WorkspaceWrite, Asking::EveryEffect),
            ("Read_Only", Reach::ReadOnly, Asking::OutsideSandbox),
        ] {
            assert_eq!(name.parse(), Ok(Permission { reach, asking }), "{name}");
        }
    }

    #[test]
    fn a_misspelt_mode_is_an_error_that_names_the_near_one() {
        let error = "read-onyl".parse::<Permission>().unwrap_err();
        assert_eq!(error.near.as_deref(), Some("read-only"));
        assert!(error.to_string().contains("did you mean `read-only`?"), "{error}");
        assert!("".parse::<Permission>().is_err());
    }

    #[test]
    fn a_mode_is_shown_by_a_name_that_parses_back() {
        for (_, mode) in NAMES {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
    }

    fn any_mode() -> impl Strategy<Value = Permission> {
        (0..3usize, 0..3usize).prop_map(|(r, a)| Permission {
            reach: [Reach::ReadOnly, Reach::WorkspaceWrite, Reach::DangerFullAccess][r],
            asking: [Asking::OutsideSandbox, Asking::EveryEffect, Asking::Never][a],
        })
    }

    proptest! {
        #[test]
        fn an_intersection_is_never_wider_than_either_side(a in any_mode(), b in any_mode()) {
            let both = a.intersect(b);
            prop_assert!(both.reach <= a.reach && both.reach <= b.reach);
            prop_assert!(both.asking >= a.asking && both.asking >= b.asking);
            prop_assert_eq!(both, b.intersect(a));
        }
    }
}
