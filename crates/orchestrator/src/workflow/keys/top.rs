//! The top level.

use super::agent::PERMISSION;
use super::node::BUDGET;
use super::table::{Key, Ty};

const WORKFLOW: &[Key] = &[
    Key::new("name", Ty::Slug, "required", "the workflow's name"),
    Key::new("description", Ty::Str, "\"\"", "a line for people"),
    Key::new("result", Ty::Expr, "outputs of the terminal nodes", "what the run returns"),
    Key::new("hooks", Ty::Json, "", "").later(),
];

const INPUT: &[Key] = &[
    Key::new(
        "type",
        Ty::Enum(&["string", "int", "float", "bool", "enum", "path", "json", "text"], &[]),
        "required",
        "what a value must be",
    ),
    Key::new("default", Ty::Json, "none: the input is required", "the value where none is given"),
    Key::new("values", Ty::List(&Ty::Str), "", "enum: the words"),
    Key::new("description", Ty::Str, "\"\"", "a line for people"),
    Key::new("secret", Ty::Bool, "false", "only in `env` of commands; never shown, never stored"),
];

const AGENT: &[Key] = &[
    Key::new("description", Ty::Str, "\"\"", "a line for people and for models that choose"),
    Key::new("prompt", Ty::Str, "", "its part of the system prompt; this or `prompt_file` is required"),
    Key::new("prompt_file", Ty::Str, "", "a file with it, relative to the workflow file"),
    Key::new("model", Ty::OneOrList(&Ty::Str), "inherited", "a model, or a list tried in order"),
    Key::new("tools", Ty::List(&Ty::Str), "all", "its tools"),
    Key::new("deny_tools", Ty::List(&Ty::Str), "[]", "taken away from them"),
    Key::new("permission", PERMISSION, "inherited", "at most this"),
    Key::new("max_turns", Ty::Int(1, 10_000), "50", "requests in one conversation"),
    Key::new("skills", Ty::List(&Ty::Str), "[]", "skills it has").later(),
    Key::new("mcp", Ty::Json, "", "servers it has").later(),
];

const LIMITS: &[Key] = &[
    Key::new("concurrency", Ty::Int(1, 100_000), "16", "agents at once"),
    Key::new("commands", Ty::Int(1, 100_000), "2 × cores", "commands at once"),
    Key::new("providers", Ty::Map(&Ty::Int(1, 100_000)), "{}", "requests in flight by provider"),
    Key::new("agents", Ty::Int(1, 10_000_000), "200", "agents in all, retries and children counted"),
    Key::new("depth", Ty::Int(0, 100), "2", "children of children"),
];

const MERGE: &[Key] = &[
    Key::new("max_tokens", Ty::Int(100, 1_000_000), "2000", "of the whole message"),
    Key::new("per_node_tokens", Ty::Int(10, 1_000_000), "300", "of one node"),
    Key::new("when", Ty::Enum(&["end"], &["each"]), "\"end\"", "when it is told"),
];

/// Keys of the top level.
pub const TOP: &[Key] = &[
    Key::new("schema", Ty::Int(0, i64::MAX), "required", "1"),
    Key::new("workflow", Ty::Table(WORKFLOW), "required", "the workflow's name and result"),
    Key::new("inputs", Ty::Idents(&Ty::Table(INPUT)), "{}", "values given when it is started"),
    Key::new("agents", Ty::Agents(&Ty::Table(AGENT)), "{}", "agents defined here"),
    Key::new("limits", Ty::Table(LIMITS), "", "ceilings"),
    Key::new("budget", Ty::Table(BUDGET), "", "ceilings of the run"),
    Key::new("defaults", Ty::Defaults, "{}", "any key of a node, applied where its kind has it"),
    Key::new("merge", Ty::Table(MERGE), "", "how the run reports to a parent session"),
    Key::new("node", Ty::Nodes, "required", "the nodes, each `[node.<id>]`"),
];

/// Keys of `[inputs.<id>]`.
pub fn inputs_table() -> &'static [Key] {
    INPUT
}

/// Keys of `[agents.<id>]`.
pub fn agents_table() -> &'static [Key] {
    AGENT
}
