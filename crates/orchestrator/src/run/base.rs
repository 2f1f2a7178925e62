//! The commit that the project stands at, read from git's files: no process is started for it.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// HEAD of the repository at `project`; `None` outside of one, or where no commit is.
pub(super) fn commit(project: &Path) -> Option<String> {
    let git = git_folder(project)?;
    let head = read_to_string(git.join("HEAD")).ok()?;
    let Some(reference) = head.trim().strip_prefix("ref: ") else { return hash(head.trim()) };
    // A linked work tree keeps its branches in the folder that `commondir` names.
    let common = match read_to_string(git.join("commondir")) {
        Ok(path) => git.join(path.trim()),
        Err(_) => git,
    };
    let loose = read_to_string(common.join(reference)).ok().and_then(|text| hash(text.trim()));
    loose.or_else(|| {
        let packed = read_to_string(common.join("packed-refs")).ok()?;
        packed.lines().find_map(|line| {
            let (found, name) = line.split_once(' ')?;
            if name == reference { hash(found) } else { None }
        })
    })
}

fn git_folder(project: &Path) -> Option<PathBuf> {
    let git = project.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let file = read_to_string(git).ok()?;
    Some(project.join(file.trim().strip_prefix("gitdir: ")?))
}

fn hash(text: &str) -> Option<String> {
    let is_hash = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use claw_kernel::durable::{Mode, Sync, replace};

    #[test]
    fn a_branch_is_followed_to_its_commit_loose_or_packed() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: String| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            replace(&path, text.as_bytes(), Mode::Keep, Sync::No).unwrap();
        };
        assert_eq!(commit(folder.path()), None);
        put(".git/HEAD", "ref: refs/heads/main\n".into());
        assert_eq!(commit(folder.path()), None);
        put(".git/packed-refs", format!("# pack-refs\n{} refs/heads/main\n", "a".repeat(40)));
        assert_eq!(commit(folder.path()), Some("a".repeat(40)));
        put(".git/refs/heads/main", format!("{}\n", "b".repeat(40)));
        assert_eq!(commit(folder.path()), Some("b".repeat(40)));
    }
}
