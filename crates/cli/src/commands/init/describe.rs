//! The text of a first CLAUDE.md: stack, checks, shape of the repository, working agreement.

use super::stack::Stack;
use std::fmt::Write;
use std::path::Path;

/// Entries of the top folder that are named.
const MOST: usize = 40;

pub(super) fn describe(folder: &Path, stack: &Stack) -> String {
    let name =
        folder.file_name().map_or_else(|| "project".to_owned(), |name| name.to_string_lossy().into_owned());
    let mut out = format!(
        "# {}\n\nWhat an agent should know before it works here. Correct and extend it.\n",
        one_line(&name)
    );
    out.push_str("\n## Stack\n\n");
    if stack.parts.is_empty() {
        out.push_str("- not detected; say here what it is written in\n");
    }
    for part in &stack.parts {
        let _ = writeln!(out, "- {part}");
    }
    out.push_str("\n## Checks\n\n");
    if stack.checks.is_empty() {
        out.push_str("No commands were detected. Name those that must pass before work is called done.\n");
    } else {
        out.push_str("These must pass before work is called done:\n\n");
    }
    for (command, what) in &stack.checks {
        let _ = writeln!(out, "- `{command}` ({what})");
    }
    out.push_str("\n## Shape\n\n");
    let entries = entries(folder);
    for (entry, is_folder) in entries.iter().take(MOST) {
        let _ = writeln!(out, "- `{}{}`", one_line(entry), if *is_folder { "/" } else { "" });
    }
    if entries.len() > MOST {
        let _ = writeln!(out, "- and {} more", entries.len() - MOST);
    }
    if entries.is_empty() {
        out.push_str("The folder is empty.\n");
    }
    out.push_str(
        "\n## Working agreement\n\n- Read the code around a change before making it; keep to its style.\n- Small \
         changes, each with a test where there are tests.\n- Run the checks above and say what they said.\n- Ask before \
         adding a dependency, changing a public interface or deleting what you did not write.\n",
    );
    out
}

/// What a reader of the repository sees: hidden files and what is built are left out.
fn entries(folder: &Path) -> Vec<(String, bool)> {
    const BUILT: [&str; 6] = ["target", "node_modules", "dist", "build", "__pycache__", "CLAUDE.md"];
    let mut all: Vec<(String, bool)> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .take(2_000)
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            (!name.starts_with('.') && !BUILT.contains(&name.as_str())).then_some((name, is_folder))
        })
        .collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    all
}

fn one_line(text: &str) -> String {
    claw_kernel::visible::visible_line(text).replace('`', "'")
}
