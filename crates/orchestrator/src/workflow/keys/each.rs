//! `each` and `loop`.

use super::table::{Key, Ty};

pub(super) const EACH: &[Key] = &[
    Key::new("items", Ty::Either(&[Ty::Expr, Ty::List(&Ty::Json)]), "", "source: an expression or a list"),
    Key::new("glob", Ty::OneOrList(&Ty::Tmpl), "", "source: files by pattern"),
    Key::new("exclude", Ty::OneOrList(&Ty::Tmpl), "[]", "glob: patterns left out"),
    Key::new("lines", Ty::Tmpl, "", "source: the lines of a file"),
    Key::new("jsonl", Ty::Tmpl, "", "source: the JSON documents of a file, one a line"),
    Key::new(
        "range",
        Ty::OneOrList(&Ty::Int(-1_000_000_000, 1_000_000_000)),
        "",
        "source: `n`, `[from, to]` or `[from, to, step]`, `to` not included",
    ),
    Key::new("as", Ty::Ident, "\"item\"", "the name of an item in expressions"),
    Key::new("key", Ty::Tmpl, "a digest of the item", "names the item; no two may be equal"),
    Key::new("max", Ty::Int(1, 1_000_000), "", "more items fail the node; required for a dynamic source"),
    Key::new("concurrency", Ty::Int(1, 1_000_000), "the run's", "items at once"),
    Key::new("min_success", Ty::Int(0, 1_000_000), "all", "so many must succeed"),
    Key::new(
        "fail",
        Ty::Enum(&["collect", "fast"], &["threshold"]),
        "\"collect\"",
        "what a failed item does to the rest",
    ),
    Key::new(
        "warm",
        Ty::Bool,
        "where cache reads have a price and the shared prefix is long",
        "hold the rest back until the first answer begins, 5 s at most",
    ),
];

pub(super) const LOOP: &[Key] = &[
    Key::new("max", Ty::Int(1, 1_000), "required", "at most so many iterations"),
    Key::new("until", Ty::Expr, "", "over this iteration; true ends it"),
    Key::new("carry", Ty::Idents(&Ty::Expr), "{}", "seen as `loop.<name>` by the next iteration"),
    Key::new(
        "stall",
        Ty::Int(1, 1_000),
        "",
        "so many iterations with equal carried values end it as `max` does",
    ),
    Key::new("on_exhausted", Ty::Enum(&["fail", "continue"], &[]), "\"fail\"", "what `max` does"),
];
