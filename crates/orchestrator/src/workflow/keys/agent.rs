//! `kind = "agent"`: one supervised agent.

use super::table::{Key, Ty};

pub(super) const PERMISSION: Ty = Ty::Enum(
    &[
        "read-only",
        "workspace-write",
        "danger-full-access",
        "plan",
        "prompt",
        "default",
        "acceptEdits",
        "auto",
        "dontAsk",
        "bypassPermissions",
        "dangerFullAccess",
        "allow",
    ],
    &[],
);

pub(super) const KEYS: &[Key] = &[
    Key::new("agent", Ty::AgentName, "\"general-purpose\"", "which agent"),
    Key::new("prompt", Ty::Tmpl, "", "what it is asked; this or `prompt_file` is required"),
    Key::new("prompt_file", Ty::Str, "", "a file with the prompt, relative to the workflow file"),
    Key::new("system_append", Ty::Tmpl, "", "put behind its system prompt"),
    Key::new("model", Ty::OneOrList(&Ty::Str), "the agent's", "a model, or a list tried in order"),
    Key::new("effort", Ty::Enum(&["low", "medium", "high"], &[]), "the model's", "how hard it thinks"),
    Key::new("tools", Ty::List(&Ty::Str), "the agent's", "narrows its tools to these"),
    Key::new("deny_tools", Ty::List(&Ty::Str), "[]", "takes tools away"),
    Key::new("permission", PERMISSION, "the agent's", "narrows what it may do"),
    Key::new("max_turns", Ty::Int(1, 10_000), "50", "requests in one conversation"),
    Key::new("attach", Ty::List(&Ty::Tmpl), "[]", "files whose text is put behind the prompt"),
    Key::new("spawn", Ty::Bool, "false", "whether it may start children"),
];
