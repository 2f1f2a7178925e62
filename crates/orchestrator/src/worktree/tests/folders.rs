use super::kit::{Kit, addr, folder, git, put, read};
use crate::plan::model::Base;
use crate::scheduler::Folder;
use crate::worktree::WorktreeError;
use crate::worktree::folder::Ground;
use crate::worktree::names::branch_of;
use crate::worktree::repo::Repo;
use claw_tools::sandbox::SandboxPolicy;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;

#[tokio::test]
async fn a_folder_starts_at_head_and_its_work_is_on_its_branch_when_it_goes() {
    let kit = Kit::new().await;
    put(&kit.top, "not-committed.txt", "x");
    let before = kit.picture();
    let step = folder("each=x/edit", Base::ParentHead);
    let open = kit.open(&step).await;
    assert!(open.path.ends_with(format!("{}/each=x--edit.1", kit.id())), "{:?}", open.path);
    assert_eq!(open.branch, branch_of(kit.id(), &step.owner, 1));
    assert_eq!(open.base, git(&kit.top, &["rev-parse", "HEAD"]).await);
    assert!(!open.path.join("not-committed.txt").exists());
    put(&open.path, "new file.txt", "new");
    put(&open.path, "noise.log", "ignored");
    std::fs::remove_file(open.path.join("deep/b.txt")).unwrap();
    let closed = kit.close(&step).await;
    assert_eq!(closed.kept, None);
    assert!(!open.path.exists() && !kit.top.join(".git/worktrees").exists());
    let names = git(&kit.top, &["diff", "--name-status", &open.base, &open.branch]).await;
    assert_eq!(names, "D\tdeep/b.txt\nA\tnew file.txt");
    assert_eq!(kit.picture(), before, "not a byte of the workspace");
    // Again: nothing to do.
    assert_eq!(kit.close(&step).await, closed);
}

