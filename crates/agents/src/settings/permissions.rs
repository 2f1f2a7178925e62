//! `permissions`: the mode, the ceiling over it, rules with their places.

use super::gate::mode_of;
use super::leaf::Leaf;
use super::merged::Merged;
use super::origin::{Scope, Sourced};
use super::places::Places;
use super::typed::path_of;
use crate::permission::{Asking, Permission, Reach};
use std::path::PathBuf;

/// `permissions`.
#[derive(Clone, Debug, Default)]
pub struct PermissionSettings {
    /// The mode where neither flag nor variable names one.
    pub default_mode: Option<Sourced<Permission>>,
    /// No mode goes past it, whoever asks.
    pub ceiling: Option<Sourced<Permission>>,
    /// Rules that let a call run.
    pub allow: Vec<Sourced<String>>,
    /// Rules that deny it, whoever allows it.
    pub deny: Vec<Sourced<String>>,
    /// Rules that ask in every mode.
    pub ask: Vec<Sourced<String>>,
    /// Folders beside the workspace that agents may use.
    pub additional_directories: Vec<Sourced<PathBuf>>,
}

const MODE: &[&str] = &["permissions", "defaultMode"];
const NO_BYPASS: &[&str] = &["permissions", "disableBypassPermissionsMode"];

impl PermissionSettings {
    pub(super) fn new(merged: &Merged, places: &Places) -> Self {
        let rules = |name: &str| {
            let rule = |leaf: &Leaf| leaf.node.text().map(|text| leaf.sourced(text.to_owned()));
            merged.many(&["permissions", name]).iter().filter_map(rule).collect()
        };
        let said = merged.one(MODE).and_then(|leaf| mode_of(leaf).map(|mode| leaf.sourced(mode)));
        let folders = merged.many(&["permissions", "additionalDirectories"]).iter();
        Self {
            ceiling: ceiling(merged, said.as_ref()),
            default_mode: said,
            allow: rules("allow"),
            deny: rules("deny"),
            ask: rules("ask"),
            additional_directories: folders
                .filter_map(|leaf| Some(leaf.sourced(path_of(leaf, leaf.node.text()?, places))))
                .collect(),
        }
    }

    /// A mode as far as the ceiling lets it.
    pub fn below_ceiling(&self, mode: Permission) -> Permission {
        self.ceiling.as_ref().map_or(mode, |ceiling| mode.intersect(ceiling.value))
    }
}

/// The policy's mode, and below full access where anybody switched that off.
fn ceiling(merged: &Merged, said: Option<&Sourced<Permission>>) -> Option<Sourced<Permission>> {
    let policy = said.filter(|mode| mode.origin.scope == Scope::Managed).cloned();
    let no_bypass = merged.one(NO_BYPASS).map(|leaf| {
        leaf.sourced(Permission { reach: Reach::WorkspaceWrite, asking: Asking::OutsideSandbox })
    });
    match (policy, no_bypass) {
        (Some(policy), Some(no_bypass)) => {
            Some(Sourced { value: policy.value.intersect(no_bypass.value), origin: policy.origin })
        }
        (policy, no_bypass) => policy.or(no_bypass),
    }
}
