//! Where a path leads: `~`, `.`, `..` and symlinks resolved, also where the end does not exist yet.

use super::kind::is_of_a_process;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// As many symlinks as the kernel follows.
const MOST_LINKS: usize = 40;

/// The absolute path that an operating system would reach, symlinks followed one by one, the final one too (also a
/// dangling one: its target is what a write would make). Parts that do not exist stay as they are. A loop of symlinks
/// gives the path at which it was given up; opening it fails.
pub fn resolve(path: &Path) -> PathBuf {
    let mut rest: VecDeque<OsString> = parts(path);
    let mut done = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            done.pop();
            continue;
        }
        let next = done.join(&part);
        // Below a process links are not paths: they lead to what it holds, round every rule. They stay as they are, and
        // nothing there is opened.
        if is_of_a_process(&done) {
            done = next;
            continue;
        }
        match std::fs::read_link(&next) {
            Ok(target) if links < MOST_LINKS => {
                links += 1;
                if target.is_absolute() {
                    done = PathBuf::from("/");
                }
                let mut target = parts(&target);
                target.append(&mut rest);
                rest = target;
            }
            Ok(_) | Err(_) => done = next,
        }
    }
    done
}

fn parts(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(part) => Some(part.to_owned()),
            Component::ParentDir => Some("..".into()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
        })
        .collect()
}

/// A path as a model typed it, made absolute from a folder; `~` is the home folder.
pub fn absolute(typed: &str, folder: &Path) -> PathBuf {
    let home = || std::env::home_dir();
    match typed.strip_prefix("~/") {
        Some(below) => home().map_or_else(|| folder.join(typed), |home| home.join(below)),
        None if typed == "~" => home().unwrap_or_else(|| folder.join(typed)),
        None => folder.join(typed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_a_process_holds_is_not_a_way_to_anything() {
        let me = std::process::id();
        for typed in [
            "/proc/self/root/etc/shadow",
            "/proc/self/cwd/../x",
            "/proc/thread-self/root/x",
            "/dev/fd/3",
            "/dev/stdin",
            "/proc/self/fd/3/../../root/etc/passwd",
            "/proc/net/tcp",
            "/proc/1/root/etc/shadow",
            "/proc/./self//environ",
            "/dev/fd/../root/etc",
        ] {
            let path = resolve(Path::new(typed));
            assert!(is_of_a_process(&path), "{typed} {}", path.display());
            assert!(path.starts_with("/proc/1/") || path.starts_with(format!("/proc/{me}")), "{typed}");
        }
    }

    #[test]
    fn links_dots_and_missing_ends_are_resolved() {
        let folder = tempfile::tempdir().unwrap();
        let root = resolve(folder.path());
        std::fs::create_dir_all(root.join("real/deep")).unwrap();
        symlink("real/deep", root.join("link")).unwrap();
        symlink(root.join("real/new"), root.join("dangling")).unwrap();
        symlink("self", root.join("self")).unwrap();
        assert_eq!(resolve(&root.join("link/../x")), root.join("real/x"));
        assert_eq!(resolve(&root.join("./link//y/../z")), root.join("real/deep/z"));
        assert_eq!(resolve(&root.join("dangling")), root.join("real/new"));
        assert!(resolve(&root.join("self")).starts_with(&root));
        assert_eq!(absolute("a/b", Path::new("/w")), Path::new("/w/a/b"));
    }
}
