//! `kind = "set"`: an expression.

use super::table::{Key, Ty};

pub(super) const KEYS: &[Key] = &[Key::new("value", Ty::Expr, "required", "its output")];
