//! The environment of children: a list of names, and never a key.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

const NAMES: [&str; 7] = ["PATH", "HOME", "LANG", "USER", "SHELL", "TMPDIR", "LOGNAME"];
const PREFIXES: [&str; 2] = ["LC_", "CLAW_"];
/// Parts of a name that say that the value is a secret.
const SECRET: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"];

/// There is no terminal, and nobody can answer an editor, a pager or a question.
pub(super) const QUIET: [(&str, &str); 5] = [
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("DEBIAN_FRONTEND", "noninteractive"),
];

/// What of this process's environment a child gets.
pub(super) fn inherited() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| is_allowed(name))
}

/// Where a program lies that can be executed, by the order of `PATH`.
pub fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let can_run =
        |file: &PathBuf| file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok();
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
        .find(can_run)
}

fn is_allowed(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let listed = NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    listed && !is_secret(OsStr::new(name))
}

/// Whether a name says that its value is a secret.
pub(crate) fn is_secret(name: &OsStr) -> bool {
    let upper = name.to_string_lossy().to_ascii_uppercase();
    SECRET.iter().any(|part| upper.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_strangers_stay_here() {
        for name in
            ["ANTHROPIC_API_KEY", "CLAW_API_KEY", "CLAW_GITHUB_TOKEN", "LD_PRELOAD", "BASH_ENV", "EDITOR"]
        {
            assert!(!is_allowed(OsStr::new(name)), "{name}");
        }
        for name in ["PATH", "LC_ALL", "CLAW_RUN_ID"] {
            assert!(is_allowed(OsStr::new(name)), "{name}");
        }
    }
}
