use super::*;
use claw_kernel::durable::{Mode as Keep, Sync, replace};
use std::os::unix::fs::symlink;
use tempfile::TempDir;

struct Case {
    folder: TempDir,
    work: PathBuf,
}

impl Case {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let work = paths::resolve(&folder.path().join("w"));
        fs::create_dir_all(&work).unwrap();
        Self { folder, work }
    }

    fn put(&self, path: &Path, bytes: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        replace(path, bytes.as_bytes(), Keep::Keep, Sync::No).unwrap();
    }

    fn look(&self) -> Governed {
        let names = [".claw", ".claude", ".mcp.json", "flows/a.toml"];
        let git = GOVERNING_GIT.iter().map(|name| self.work.join(".git").join(name));
        let governing: Vec<PathBuf> = names.iter().map(|name| self.work.join(name)).chain(git).collect();
        Governed::look(std::slice::from_ref(&self.work), &governing)
    }

    fn after(&self, seen: &Governed) -> Vec<String> {
        let moved = seen.put_aside(&paths::resolve(&self.folder.path().join("aside")));
        assert!(!seen.is_disturbed());
        moved.iter().map(|path| path.strip_prefix(&self.work).unwrap().display().to_string()).collect()
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.work.join(path)).unwrap()
    }
}

#[test]
fn a_parent_that_appeared_as_a_symlink_is_moved_itself_and_its_target_is_not_touched() {
    for name in [".claw", ".git", ".claude", "flows"] {
        let case = Case::new();
        let outside = case.folder.path().join("outside");
        for file in ["settings.json", "hooks/x", "config", "a.toml"] {
            case.put(&outside.join(file), "theirs");
        }
        let seen = case.look();
        assert!(!seen.is_disturbed());
        symlink("../outside", case.work.join(name)).unwrap();
        assert!(seen.is_disturbed());
        assert_eq!(case.after(&seen), [name]);
        for file in ["settings.json", "hooks/x", "config", "a.toml"] {
            assert!(outside.join(file).exists(), "{name} {file}");
        }
        assert!(case.work.join(name).symlink_metadata().is_err());
        assert!(case.folder.path().join(format!("aside/refused-0-{name}")).symlink_metadata().is_ok());
    }
}

#[test]
fn an_absent_git_is_watched_as_a_whole_and_claws_state_is_not() {
    let case = Case::new();
    let seen = case.look();
    case.put(&case.work.join(".git"), "gitdir: ./evil");
    case.put(&case.work.join(".claw/runs/x"), "state");
    case.put(&case.work.join(".claw/hooks/x"), "evil");
    assert_eq!(case.after(&seen), [".git", ".claw/hooks"]);
    case.put(&case.work.join(".git/config"), "evil");
    assert_eq!(case.after(&seen), [".git"]);
    assert!(case.work.join(".claw/runs/x").exists());
}

#[test]
fn what_chooses_another_git_folder_is_taken_out() {
    let case = Case::new();
    case.put(&case.work.join(".git/config"), "old");
    let seen = case.look();
    let pins: Vec<_> = seen.pins().map(|(path, ro)| (path.to_owned(), ro)).collect();
    assert_eq!(pins, [(case.work.join(".git"), false), (case.work.join(".git/config"), true)]);
    case.put(&case.work.join(".git/commondir"), "../evil");
    case.put(&case.work.join(".git/config.worktree"), "evil");
    case.put(&case.work.join(".git/index"), "fine");
    assert_eq!(case.after(&seen), [".git/config.worktree", ".git/commondir"]);
    assert!(case.work.join(".git/index").exists());
}

#[test]
fn a_git_that_is_a_file_or_a_link_is_pinned_and_restored() {
    let case = Case::new();
    case.put(&case.work.join("real/config"), "old");
    case.put(&case.work.join(".git"), "gitdir: real\n");
    let seen = case.look();
    let has = |seen: &Governed, path: &str, ro| seen.pins().any(|pin| pin == (&case.work.join(path), ro));
    assert!(has(&seen, ".git", true) && has(&seen, "real", false) && has(&seen, "real/config", true));
    case.put(&case.work.join(".git"), "gitdir: evil\n");
    assert_eq!(case.after(&seen), [".git"]);
    assert_eq!(case.text(".git"), "gitdir: real\n");
    fs::remove_file(case.work.join(".git")).unwrap();
    assert_eq!(case.after(&seen), [".git"]);
    assert_eq!(case.text(".git"), "gitdir: real\n");

    fs::remove_file(case.work.join(".git")).unwrap();
    symlink("real", case.work.join(".git")).unwrap();
    let seen = case.look();
    assert!(has(&seen, "real", false) && has(&seen, "real/config", true));
    fs::remove_file(case.work.join(".git")).unwrap();
    symlink("evil", case.work.join(".git")).unwrap();
    case.put(&case.work.join("real/commondir"), "evil");
    assert_eq!(case.after(&seen), [".git", "real/commondir"]);
    assert_eq!(fs::read_link(case.work.join(".git")).unwrap(), Path::new("real"));
}

#[test]
fn the_folders_above_what_governs_cannot_be_renamed_and_a_dangling_link_is_watched_to_its_end() {
    let case = Case::new();
    case.put(&case.work.join("flows/a.toml"), "flow");
    symlink("later", case.work.join(".claude")).unwrap();
    symlink("loop", case.work.join("loop")).unwrap();
    symlink("loop", case.work.join(".mcp.json")).unwrap();
    let seen = case.look();
    let pins: Vec<_> = seen.pins().map(|(path, ro)| (path.to_owned(), ro)).collect();
    assert_eq!(pins, [(case.work.join("flows"), false), (case.work.join("flows/a.toml"), true)]);
    case.put(&case.work.join("later/settings.json"), "evil");
    assert_eq!(case.after(&seen), ["later"]);
}

#[test]
fn where_nothing_can_be_put_it_is_removed() {
    let case = Case::new();
    let seen = case.look();
    case.put(&case.work.join(".claude/deep/er/settings.json"), "evil");
    symlink("w", case.folder.path().join("link")).unwrap();
    let moved = seen.put_aside(&paths::resolve(case.folder.path()).join("link/aside"));
    assert_eq!(moved, [case.work.join(".claude")]);
    assert!(!case.work.join(".claude").exists() && !case.work.join("aside").exists());
}
