use super::kit::{Kit, addr, git, put, read};
use crate::addr::StepAddr;
use crate::journal::record::EndState;
use crate::plan::model::Apply;
use crate::scheduler::Folder;
use crate::worktree::combine::{Combined, Combining, Spoilt, Verdict, Verify};
use crate::worktree::folders::Folders;
use crate::worktree::landing::{Fate, Landing, recover};
use crate::worktree::landing_file::LandingFolder;
use crate::worktree::put::Way;
use crate::worktree::{WorktreeError, forget};
use claw_kernel::cancel::CancelToken;
use claw_kernel::digest::Digest;
use claw_tools::sandbox::SandboxPolicy;
use serde_json::json;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn land() -> StepAddr {
    addr("land")
}

async fn combine(folders: &Folders, branches: &[Folder], apply: Apply) -> Result<Combined, WorktreeError> {
    combine_with(folders, branches, apply, None).await
}

async fn combine_with(
    folders: &Folders,
    branches: &[Folder],
    apply: Apply,
    verify: Option<&Verify<'_>>,
) -> Result<Combined, WorktreeError> {
    let (step, token) = (land(), CancelToken::new());
    let what = Combining { step: &step, attempt: 1, branches, apply, verify, token: &token };
    folders.combine(&what).await
}

async fn prepare(folders: &Folders, combined: &Combined) -> Result<Landing, WorktreeError> {
    folders.mark(&land(), 1, Digest::of("key")).unwrap();
    folders.prepare(&land(), 1, combined, json!("landed")).await
}

async fn recovered(kit: &Kit) -> Option<Fate> {
    let policy = Arc::new(SandboxPolicy::full(&kit.top));
    let mut found = recover(&kit.run, &kit.top, policy, |_, _| None).await.unwrap();
    assert!(found.len() <= 1);
    found.pop().map(|found| {
        assert_eq!((&found.step, found.attempt, found.key), (&land(), 1, Digest::of("key")));
        forget(&kit.run, &found.step, found.attempt).unwrap();
        found.fate
    })
}

/// Names of the steps and why.
fn taken_back(combined: &Combined) -> Vec<(String, &Spoilt)> {
    combined.taken_back.iter().map(|back| (back.step.to_string(), &back.why)).collect()
}

#[tokio::test]
async fn twenty_writers_at_once_are_put_together_in_order_and_two_conflicts_are_named() {
    let kit = Kit::new().await;
    let before = kit.picture();
    let writers = (0..20).map(|n| {
        let kit = &kit;
        async move {
            kit.work(&format!("w={n}"), |path| {
                put(path, &format!("out/{n}.txt"), &format!("{n}\n"));
                if matches!(n, 3 | 7 | 11) {
                    put(path, "a.txt", &format!("by {n}\n"));
                }
            })
            .await
        }
    });
    let branches = futures_util::future::join_all(writers).await;
    assert_eq!(kit.picture(), before);
    let folders = kit.services();
    let combined = combine(&folders, &branches, Apply::Patch).await.unwrap();
    let conflict = Spoilt::Conflict(vec!["a.txt".to_owned()]);
    assert_eq!(taken_back(&combined), [("w=7".to_owned(), &conflict), ("w=11".to_owned(), &conflict)]);
    assert_eq!(combined.applied.len(), 18);
    assert_eq!(kit.picture(), before);

    prepare(&folders, &combined).await.unwrap().carry_out().await.unwrap();
    forget(&kit.run, &land(), 1).unwrap();
    assert_eq!(read(&kit.top, "a.txt"), "by 3\n");
    assert_eq!(kit.top.join("out").read_dir().unwrap().count(), 18);
    assert!(!kit.run.root().join("landing").exists());
    // Not committed, and nothing staged.
    assert_eq!(git(&kit.top, &["diff", "--cached", "--name-only"]).await, "");
    assert_eq!(git(&kit.top, &["diff", "--name-only"]).await, "a.txt");
    // The work that was taken back is where it was.
    let kept = git(&kit.top, &["show", &format!("claw/{}/w=7.1:a.txt", kit.id())]).await;
    assert_eq!(kept, "by 7");
}

