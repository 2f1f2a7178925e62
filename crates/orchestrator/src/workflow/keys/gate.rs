//! `kind = "gate"`: a question to a person.

use super::table::{Key, Ty};

pub(super) const KEYS: &[Key] = &[
    Key::new("message", Ty::Tmpl, "required", "the question"),
    Key::new("show", Ty::List(&Ty::Expr), "[]", "values shown with it"),
    Key::new("choices", Ty::List(&Ty::Str), "[\"approve\", \"reject\"]", "the answers"),
    Key::new("default", Ty::Str, "", "the answer where nobody can be asked"),
    Key::new("on_timeout", Ty::Str, "\"pause\"", "`pause` or an answer"),
];
