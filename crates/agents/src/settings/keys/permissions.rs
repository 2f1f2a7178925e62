//! `permissions`.

use super::table::{Key, Ty, Who};
use crate::trust::ItemKind;

/// Keys of `permissions`.
pub(super) const PERMISSIONS: &[Key] = &[
    Key::new(
        "defaultMode",
        Ty::Mode,
        Who::Anyone,
        "the mode; a repository's only narrows it before you trust it, and never gives full access",
    ),
    Key::new("allow", Ty::List(&Ty::Text), Who::Trusted(ItemKind::AllowRule), "rules that let a call run")
        .adds_up(),
    Key::new("deny", Ty::List(&Ty::Text), Who::Anyone, "rules that deny it, whoever allows it").adds_up(),
    Key::new("ask", Ty::List(&Ty::Text), Who::Anyone, "rules that ask in every mode").adds_up(),
    Key::new(
        "additionalDirectories",
        Ty::List(&Ty::Path),
        Who::Trusted(ItemKind::Folder),
        "folders beside the workspace that agents may use",
    )
    .adds_up(),
    Key::new(
        "disableBypassPermissionsMode",
        Ty::Word(&["disable"]),
        Who::Anyone,
        "`disable`: no full access, by no flag",
    ),
];