#[tokio::test]
async fn changes_of_the_user_and_of_agents_in_one_file_meet() {
    let kit = Kit::new().await;
    let text = read(&kit.top, "a.txt");
    let step = kit.work("a", |path| put(path, "a.txt", &text.replace("nine", "NINE"))).await;
    put(&kit.top, "a.txt", &text.replace("one", "ONE"));
    put(&kit.top, "mine", "untracked\n");
    git(&kit.top, &["add", "mine"]).await;
    let folders = kit.services();
    let combined = combine(&folders, &[step], Apply::Patch).await.unwrap();
    prepare(&folders, &combined).await.unwrap().carry_out().await.unwrap();
    assert_eq!(read(&kit.top, "a.txt"), text.replace("one", "ONE").replace("nine", "NINE"));
    assert_eq!(git(&kit.top, &["diff", "--cached", "--name-only"]).await, "mine");
}

#[tokio::test]
async fn what_fails_behind_a_branch_is_taken_back_and_the_next_starts_clean() {
    let kit = Kit::new().await;
    let mut branches = Vec::new();
    for name in ["good", "bad", "last"] {
        branches.push(kit.work(name, |path| put(path, name, name)).await);
    }
    let folders = kit.services();
    let calls = AtomicUsize::new(0);
    let verify = |folder: PathBuf| -> futures_util::future::BoxFuture<'_, Result<Verdict, WorktreeError>> {
        calls.fetch_add(1, Ordering::Relaxed);
        assert!(!folder.join("left.txt").exists(), "what the last command left is gone");
        assert_eq!(read(&folder, "deep/b.txt"), "b\n");
        put(&folder, "left.txt", "x");
        put(&folder, "deep/b.txt", "broken");
        put(&folder, "target/cache", "kept");
        let bad = folder.join("bad").exists();
        Box::pin(async move { Ok(if bad { Verdict::Bad("exit code 1".into()) } else { Verdict::Good }) })
    };
    let combined = combine_with(&folders, &branches, Apply::Patch, Some(&verify)).await.unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    assert_eq!(taken_back(&combined), [("bad".to_owned(), &Spoilt::Verify("exit code 1".into()))]);
    prepare(&folders, &combined).await.unwrap().carry_out().await.unwrap();
    let there = |name: &str| kit.top.join(name).exists();
    assert!(there("good") && there("last") && !there("bad") && !there("left.txt") && !there("target"));
    assert_eq!(read(&kit.top, "deep/b.txt"), "b\n");
    assert!(!kit.folders().folder("land.1").exists() && !kit.top.join(".git/worktrees").exists());
}

#[tokio::test]
async fn squash_makes_one_commit_and_merge_one_for_each_branch() {
    for (apply, commits) in [(Apply::Squash, "1"), (Apply::Merge, "4")] {
        let kit = Kit::new().await;
        let mut branches = Vec::new();
        for name in ["x", "y"] {
            branches.push(kit.work(name, |path| put(path, name, name)).await);
        }
        put(&kit.top, "untracked", "stays");
        let start = git(&kit.top, &["rev-parse", "HEAD"]).await;
        let folders = kit.services();
        let combined = combine(&folders, &branches, apply).await.unwrap();
        prepare(&folders, &combined).await.unwrap().carry_out().await.unwrap();
        assert_eq!(git(&kit.top, &["rev-parse", "main"]).await, combined.commit().unwrap());
        assert_eq!(git(&kit.top, &["rev-list", "--count", &format!("{start}..HEAD")]).await, commits);
        assert_eq!(git(&kit.top, &["status", "--porcelain"]).await, "?? untracked");
        assert_eq!(git(&kit.top, &["fsck", "--no-dangling"]).await, "");
    }
}

