//! Memory files: the user's own, then the project's from the top of the work tree down to the folder.

use claw_tools::files::kind::open_regular;
use claw_tools::files::paths;
use std::fmt::Write;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Bytes of one file that are taken.
const MOST_OF_A_FILE: usize = 16 * 1024;
/// Bytes of all.
const MOST: usize = 48 * 1024;
/// Files of a `rules` folder that are read.
const MOST_RULES: usize = 50;
/// How far an import may lead to another.
const DEEPEST: usize = 5;
/// What everybody gets, then what is the user's alone.
const NAMES: [&str; 3] = ["CLAUDE.md", "AGENTS.md", "CLAW.md"];
const LOCAL: &str = "CLAUDE.local.md";
const RULES: &str = ".claude/rules";

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryFiles {
    /// For the system prompt; empty where there is none.
    pub text: String,
    /// The files, in order.
    pub files: Vec<PathBuf>,
}

/// Reads the files of the `user`'s folders, then those of `folder` and of the folders above it up to the one that holds
/// `.git` (without one: `folder` alone). The nearest comes last; `@path` in a file takes in another one. A symlink or an
/// import that leads out of the work tree, what is no regular file or cannot be read is left out; what is above the limits is cut, and
/// that is said.
pub fn load_memory(folder: &Path, user: &[PathBuf]) -> MemoryFiles {
    let mut reading = Reading::default();
    for own in user {
        let inside = paths::resolve(own);
        for name in NAMES {
            reading.take(&own.join(name), &inside, 0);
        }
    }
    let top = folder.ancestors().find(|above| above.join(".git").exists()).unwrap_or(folder);
    let mut folders: Vec<&Path> = folder.ancestors().take_while(|above| above.starts_with(top)).collect();
    folders.reverse();
    let inside = paths::resolve(top);
    for folder in folders {
        let names = NAMES.iter().map(|name| folder.join(name));
        for path in names.chain(rules(&folder.join(RULES))).chain([folder.join(LOCAL)]) {
            reading.take(&path, &inside, 0);
        }
    }
    reading.memory
}

fn rules(folder: &Path) -> Vec<PathBuf> {
    let files = folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    files.sort();
    files.truncate(MOST_RULES);
    files
}

#[derive(Default)]
struct Reading {
    memory: MemoryFiles,
    seen: Vec<String>,
}

impl Reading {
    fn take(&mut self, path: &Path, inside: &Path, depth: usize) {
        let room = MOST.saturating_sub(self.memory.text.len());
        let Some((text, is_cut)) = read(path, inside, MOST_OF_A_FILE.min(room)) else { return };
        // One is often a link to, or a copy of, the other.
        if text.trim().is_empty() || self.seen.contains(&text) {
            return;
        }
        let _ = write!(self.memory.text, "From {}:\n{}\n", path.display(), text.trim());
        if is_cut {
            let _ = writeln!(self.memory.text, "(cut: read the file for the rest)");
        }
        self.memory.text.push('\n');
        self.memory.files.push(path.to_owned());
        let imports = imports(&text);
        self.seen.push(text);
        if depth < DEEPEST {
            let beside = path.parent().unwrap_or(inside);
            for import in imports {
                self.take(&beside.join(import), inside, depth + 1);
            }
        } else if !imports.is_empty() {
            let _ = writeln!(self.memory.text, "(imports are followed {DEEPEST} deep; these are left out)\n");
        }
    }
}

/// Words such as `@docs/rules.md`, outside of code.
fn imports(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_fence = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
            continue;
        }
        if in_fence {
            continue;
        }
        // Every second piece stands between two backquotes.
        for piece in line.split('`').step_by(2) {
            for word in piece.split_whitespace() {
                let name =
                    word.strip_prefix('@').map(|name| name.trim_end_matches([',', ';', ':', '.', ')']));
                found.extend(name.filter(|name| name.contains('.') || name.contains('/')).map(str::to_owned));
            }
        }
    }
    found
}

