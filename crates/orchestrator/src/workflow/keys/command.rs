//! `kind = "command"`: a program, without a model.

use super::agent::PERMISSION;
use super::table::{Key, Ty};

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "run",
        Ty::Either(&[Ty::List(&Ty::Tmpl), Ty::Str]),
        "required",
        "program and arguments, never through a shell; or a fixed text for the shell",
    ),
    Key::new("literal", Ty::Bool, "false", "lets `{{` stand in a text for the shell, as it is"),
    Key::new("cwd", Ty::Tmpl, "the workspace", "folder in which it runs"),
    Key::new("env", Ty::Map(&Ty::Tmpl), "{}", "variables for it"),
    Key::new("stdin", Ty::Tmpl, "nothing", "given to its standard input"),
    Key::new("ok_exit", Ty::List(&Ty::Int(0, 255)), "[0]", "exit codes that count as success"),
    Key::new("permission", PERMISSION, "the run's", "narrows what it may do"),
];
