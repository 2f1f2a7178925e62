//! `kind = "group"`: a graph inside a node.

use super::table::{Key, Ty};

pub(super) const KEYS: &[Key] = &[
    Key::new("body", Ty::Nodes, "required", "its nodes"),
    Key::new("result", Ty::Expr, "outputs of the body", "its output"),
];