/// `inside`: resolved. A repository is somebody else's: its links are no leave to send the user's other files away.
fn read(path: &Path, inside: &Path, most: usize) -> Option<(String, bool)> {
    let path = paths::resolve(path);
    // What git keeps may hold credentials, and is nobody's text.
    if most == 0 || !path.starts_with(inside) || path.starts_with(inside.join(".git")) {
        return None;
    }
    let (file, _) = open_regular(&path).ok()?;
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes).ok()?;
    let is_cut = bytes.len() > most;
    bytes.truncate(most);
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        // A cut in the middle of a character is ours; anything else is no text.
        Err(error) if is_cut && error.utf8_error().error_len().is_none() => {
            let whole = error.utf8_error().valid_up_to();
            String::from_utf8_lossy(&error.as_bytes()[..whole]).into_owned()
        }
        Err(_) => return None,
    };
    Some((text, is_cut))
}

#[cfg(test)]
mod tests {
    use super::*;
    use claw_kernel::durable::{Mode, Sync, private_dir, replace};

    fn write(path: PathBuf, text: &str) {
        private_dir(path.parent().unwrap()).unwrap();
        replace(&path, text.as_bytes(), Mode::Private, Sync::No).unwrap();
    }

    #[test]
    fn files_are_read_from_the_top_of_the_work_tree_down_and_cut_at_the_limit() {
        let top = tempfile::tempdir().unwrap();
        let sub = top.path().join("repo/sub");
        write(top.path().join("CLAUDE.md"), "outside");
        write(top.path().join("repo/.git/HEAD"), "ref");
        write(top.path().join("repo/CLAUDE.md"), "top rule");
        write(top.path().join("repo/AGENTS.md"), "top rule");
        write(sub.join("AGENTS.md"), &"é".repeat(MOST_OF_A_FILE));
        let memory = load_memory(&sub, &[]);
        assert_eq!(memory.files, [top.path().join("repo/CLAUDE.md"), sub.join("AGENTS.md")]);
        assert!(memory.text.contains("top rule") && memory.text.contains("(cut:"), "{}", memory.files.len());
        assert!(!memory.text.contains("outside") && !memory.text.contains('\u{fffd}'));
        assert!(memory.text.len() < MOST_OF_A_FILE + 1_000);
    }

    #[test]
    fn a_link_out_of_the_work_tree_and_what_is_no_file_are_left_out() {
        let top = tempfile::tempdir().unwrap();
        let repo = top.path().join("repo");
        write(top.path().join("secret"), "the key");
        write(repo.join(".git/config"), "token");
        write(repo.join("docs/rules.md"), "rules");
        let sub = repo.join("sub");
        private_dir(&sub).unwrap();
        std::os::unix::fs::symlink("../secret", repo.join("CLAUDE.md")).unwrap();
        std::os::unix::fs::symlink(".git/config", repo.join("AGENTS.md")).unwrap();
        std::os::unix::fs::symlink("../docs/rules.md", sub.join("CLAUDE.md")).unwrap();
        private_dir(&sub.join("AGENTS.md")).unwrap();
        let memory = load_memory(&sub, &[]);
        assert_eq!(memory.files, [sub.join("CLAUDE.md")]);
        assert!(memory.text.contains("rules") && !memory.text.contains("key"), "{}", memory.text);
        assert_eq!(load_memory(&repo, &[]), MemoryFiles::default());
    }

    #[test]
    fn imports_rules_and_the_users_own_are_read_and_none_leads_out() {
        let top = tempfile::tempdir().unwrap();
        let (repo, home) = (top.path().join("repo"), top.path().join("home"));
        write(top.path().join("secret.md"), "the key");
        write(home.join("CLAUDE.md"), "of the user");
        write(repo.join(".git/HEAD"), "ref");
        write(
            repo.join("CLAUDE.md"),
            "see @docs/a.md and @../secret.md, not `@docs/code.md`\n```\n@docs/code.md\n```",
        );
        write(repo.join("docs/a.md"), "imported @b.md");
        write(repo.join("docs/b.md"), "deeper @a.md");
        write(repo.join("docs/code.md"), "code");
        write(repo.join(".claude/rules/z.md"), "rule z");
        write(repo.join(".claude/rules/a.md"), "rule a");
        write(repo.join("CLAUDE.local.md"), "mine");
        let memory = load_memory(&repo, &[home]);
        let order = ["of the user", "see @docs", "imported", "deeper", "rule a", "rule z", "mine"];
        let places: Vec<Option<usize>> = order.iter().map(|words| memory.text.find(words)).collect();
        assert!(places.is_sorted() && places.iter().all(Option::is_some), "{places:?}\n{}", memory.text);
        assert!(!memory.text.contains("the key") && !memory.text.contains("\ncode"), "{}", memory.text);
    }
}
