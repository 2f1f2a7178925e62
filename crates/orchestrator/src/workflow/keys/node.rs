//! Keys that every node has.

use super::each::{EACH, LOOP};
use super::table::{Key, Ty};

const CLASSES: Ty = Ty::Enum(
    &[
        "transient",
        "rate_limit",
        "overloaded",
        "timeout",
        "schema",
        "tool",
        "exit",
        "artifact",
        "conflict",
        "panic",
        "expr",
    ],
    &[],
);

const RETRY: &[Key] = &[
    Key::new("attempts", Ty::Int(1, 100), "3", "attempts in all"),
    Key::new(
        "on",
        Ty::List(&CLASSES),
        "[\"transient\", \"overloaded\", \"rate_limit\", \"timeout\"]; commands: []",
        "classes of failure that are tried again",
    ),
    Key::new("backoff", Ty::Dur, "\"2s\"", "first wait"),
    Key::new("factor", Ty::Float(1.0), "2.0", "each further wait is so many times longer"),
    Key::new("max", Ty::Dur, "\"60s\"", "longest wait"),
    Key::new("jitter", Ty::Bool, "true", "spread the waits"),
];

const ARTIFACT: &[Key] = &[
    Key::new("path", Ty::Tmpl, "required", "relative to the workspace"),
    Key::new("required", Ty::Bool, "false", "missing fails the node"),
    Key::new("max_size", Ty::Size, "", "larger fails the node"),
];

pub(super) const BUDGET: &[Key] = &[
    Key::new("usd", Ty::Float(0.0), "", "ceiling in dollars"),
    Key::new("tokens", Ty::Int(1, i64::MAX), "", "ceiling of tokens"),
    Key::new("output_tokens", Ty::Int(1, i64::MAX), "", "ceiling of output tokens"),
    Key::new("wall", Ty::Dur, "", "ceiling of time"),
    Key::new("turns", Ty::Int(1, i64::MAX), "", "ceiling of turns"),
    Key::new("warn", Ty::Float(0.0), "0.8", "a word at this part of a ceiling"),
    Key::new("reserve", Ty::Float(0.0), "0.05", "kept for final nodes"),
    Key::new("unknown_price", Ty::Enum(&["tokens_only"], &[]), "", "what a model without a price does"),
];

const COMMON: &[Key] = &[
    Key::new(
        "kind",
        Ty::Enum(&["agent", "command", "group", "gate", "merge", "set", "workflow"], &[]),
        "\"agent\"",
        "what the node does",
    ),
    Key::new("needs", Ty::List(&Ty::NodeName), "[]", "order and data"),
    Key::new("after", Ty::List(&Ty::NodeName), "[]", "order only; any final state will do"),
    Key::new("when", Ty::Expr, "true", "false: skipped, its output null"),
    Key::new(
        "join",
        Ty::Enum(&["all_succeeded", "all_done", "none_failed"], &["any_succeeded"]),
        "\"all_succeeded\"",
        "what `needs` must have come to",
    ),
    Key::new("each", Ty::Table(EACH), "", "once for each item of a list"),
    Key::new("loop", Ty::Table(LOOP), "", "again until a condition holds; with `each`, inside each item"),
    Key::new("retry", Ty::Table(RETRY), "see below", "attempts after a failure"),
    Key::new(
        "timeout",
        Ty::Dur,
        "\"30m\"; gates: \"24h\"; groups: none",
        "of each attempt; of a gate, the wait; of a group or a nested file, one item with all iterations",
    ),
    Key::new("idle_timeout", Ty::Dur, "\"5m\"", "agents: so long without a byte and without a tool running"),
    Key::new("budget", Ty::Table(BUDGET), "", "ceilings of the node, inside those of the run"),
    Key::new(
        "on_error",
        Ty::Enum(&["fail", "continue"], &[]),
        "\"fail\"",
        "continue: output null, satisfies every join",
    ),
    Key::new(
        "on_crash",
        Ty::Enum(&["ask", "retry", "skip"], &[]),
        "\"ask\"",
        "a command or a git merge in doubt after a crash",
    ),
    Key::new("optional", Ty::Bool, "false", "its failure makes the run partial"),
    Key::new(
        "final",
        Ty::Bool,
        "false",
        "runs even after a budget or a failure stopped the rest; in a body: behind failures of its neighbours",
    ),
    Key::new(
        "lock",
        Ty::List(&Ty::Slug),
        "[]",
        "named mutexes, across runs of this project too; inside a group that holds some: only later names",
    ),
    Key::new(
        "isolation",
        Ty::Enum(&["none", "worktree"], &["copy"]),
        "\"none\"",
        "worktree: a folder and a branch of its own",
    ),
    Key::new(
        "base",
        Ty::Enum(&["parent_head", "parent_dirty"], &["rev", "node"]),
        "\"parent_head\"",
        "what a worktree starts from",
    ),
    Key::new(
        "shared_writes",
        Ty::Enum(&["allow", "forbid"], &[]),
        "\"allow\"",
        "forbid: writers side by side are an error",
    ),
    Key::new(
        "output",
        Ty::Output,
        "\"text\"",
        "`text`, `json`, a JSON Schema or `{ file = \"…\" }`; commands also `lines`, `lines0`, `jsonl`",
    ),
    Key::new("artifacts", Ty::List(&Ty::Table(ARTIFACT)), "[]", "files that it leaves"),
    Key::new("priority", Ty::Int(-1_000_000, 1_000_000), "0", "higher starts first"),
    Key::new("phase", Ty::Slug, "", "a word for the bars"),
    Key::new("label", Ty::Tmpl, "the address", "shown instead of the address"),
    Key::new("tags", Ty::List(&Ty::Str), "[]", "for people"),
    Key::new(
        "merge",
        Ty::Enum(&["none", "digest", "full"], &[]),
        "\"digest\" for terminal nodes",
        "what a parent session is told",
    ),
    Key::new("context", Ty::Json, "", "").later(),
    Key::new("cache", Ty::Json, "", "").later(),
];

/// Keys of every node.
pub fn common() -> &'static [Key] {
    COMMON
}