#[tokio::test]
async fn committing_merges_want_a_clean_workspace() {
    let kit = Kit::new().await;
    let step = kit.work("x", |path| put(path, "x", "x")).await;
    put(&kit.top, "a.txt", "changed");
    let folders = kit.services();
    let error = combine(&folders, &[step], Apply::Squash).await.unwrap_err();
    assert!(error.is_conflict() && error.to_string().contains("a.txt"), "{error}");
}

#[tokio::test]
async fn a_workspace_that_changed_meanwhile_is_left_alone() {
    let kit = Kit::new().await;
    let step = kit.work("x", |path| put(path, "x", "x")).await;
    let folders = kit.services();
    let combined = combine(&folders, std::slice::from_ref(&step), Apply::Patch).await.unwrap();
    put(&kit.top, "a.txt", "by the user");
    let before = kit.picture();
    let error = prepare(&folders, &combined).await.err().unwrap();
    assert!(matches!(error, WorktreeError::ParentChanged { .. }) && error.is_conflict(), "{error}");
    assert_eq!(kit.picture(), before);
    // At the very last moment: one file has changed, the others are brought back.
    let more = kit.work("y", |path| ["b1", "b2", "b3"].iter().for_each(|name| put(path, name, "new"))).await;
    let combined = combine(&folders, &[step, more], Apply::Patch).await.unwrap();
    let landing = prepare(&folders, &combined).await.unwrap();
    put(&kit.top, "b2", "by the user");
    let before = kit.picture();
    let error = landing.carry_out().await.unwrap_err();
    assert!(error.to_string().contains("b2"), "{error}");
    assert_eq!(kit.picture(), before);
    assert_eq!(recovered(&kit).await, Some(Fate::Untouched));
}

#[tokio::test]
async fn a_file_that_git_ignores_is_never_written_over() {
    let kit = Kit::new().await;
    let step = kit.work("x", |path| {
        put(path, ".gitignore", "");
        put(path, "mine.log", "of the agent");
    });
    let step = step.await;
    put(&kit.top, "mine.log", "of the user");
    let folders = kit.services();
    let combined = combine(&folders, &[step], Apply::Patch).await.unwrap();
    let error = prepare(&folders, &combined).await.err().unwrap();
    assert!(matches!(&error, WorktreeError::InTheWay { files } if files == &["mine.log"]), "{error}");
    assert_eq!(read(&kit.top, "mine.log"), "of the user");
}

#[tokio::test]
async fn what_governs_claw_comes_from_no_branch() {
    let kit = Kit::new().await;
    let mut branches = Vec::new();
    for (name, file) in [("a", ".claude/settings.json"), ("b", "sub/.mcp.json"), ("c", "fine.json")] {
        branches.push(kit.work(name, |path| put(path, file, "{}")).await);
    }
    let combined = combine(&kit.services(), &branches, Apply::Patch).await.unwrap();
    let why = |file: &str| Spoilt::Governs(vec![file.to_owned()]);
    assert_eq!(
        taken_back(&combined),
        [("a".to_owned(), &why(".claude/settings.json")), ("b".to_owned(), &why("sub/.mcp.json")),]
    );
}

/// Every kind of change there is.
async fn all_kinds(kit: &Kit) -> Folder {
    for name in ["gone", "mode.sh", "was-file", "was-folder/x", "with space", "line\nend", "ünï"] {
        put(&kit.top, name, &format!("{name}\n"));
    }
    symlink("a.txt", kit.top.join("link")).unwrap();
    git(&kit.top, &["add", "-A"]).await;
    git(&kit.top, &["commit", "-q", "-m", "kinds"]).await;
    kit.work("x", |path| {
        for name in ["a.txt", "with space", "line\nend", "ünï", "new/deep/file"] {
            put(path, name, "new\n");
        }
        for name in ["gone", "was-file", "was-folder/x", "link"] {
            std::fs::remove_file(path.join(name)).unwrap();
        }
        std::fs::remove_dir(path.join("was-folder")).unwrap();
        put(path, "was-file/inside", "now a folder\n");
        put(path, "was-folder", "now a file\n");
        symlink("with space", path.join("link")).unwrap();
        let program = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(path.join("mode.sh"), program).unwrap();
    })
    .await
}

