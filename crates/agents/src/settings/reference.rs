//! The reference page of settings, made from the table of keys.

use super::keys::{FOREIGN, Joins, Key, TOP, Ty, Who};
use std::fmt::Write;

const HEAD: &str = "# Settings

This page is printed by `claw config reference`.

Settings are JSON with comments. Keys are written in camelCase or in snake_case. Files, from low to high; a higher one
wins:

1. yours: `~/.claude.json` (known keys only), `~/.claude/settings.json`, `settings.json` in claw's folder
   (`CLAW_CONFIG_HOME`, else `CLAUDE_CONFIG_HOME`, else `$XDG_CONFIG_HOME/claw`, else `~/.claw`);
2. the project's, in every folder from the top of the repository down to the working folder: `.mcp.json` (servers only),
   `.claude.json` (known keys only), `.claw.json`, `.claude/settings.json`, `.claw/settings.json`;
3. local ones, in the same folders: `.claude/settings.local.json`, `.claw/settings.local.json`;
4. variables, then flags (`--settings FILE` or `--settings '{…}'`);
5. the administrator's policy: `/etc/claw/settings.json`. Nothing goes past it.

Objects merge, single values replace, lists of rules, hooks and servers add up. `claw config` shows every value, where it
stands and what it shadows. A wrong type, broken JSON or a key that stands twice keeps claw from starting; an unknown key
is a warning. Files are read when a command starts; what is under way keeps what it began with.

What a repository brings (2 and 3) and is marked *after trust* counts only after your decision on that very item, see
`claw trust`; *not from a repository*: its word never counts.
";

/// Markdown.
pub fn reference() -> String {
    let mut out = HEAD.to_owned();
    out.push_str("\n## Keys\n\n");
    rows(&mut out, TOP);
    for key in TOP {
        section(&mut out, key.name, &key.ty);
    }
    out.push_str("\n## Keys of other programs\n\nThey may stand there; claw leaves them alone.\n\n| key | |\n|---|---|\n");
    for foreign in FOREIGN {
        let _ = writeln!(out, "| `{}` | {} |", foreign.name, foreign.note);
    }
    out
}

fn section(out: &mut String, name: &str, ty: &Ty) {
    match ty {
        Ty::Table(keys) => {
            let _ = write!(out, "\n## `{name}`\n\n");
            rows(out, keys);
            for key in *keys {
                section(out, &format!("{name}.{}", key.name), &key.ty);
            }
        }
        Ty::Map(of) => section(out, &format!("{name}.<name>"), of),
        Ty::Either(forms) => forms.iter().for_each(|form| section(out, name, form)),
        Ty::Text
        | Ty::Bool
        | Ty::Int(..)
        | Ty::Float(..)
        | Ty::Scalar
        | Ty::Word(_)
        | Ty::Mode
        | Ty::Path
        | Ty::List(_)
        | Ty::Server
        | Ty::Any => {}
    }
}

fn rows(out: &mut String, keys: &[Key]) {
    out.push_str("| key | value | meaning |\n|---|---|---|\n");
    for key in keys {
        let who = match key.who {
            Who::Anyone => "",
            Who::Trusted(_) => " *after trust*",
            Who::User => " *not from a repository*",
            Who::Managed => " *policy only*",
        };
        let adds = match key.joins {
            Joins::AddsUp => " *adds up*",
            Joins::Replaces => "",
        };
        let _ = writeln!(out, "| `{}` | {} | {}{adds}{who} |", key.name, key.ty.words(), key.help);
    }
}
