//! `kind = "merge"`: several outputs become one.

use super::table::{Key, Ty};

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "from",
        Ty::List(&Ty::Expr),
        "required",
        "the inputs; one that gives a list is spread. git: names of nodes with `isolation`",
    ),
    Key::new(
        "strategy",
        Ty::Enum(&["list", "concat", "dedupe", "agent", "git"], &["object", "vote", "top"]),
        "required",
        "how they become one",
    ),
    Key::new("key", Ty::Tmpl, "", "dedupe: what makes two items the same, over `item`"),
    Key::new("prefer", Ty::Expr, "", "dedupe: the item with the largest value stays, over `item`"),
    Key::new(
        "window",
        Ty::Size,
        "\"64KiB\"",
        "agent: bytes of input for one agent; more is merged in a tree",
    ),
    Key::new("write", Ty::Tmpl, "", "a path to which the output is written as well"),
    Key::new("apply", Ty::Enum(&["patch", "squash", "merge"], &[]), "\"patch\"", "git: how the work lands"),
    Key::new("verify", Ty::List(&Ty::Tmpl), "", "git: a command that must succeed in the merged tree"),
    Key::new(
        "on_conflict",
        Ty::Enum(&["keep", "fail", "gate"], &[]),
        "\"keep\"",
        "git: what a conflict does",
    ),
];
