//! The project's memory files: `CLAUDE.md` and `AGENTS.md`, from the top of the work tree down to the folder.

use claw_tools::files::kind::open_regular;
use claw_tools::files::paths;
use std::fmt::Write;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Bytes of one file that are taken.
const MOST_OF_A_FILE: usize = 16 * 1024;
/// Bytes of all.
const MOST: usize = 32 * 1024;
const NAMES: [&str; 2] = ["CLAUDE.md", "AGENTS.md"];

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryFiles {
    /// For the system prompt; empty where there is none.
    pub text: String,
    /// The files, in order.
    pub files: Vec<PathBuf>,
}

/// Reads the files of `folder` and of those above it up to the one that holds `.git` (without one: `folder` alone).
/// The nearest comes last. A symlink that leads out of that tree, what is no regular file or cannot be read is left out; what is above the limits is cut, and that is said.
pub fn load_memory(folder: &Path) -> MemoryFiles {
    let top = folder.ancestors().find(|above| above.join(".git").exists()).unwrap_or(folder);
    let mut folders: Vec<&Path> = folder.ancestors().take_while(|above| above.starts_with(top)).collect();
    folders.reverse();
    let inside = paths::resolve(top);
    let mut memory = MemoryFiles::default();
    let mut seen = Vec::new();
    for path in folders.iter().flat_map(|folder| NAMES.map(|name| folder.join(name))) {
        let Some((text, is_cut)) =
            read(&path, &inside, MOST_OF_A_FILE.min(MOST.saturating_sub(memory.text.len())))
        else {
            continue;
        };
        // One is often a link to, or a copy of, the other.
        if text.trim().is_empty() || seen.contains(&text) {
            continue;
        }
        let _ = write!(memory.text, "From {}:\n{}\n", path.display(), text.trim());
        if is_cut {
            let _ = writeln!(memory.text, "(cut: read the file for the rest)");
        }
        memory.text.push('\n');
        memory.files.push(path);
        seen.push(text);
    }
    memory
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
        let memory = load_memory(&sub);
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
        let memory = load_memory(&sub);
        assert_eq!(memory.files, [sub.join("CLAUDE.md")]);
        assert!(memory.text.contains("rules") && !memory.text.contains("key"), "{}", memory.text);
        assert_eq!(load_memory(&repo), MemoryFiles::default());
    }
}