#[tokio::test]
async fn a_kill_after_any_change_is_finished_when_the_run_is_opened_again() {
    for (apply, each) in [(Apply::Patch, 1), (Apply::Squash, 5)] {
        let mut last = None;
        for most in (0..20).step_by(each) {
            let kit = Kit::new().await;
            let step = all_kinds(&kit).await;
            let folders = kit.services();
            let combined = combine(&folders, &[step], apply).await.unwrap();
            let landing = prepare(&folders, &combined).await.unwrap();
            let stopped = landing.files(Way::Finish, most).await.is_err();
            if !stopped {
                landing.index().await.unwrap();
            }
            drop(landing);
            assert_eq!(recovered(&kit).await, Some(Fate::Finished(json!("landed"))), "{most}");
            let tree = combined.tree.to_string();
            git(&kit.top, &["add", "-A", "--", ".", ":(exclude).claw"]).await;
            assert_eq!(git(&kit.top, &["write-tree"]).await, tree, "{most}");
            let head = git(&kit.top, &["rev-parse", "HEAD"]).await;
            assert_eq!(apply == Apply::Squash, combined.commit() == Some(head));
            assert_eq!(recovered(&kit).await, None, "once");
            let here: Vec<_> = kit.top.read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
            assert!(!here.iter().any(|name| name.to_string_lossy().starts_with(".claw-")), "{here:?}");
            if !stopped {
                last = Some(most);
                break;
            }
        }
        assert!(last.is_some_and(|last| last > 10), "{last:?}");
    }
}

#[tokio::test]
async fn a_kill_before_the_landing_is_written_down_leaves_nothing() {
    let kit = Kit::new().await;
    let step = kit.work("x", |path| put(path, "x", "x")).await;
    let folders = kit.services();
    let before = kit.picture();
    let combined = combine(&folders, &[step], Apply::Patch).await.unwrap();
    drop(prepare(&folders, &combined).await.unwrap());
    LandingFolder::of(&kit.run, &land(), 1).withdraw().unwrap();
    assert_eq!(recovered(&kit).await, Some(Fate::Untouched));
    assert_eq!(kit.picture(), before);
    assert!(!kit.run.root().join("landing").exists());
}

#[tokio::test]
async fn half_a_landing_is_taken_back_where_somebody_went_on_in_the_workspace() {
    let kit = Kit::new().await;
    let step = all_kinds(&kit).await;
    let folders = kit.services();
    let before = kit.picture();
    let combined = combine(&folders, &[step], Apply::Patch).await.unwrap();
    let landing = prepare(&folders, &combined).await.unwrap();
    landing.files(Way::Finish, 7).await.unwrap_err();
    drop(landing);
    put(&kit.top, "with space", "by the user\n");
    let fate = recovered(&kit).await;
    assert!(matches!(&fate, Some(Fate::TakenBack(why)) if why.contains("with space")), "{fate:?}");
    assert_eq!(read(&kit.top, "with space"), "by the user\n");
    put(&kit.top, "with space", "with space\n");
    assert_eq!(kit.picture(), before);
}

#[tokio::test]
async fn a_whole_landing_stays_although_somebody_went_on_with_it() {
    let kit = Kit::new().await;
    let step = kit.work("x", |path| ["x", "y"].iter().for_each(|name| put(path, name, "new\n"))).await;
    let folders = kit.services();
    let combined = combine(&folders, &[step], Apply::Patch).await.unwrap();
    prepare(&folders, &combined).await.unwrap().carry_out().await.unwrap();
    put(&kit.top, "y", "by the user\n");
    assert_eq!(recovered(&kit).await, Some(Fate::Finished(json!("landed"))));
    assert_eq!((read(&kit.top, "x"), read(&kit.top, "y")), ("new\n".into(), "by the user\n".into()));
}

