//! What words of the input can become: slash commands and their arguments, files behind an `@`.

use super::editor::{Choice, Completer, Menu};
use super::slash::{self, Desk};
use std::collections::VecDeque;
use std::path::Path;

/// Choices of a menu.
const MOST: usize = 60;
/// Entries that are looked at for one menu.
const MOST_LOOKED_AT: usize = 4_000;
/// Folders that are not searched.
const PASSED_OVER: [&str; 4] = [".git", "target", "node_modules", ".claw"];

/// The completions of one moment.
pub(super) struct Words<'a> {
    pub(super) desk: &'a Desk,
}

impl Completer for Words<'_> {
    fn complete(&self, text: &str, cursor: usize) -> Option<Menu> {
        if text.starts_with('/') {
            return slash::choices(text, cursor, self.desk);
        }
        let head = text.get(..cursor)?;
        let from = head
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + head[at..].chars().next().map_or(1, char::len_utf8));
        let typed = head[from..].strip_prefix('@')?;
        Menu::new(from, files(&self.desk.setup.cwd, typed), false)
    }
}

/// Files and folders that begin with what was typed; else those below whose name holds it.
fn files(root: &Path, typed: &str) -> Vec<Choice> {
    let (folder, name) = typed.rsplit_once('/').map_or(("", typed), |(folder, name)| (folder, name));
    let wanted = name.to_lowercase();
    let at = if typed.starts_with('/') && folder.is_empty() {
        Path::new("/").to_owned()
    } else {
        root.join(folder)
    };
    let mut found: Vec<(bool, String)> = entries(&at)
        .filter(|(_, entry)| entry.to_lowercase().starts_with(&wanted))
        .filter(|(_, entry)| name.starts_with('.') || !entry.starts_with('.'))
        .map(|(is_folder, entry)| {
            let slash = if folder.is_empty() && !typed.starts_with('/') { "" } else { "/" };
            (is_folder, format!("{folder}{slash}{entry}"))
        })
        .collect();
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    if folder.is_empty() && name.len() >= 2 {
        for path in below(root, &wanted) {
            if found.iter().all(|(_, known)| *known != path) {
                found.push((false, path));
            }
        }
    }
    found.truncate(MOST);
    let choice = |(is_folder, path): (bool, String)| Choice {
        insert: format!("@{path}{}", if is_folder { "/" } else { "" }),
        about: String::new(),
    };
    found.into_iter().map(choice).collect()
}

fn entries(folder: &Path) -> impl Iterator<Item = (bool, String)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().take(MOST_LOOKED_AT);
    entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        Some((is_folder, entry.file_name().into_string().ok()?))
    })
}

/// The nearest files first, level by level.
fn below(root: &Path, wanted: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = VecDeque::from([String::new()]);
    let mut looked_at = 0;
    while let Some(folder) = folders.pop_front() {
        for (is_folder, name) in entries(&root.join(&folder)) {
            looked_at += 1;
            if looked_at > MOST_LOOKED_AT || found.len() >= MOST {
                return found;
            }
            if name.starts_with('.') || PASSED_OVER.contains(&name.as_str()) {
                continue;
            }
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            if is_folder {
                folders.push_back(path);
            } else if name.to_lowercase().contains(wanted) {
                found.push(path);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_their_beginning_and_below_by_their_name() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["src/main.rs", "src/deep/maintain.rs", "Makefile", ".hidden", "target/main.o"] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            claw_kernel::durable::create(&path, b"").unwrap();
        }
        let of = |typed: &str| files(folder.path(), typed).into_iter().map(|c| c.insert).collect::<Vec<_>>();
        assert_eq!(of(""), ["@src/", "@target/", "@Makefile"]);
        assert_eq!(of("main"), ["@src/main.rs", "@src/deep/maintain.rs"]);
        assert_eq!(of("src/"), ["@src/deep/", "@src/main.rs"]);
        assert_eq!(of(".h"), ["@.hidden"]);
        assert!(of("absent/x").is_empty());
    }
}
