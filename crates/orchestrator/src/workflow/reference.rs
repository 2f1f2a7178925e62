//! The reference page of all keys, in Markdown.

use super::keys::{self, Key, NodeKind, State, Ty};
use super::problem::Code;
use std::fmt::Write;

/// What a user may ask and the table does not say.
const NOTES: &str = "
## Notes

- A template keeps all its line ends; `{{-` and `-}}` take away the blanks beside them.
- A list or a table that is printed becomes JSON. `head`, `tail` and `lines` cut without a word; only what is cut by \
itself says so.
- A prompt cuts references above 16 KiB; `stdin`, `env` and arguments of commands get texts whole.
- `each.items` that names only inputs is known when the plan is made, as a list in the file is; its keys may name \
inputs, the item and `index`, which counts from 1.
- `range = n` gives 0 to n-1, `[from, to]` and `[from, to, step]` as Jinja's `range`.
- `glob`, `lines`, `jsonl` and lists that nodes give are dynamic: `max` is required.
- A merge leaves out null: what a skipped or a failed step gives. `concat` puts a blank line between texts, other \
values are JSON. `prefer` orders null, false, true, numbers, texts, lists, tables.
- Values and lists of a node replace those of `defaults`, tables are filled up from them.
- `retry` and `timeout` of `defaults` speak of attempts: groups, nested files and gates do not take them. `isolation` \
and `base` go to what works in a folder: agents, commands, groups, nested files, merges by agents.
- A body sees its own nodes, what its group may see (its ancestors, its item, its loop), and so on up to the file. \
Inside a loop, `loop` is the nearest one. `until` and `carry` of a group, and its `result`, see all nodes of the body; \
those of any other node see the node itself by its own name, as the output of this iteration.
- A node of a body, the name of an item and a carried name must differ from every name that is visible there: an \
`each` inside the body of another needs an `as` of its own.
- Keys of a list in the file are made before anything runs: they see inputs and the item.
- A nested file sees nothing but its own inputs. `with` holds expressions: a text is written `\"'like this'\"`. Limits \
that it does not give are those of its caller; of two, the smaller holds. Called twice, it runs twice. Bodies and \
nested files lie at most 16 levels deep.
- A secret input goes into a nested file as `with = { token = \"inputs.token\" }`, where `token` is secret as well.
- A group's output has the fields of its `result` where that is the name of a node, else those of its body: a wrong \
field is found before the run. So are those of gates (`choice`, `comment`) and of git merges.
- A node works in the worktree of its group, unless it has one of its own. Two writers in one body share that folder.
- `unknown_price = \"tokens_only\"` holds for the budget in which it stands. A model without a price needs it in every \
budget over it that has `usd`.
";

/// The whole page.
pub fn reference_markdown() -> String {
    let mut out = String::from("# Keys of a workflow file, schema 1\n");
    section(&mut out, "Top level", keys::TOP, 2);
    section(&mut out, "Every node: `[node.<id>]`", keys::common(), 2);
    for kind in NodeKind::ALL {
        section(&mut out, &format!("`kind = \"{}\"`", kind.as_str()), keys::own(kind), 2);
    }
    out.push_str(NOTES);
    out.push_str("\n## Problems\n\n| code | meaning |\n|---|---|\n");
    for code in Code::ALL {
        let _ = writeln!(out, "| {code} | {} |", code.meaning());
    }
    out
}

fn section(out: &mut String, title: &str, table: &[Key], level: usize) {
    let _ = write!(out, "\n{} {title}\n\n| key | type | default | |\n|---|---|---|---|\n", "#".repeat(level));
    for key in table.iter().filter(|key| !key.help.is_empty()) {
        let later = if key.state == State::Later { " (not in this version yet)" } else { "" };
        let default = key.default.replace('|', "\\|");
        let _ = writeln!(out, "| `{}` | {} | {default} | {}{later} |", key.name, words(&key.ty), key.help);
    }
    for key in table.iter().filter(|key| !key.help.is_empty()) {
        if let Some(inner) = inner_table(&key.ty) {
            section(out, &format!("`{}`", key.name), inner, level + 1);
        }
    }
}

fn inner_table(ty: &Ty) -> Option<&'static [Key]> {
    match ty {
        Ty::Table(keys) => Some(keys),
        Ty::List(inner) | Ty::OneOrList(inner) | Ty::Map(inner) | Ty::Idents(inner) | Ty::Agents(inner) => {
            inner_table(inner)
        }
        _ => None,
    }
}

fn words(ty: &Ty) -> String {
    match ty {
        Ty::Str => "text".into(),
        Ty::Tmpl => "tmpl".into(),
        Ty::Expr => "expr".into(),
        Ty::Bool => "bool".into(),
        Ty::Int(..) => "int".into(),
        Ty::Float(_) => "float".into(),
        Ty::Dur => "dur".into(),
        Ty::Size => "size".into(),
        Ty::Slug => "slug".into(),
        Ty::Ident => "ident".into(),
        Ty::NodeName => "node".into(),
        Ty::AgentName => "agent".into(),
        Ty::Enum(now, _) => now.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        Ty::List(inner) => format!("[{}]", words(inner)),
        Ty::OneOrList(inner) => format!("{} or [{}]", words(inner), words(inner)),
        Ty::Map(inner) | Ty::Idents(inner) | Ty::Agents(inner) => format!("table of {}", words(inner)),
        Ty::Table(_) | Ty::Defaults => "table".into(),
        Ty::Nodes => "nodes".into(),
        Ty::Json => "any value".into(),
        Ty::Output => "word or schema".into(),
        Ty::Either(forms) => forms.iter().map(words).collect::<Vec<_>>().join(" or "),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_reference_page_lists_every_key() {
        insta::assert_snapshot!(super::reference_markdown());
    }
}