#[tokio::test]
async fn a_landing_whose_attempt_failed_is_taken_back_and_one_that_succeeded_is_not_made_again() {
    let kit = Kit::new().await;
    let step = kit.work("x", |path| put(path, "x", "new\n")).await;
    let folders = kit.services();
    let policy = || Arc::new(SandboxPolicy::full(&kit.top));
    for (state, there) in [(EndState::Succeeded, true), (EndState::Failed, false)] {
        let combined = combine(&folders, std::slice::from_ref(&step), Apply::Patch).await.unwrap();
        if combined.changes_something() {
            prepare(&folders, &combined).await.unwrap().carry_out().await.unwrap();
        }
        if state == EndState::Succeeded {
            std::fs::remove_file(kit.top.join("x")).unwrap();
        }
        assert!(recover(&kit.run, &kit.top, policy(), |_, _| Some(state)).await.unwrap().is_empty());
        assert!(!kit.top.join("x").exists(), "{there}");
        assert!(!kit.run.root().join("landing").exists());
    }
}

#[tokio::test]
async fn a_stale_lock_of_the_index_that_is_ours_does_not_stop_the_end() {
    let kit = Kit::new().await;
    let step = kit.work("x", |path| put(path, "x", "x")).await;
    let folders = kit.services();
    let combined = combine(&folders, &[step], Apply::Squash).await.unwrap();
    let landing = prepare(&folders, &combined).await.unwrap();
    landing.files(Way::Finish, usize::MAX).await.unwrap();
    drop(landing);
    let git_dir = kit.top.join(".git");
    std::fs::copy(git_dir.join("index"), git_dir.join("index.land.1")).unwrap();
    std::fs::hard_link(git_dir.join("index.land.1"), git_dir.join("index.lock")).unwrap();
    assert_eq!(recovered(&kit).await, Some(Fate::Finished(json!("landed"))));
    assert_eq!(git(&kit.top, &["status", "--porcelain"]).await, "");
}

#[tokio::test]
async fn no_symlink_of_an_agent_leads_a_landing_out_of_the_workspace() {
    let kit = Kit::new().await;
    let step = kit.work("x", |path| put(path, "deep/b.txt", "new\n")).await;
    let folders = kit.services();
    let combined = combine(&folders, &[step], Apply::Patch).await.unwrap();
    let landing = prepare(&folders, &combined).await.unwrap();
    let outside = kit.top.parent().unwrap().join("outside");
    put(&outside, "b.txt", "b\n");
    std::fs::remove_dir_all(kit.top.join("deep")).unwrap();
    symlink(&outside, kit.top.join("deep")).unwrap();
    landing.carry_out().await.unwrap_err();
    assert_eq!(read(&outside, "b.txt"), "b\n");
}

#[tokio::test]
async fn a_repository_inside_the_workspace_is_left_alone() {
    let kit = Kit::new().await;
    let inner = kit.top.join("inner");
    put(&inner, "x", "x");
    git(&inner, &["init", "-q"]).await;
    git(&inner, &["add", "-A"]).await;
    git(&inner, &["commit", "-q", "-m", "x"]).await;
    git(&kit.top, &["add", "-A"]).await;
    git(&kit.top, &["commit", "-q", "-m", "inner"]).await;
    let step = kit.work("x", |path| put(path, "y", "y")).await;
    put(&inner, "x", "changed");
    let folders = kit.services();
    let combined = combine(&folders, &[step], Apply::Patch).await.unwrap();
    prepare(&folders, &combined).await.unwrap().carry_out().await.unwrap();
    assert_eq!((read(&inner, "x"), read(&kit.top, "y")), ("changed".into(), "y".into()));
}