#[tokio::test]
async fn the_present_state_of_the_workspace_is_taken_whole_and_the_index_stays() {
    let kit = Kit::new().await;
    let top = &kit.top;
    for name in
        ["staged", "both", "renamed", "gone", "gone-staged", "tool.sh", "with space", "line\nend", "ünï-漢"]
    {
        put(top, name, &format!("{name}\n"));
    }
    put(top, ".claw/agents/x.md", "old");
    git(top, &["add", "-A", "-f", ".claw/agents", "."]).await;
    git(top, &["commit", "-q", "-m", "more"]).await;
    put(top, "staged", "staged now\n");
    put(top, "both", "staged\n");
    git(top, &["mv", "renamed", "renamed-now"]).await;
    git(top, &["rm", "-q", "gone-staged"]).await;
    git(top, &["add", "staged", "both"]).await;
    put(top, "both", "and changed\n");
    put(top, "with space", "changed\n");
    put(top, "line\nend", "changed\n");
    std::fs::remove_file(top.join("gone")).unwrap();
    std::fs::set_permissions(top.join("tool.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink("a.txt", top.join("link")).unwrap();
    put(top, "un tracked/ünï", "untracked\n");
    put(top, "x.log", "ignored\n");
    put(top, ".claw/agents/x.md", "changed");
    put(top, ".claw/agents/y.md", "new");
    let before = kit.picture();
    let open = kit.open(&folder("a", Base::ParentDirty)).await;
    assert_eq!(kit.picture(), before);
    let there = &open.path;
    assert_eq!(read(there, "staged"), "staged now\n");
    assert_eq!(read(there, "both"), "and changed\n");
    assert_eq!(read(there, "with space"), "changed\n");
    assert_eq!(read(there, "line\nend"), "changed\n");
    assert_eq!(read(there, "un tracked/ünï"), "untracked\n");
    assert_eq!(read(there, "renamed-now"), "renamed\n");
    assert_eq!(std::fs::read_link(there.join("link")).unwrap().to_str(), Some("a.txt"));
    assert_eq!(there.join("tool.sh").metadata().unwrap().permissions().mode() & 0o111, 0o111);
    for gone in ["gone", "gone-staged", "renamed", "x.log", ".claw/agents/y.md"] {
        assert!(there.join(gone).symlink_metadata().is_err(), "{gone}");
    }
    assert_eq!(read(there, ".claw/agents/x.md"), "old");
    assert_ne!(open.base, git(top, &["rev-parse", "HEAD"]).await);
    assert_eq!(
        git(top, &["rev-parse", &format!("{}^", open.base)]).await,
        git(top, &["rev-parse", "HEAD"]).await
    );
    assert_eq!(git(there, &["status", "--porcelain"]).await, "");
}

#[tokio::test]
async fn claws_own_folder_is_left_out_where_it_is_ignored_too() {
    let kit = Kit::new().await;
    put(&kit.top, ".gitignore", ".claw\n");
    put(&kit.top, ".claw/settings.json", "{}");
    let open = kit.open(&folder("a", Base::ParentDirty)).await;
    assert!(!open.path.join(".claw").exists());
    assert_eq!(read(&open.path, ".gitignore"), ".claw\n");
}

#[tokio::test]
async fn a_next_attempt_starts_from_what_the_last_one_left_in_its_folder() {
    let kit = Kit::new().await;
    let first = folder("a", Base::ParentHead);
    let open = kit.open(&first).await;
    put(&open.path, "half.txt", "half");
    let second = Folder { attempt: 2, goes_on_from: Some(1), ..first };
    let next = kit.open(&second).await;
    assert!(!open.path.exists());
    assert_eq!(read(&next.path, "half.txt"), "half");
    assert_eq!(next.base, open.base, "all of the work is compared with the same state");
    assert_ne!(next.branch, open.branch);
}

#[tokio::test]
async fn a_folder_that_is_there_is_opened_again_and_one_that_went_comes_from_its_branch() {
    let kit = Kit::new().await;
    let group = folder("fix", Base::ParentHead);
    let open = kit.open(&group).await;
    put(&open.path, "x", "1");
    assert_eq!(kit.open(&group).await, open);
    assert_eq!(read(&open.path, "x"), "1");
    kit.close(&group).await;
    assert_eq!(kit.open(&group).await, open);
    assert_eq!(read(&open.path, "x"), "1");
    // A kill in the making leaves a part of it.
    std::fs::remove_file(open.path.join(".git")).unwrap();
    assert_eq!(kit.open(&group).await.branch, open.branch);
}

#[tokio::test]
async fn commits_of_an_agent_are_kept_on_and_beside_its_branch() {
    let kit = Kit::new().await;
    let step = folder("a", Base::ParentHead);
    let open = kit.open(&step).await;
    put(&open.path, "one", "1");
    git(&open.path, &["add", "-A"]).await;
    git(&open.path, &["commit", "-q", "-m", "mine"]).await;
    git(&open.path, &["checkout", "-q", "--detach"]).await;
    put(&open.path, "two", "2");
    git(&open.path, &["add", "-A"]).await;
    git(&open.path, &["commit", "-q", "-m", "detached"]).await;
    put(&open.path, "three", "3");
    kit.close(&step).await;
    let names = git(&kit.top, &["ls-tree", "--name-only", &open.branch]).await;
    assert!(["one", "two", "three"].iter().all(|name| names.lines().any(|line| line == *name)), "{names}");
    let log = git(&kit.top, &["log", "--format=%s", &open.branch]).await;
    assert!(log.contains("mine") && log.contains("detached"), "{log}");
}

#[tokio::test]
async fn a_repository_that_was_made_inside_keeps_the_folder() {
    let kit = Kit::new().await;
    for with_commit in [false, true] {
        let step = folder(if with_commit { "a" } else { "b" }, Base::ParentHead);
        let open = kit.open(&step).await;
        let inner = open.path.join("inner");
        put(&inner, "x", "x");
        git(&inner, &["init", "-q"]).await;
        if with_commit {
            git(&inner, &["add", "-A"]).await;
            git(&inner, &["commit", "-q", "-m", "x"]).await;
        }
        put(&open.path, "beside", "kept");
        let closed = kit.close(&step).await;
        assert!(closed.kept.is_some_and(|why| why.contains("inner")));
        assert!(inner.join("x").exists());
        assert_eq!(git(&kit.top, &["show", &format!("{}:beside", open.branch)]).await, "kept");
    }
}

#[tokio::test]
async fn hooks_and_monitors_of_the_repository_never_run() {
    let kit = Kit::new().await;
    let mark = kit.top.parent().unwrap().join("PWNED");
    let touch = format!("#!/bin/sh\ntouch {}\n", mark.display());
    for hook in ["post-checkout", "pre-commit", "reference-transaction", "post-index-change"] {
        put(&kit.top, &format!(".git/hooks/{hook}"), &touch);
        let path = kit.top.join(".git/hooks").join(hook);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let run = format!("touch {};", mark.display());
    for name in ["core.fsmonitor", "diff.external", "core.pager", "core.editor", "gpg.program"] {
        git(&kit.top, &["config", name, &run]).await;
    }
    git(&kit.top, &["config", "commit.gpgSign", "true"]).await;
    let step = folder("a", Base::ParentDirty);
    put(&kit.top, "x", "x");
    let open = kit.open(&step).await;
    put(&open.path, "y", "y");
    let closed = kit.close(&step).await;
    let folders = kit.folders();
    let ground = Ground { repo: &kit.repo, folders: &folders, run: kit.id() };
    let patch = kit.run.node(&addr("a"), 1).join("patch.diff");
    ground.patch(&closed, &patch).await.unwrap();
    assert!(std::fs::read_to_string(patch).unwrap().contains("+++ b/y"));
    assert!(!mark.exists());
}

#[tokio::test]
async fn where_there_is_nothing_to_branch_from_the_error_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let policy = || Arc::new(SandboxPolicy::full(folder.path()));
    let none = Repo::open(folder.path(), policy()).await.unwrap_err();
    assert!(
        matches!(&none, WorktreeError::NotARepository { .. }) && none.to_string().contains("git init"),
        "{none}"
    );
    git(folder.path(), &["init", "-q"]).await;
    let empty = Repo::open(folder.path(), policy()).await.unwrap().head().await.unwrap_err();
    assert!(empty.to_string().contains("commit something first"), "{empty}");
    put(folder.path(), "sub/x", "");
    let inside = Repo::open(&folder.path().join("sub"), policy()).await.unwrap_err();
    assert!(matches!(inside, WorktreeError::NotTheTop { .. }), "{inside}");
}

#[tokio::test]
async fn a_workspace_that_is_itself_a_linked_work_tree_has_folders_as_well() {
    let kit = Kit::new().await;
    let linked = kit.top.parent().unwrap().join("linked");
    git(&kit.top, &["worktree", "add", "-q", "-b", "other", linked.to_str().unwrap()]).await;
    put(&linked, "dirty", "d");
    let repo = Repo::open(&linked, Arc::new(SandboxPolicy::full(&linked))).await.unwrap();
    let folders = kit.folders();
    let ground = Ground { repo: &repo, folders: &folders, run: kit.id() };
    let open = ground.open(&folder("a", Base::ParentDirty), false).await.unwrap();
    assert_eq!(read(&open.path, "dirty"), "d");
    assert!(open.writable.iter().all(|path| path.is_dir()), "{:?}", open.writable);
}

#[tokio::test]
async fn a_folder_that_a_kill_left_half_made_is_no_work() {
    let kit = Kit::new().await;
    let step = folder("w", Base::ParentHead);
    let open = kit.open(&step).await;
    let folders = kit.folders();
    let mut record = folders.load("w.1").unwrap().unwrap();
    let git_dir = record.git_dir.take().unwrap();
    folders.save(&record).unwrap();
    std::fs::remove_file(open.path.join("a.txt")).unwrap();
    let closed = kit.close(&step).await;
    assert_eq!(closed.base, closed.tip, "what was not there yet was not taken away");
    assert!(!open.path.exists() && !git_dir.exists());
}

#[tokio::test]
async fn what_a_kill_left_of_folders_that_went_is_swept() {
    let kit = Kit::new().await;
    let (one, two) = (folder("one", Base::ParentHead), folder("two", Base::ParentHead));
    let (one_open, two_open) = (kit.open(&one).await, kit.open(&two).await);
    put(&one_open.path, "new.txt", "work");
    put(&two_open.path, "new.txt", "work");
    let git_dir = kit.folders().load("one.1").unwrap().unwrap().git_dir.unwrap();
    let listed = read(&git_dir, "gitdir");
    let head = read(&git_dir, "HEAD");
    let tip = kit.close(&one).await.tip;
    // Killed between the folder and what git knows of it; and amid the removal of another.
    put(&git_dir, "gitdir", &listed);
    put(&git_dir, "HEAD", &head);
    put(&kit.top, ".git/.claw-gone.0123/HEAD", "x");
    put(&kit.folders().root, ".gone.0123/a.txt", "x");
    assert_eq!(kit.services().sweep().await, [""; 0]);
    assert!(!git_dir.exists() && !two_open.path.exists() && !kit.top.join(".git/worktrees").exists());
    assert!(!kit.top.join(".git/.claw-gone.0123").exists());
    assert!(!kit.folders().root.join(".gone.0123").exists());
    assert_eq!(kit.close(&one).await.tip, tip);
    assert_eq!(git(&kit.top, &["show", &format!("{}:new.txt", two_open.branch)]).await, "work");
}
