//! `/help`: commands and keys.

use super::command::{Desk, Slash};
use super::registry::{all, find, nearest, ready};
use crate::lead::deed::Deed;
use crate::lead::editor::Choice;
use crate::terminal::paint::{Line, Style};
use futures_util::future::BoxFuture;

pub(super) struct Help;

const KEYS: [(&str, &str); 12] = [
    ("Enter", "sends; during a turn the model hears it at its next step"),
    ("Shift-Enter, \\ Enter, Ctrl-J", "a new line"),
    ("Tab, ↑ ↓", "completions of /commands, arguments, @files"),
    ("↑ ↓, Ctrl-P Ctrl-N", "what was sent before"),
    ("Ctrl-R", "searches in it"),
    ("Esc", "interrupts the turn; empties the input"),
    ("Ctrl-C", "the same; twice ends claw"),
    ("Ctrl-O", "the last result, whole (/output: earlier ones)"),
    ("Ctrl-A E B F K U W Y T, Alt-B F D", "as in a shell"),
    ("Ctrl-L", "draws the screen anew"),
    ("Ctrl-Z", "leaves claw in the background of the shell"),
    ("Ctrl-D", "ends claw"),
];

impl Slash for Help {
    fn name(&self) -> &'static str {
        "help"
    }

    fn args(&self) -> &'static str {
        "[COMMAND]"
    }

    fn about(&self) -> &'static str {
        "shows commands and keys"
    }

    fn values(&self, _: &Desk) -> Vec<Choice> {
        let choice = |command: &&dyn Slash| Choice {
            insert: command.name().to_owned(),
            about: command.about().to_owned(),
        };
        all().iter().map(choice).collect()
    }

    fn run(&self, args: String, desk: Desk) -> BoxFuture<'static, Vec<Deed>> {
        let theme = desk.looks();
        let name = args.trim_start_matches('/');
        if !name.is_empty() {
            let Some(command) = find(name) else {
                let near = nearest(name).map(|near| format!("; did you mean /{near}?")).unwrap_or_default();
                return ready([Deed::Wrong(format!("there is no /{name}{near}"))]);
            };
            let mut line = Line::styled(format!("/{} {}", command.name(), command.args()), theme.strong);
            line.push(format!("  {}", command.about()), Style::PLAIN);
            let mut lines = vec![line];
            if !command.aliases().is_empty() {
                let names: Vec<String> = command.aliases().iter().map(|alias| format!("/{alias}")).collect();
                lines.push(Line::styled(format!("also {}", names.join(", ")), theme.quiet));
            }
            return ready([Deed::Show(lines)]);
        }
        let row = |left: String, right: &str| {
            Line::styled(format!("  {left:<28} "), theme.strong).with(right, Style::PLAIN)
        };
        let mut lines = vec![Line::styled("Commands", theme.heading)];
        lines.extend(all().iter().map(|c| row(format!("/{} {}", c.name(), c.args()), c.about())));
        lines.push(Line::empty());
        lines.push(Line::styled("Keys", theme.heading));
        lines.extend(KEYS.iter().map(|(keys, what)| row((*keys).to_owned(), what)));
        ready([Deed::Show(lines)])
    }
}
