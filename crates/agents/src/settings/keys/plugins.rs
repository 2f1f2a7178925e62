//! `plugins`.

use super::table::{Key, Ty, Who};
use crate::trust::ItemKind;

const PLUGIN: Who = Who::Trusted(ItemKind::Plugin);

/// Keys of `plugins`.
pub(super) const PLUGINS: &[Key] = &[
    Key::new("enabled", Ty::Map(&Ty::Bool), PLUGIN, "as `enabledPlugins`"),
    Key::new("externalDirectories", Ty::List(&Ty::Path), PLUGIN, "each folder in one is a plugin").adds_up(),
    Key::new("installRoot", Ty::Path, PLUGIN, "where plugins are installed"),
    Key::new("registryPath", Ty::Path, PLUGIN, "the list of installed ones"),
    Key::new("bundledRoot", Ty::Path, PLUGIN, "those that come with claw"),
];
