//! `kind = "workflow"`: a nested file.

use super::table::{Key, Ty};

pub(super) const KEYS: &[Key] = &[
    Key::new("file", Ty::Str, "required", "the file, relative to this one"),
    Key::new("with", Ty::Map(&Ty::Expr), "{}", "values for its inputs"),
];
