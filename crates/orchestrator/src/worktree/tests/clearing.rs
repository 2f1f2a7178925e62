use super::kit::{Kit, folder, git, put};
use crate::plan::model::Base;
use crate::rundir::take_lock;
use crate::worktree::gc::{BranchState, clear, list};

#[tokio::test]
async fn merged_work_goes_and_unmerged_work_stays_without_force() {
    let kit = Kit::new().await;
    kit.work("empty", |_| {}).await;
    kit.work("taken", |path| put(path, "taken", "1")).await;
    kit.work("squashed", |path| put(path, "squashed", "2")).await;
    kit.work("lost", |path| put(path, "lost", "3")).await;
    let id = kit.id();
    git(&kit.top, &["merge", "-q", "--no-ff", "-m", "m", &format!("claw/{id}/taken.1")]).await;
    git(&kit.top, &["merge", "-q", "--squash", &format!("claw/{id}/squashed.1")]).await;
    git(&kit.top, &["commit", "-q", "-m", "s"]).await;
    put(&kit.top, "later", "more");
    git(&kit.top, &["add", "-A"]).await;
    git(&kit.top, &["commit", "-q", "-m", "later"]).await;
    // Its folder is there, with work that is on no branch yet.
    let open = kit.open(&folder("crashed", Base::ParentHead)).await;
    put(&open.path, "crashed", "4");

    let items = list(&kit.scope()).await.unwrap();
    let states: Vec<_> = items.iter().map(|item| (item.name.as_str(), item.state)).collect();
    assert_eq!(
        states,
        [
            ("crashed.1", BranchState::Empty),
            ("empty.1", BranchState::Empty),
            ("lost.1", BranchState::Unmerged),
            ("squashed.1", BranchState::Merged),
            ("taken.1", BranchState::Merged),
        ]
    );
    assert!(items[0].bytes > 0 && items[0].folder.as_ref() == Some(&open.path));
    // The run has no end: it may go on.
    let done = clear(&kit.scope(), &items, false).await.unwrap();
    assert!(done.branches.is_empty() && done.folders.is_empty(), "{done:?}");
    assert!(open.path.exists());

    std::fs::remove_dir_all(kit.run.root()).unwrap();
    let items = list(&kit.scope()).await.unwrap();
    let done = clear(&kit.scope(), &items, false).await.unwrap();
    let names: Vec<_> = done.branches.iter().map(|(name, _)| name.rsplit('/').next().unwrap()).collect();
    assert_eq!(names, ["empty.1", "squashed.1", "taken.1"]);
    assert_eq!(done.folders, std::slice::from_ref(&open.path));
    assert_eq!(git(&kit.top, &["show", &format!("claw/{id}/crashed.1:crashed")]).await, "4");

    let items = list(&kit.scope()).await.unwrap();
    assert_eq!(items.len(), 2);
    let done = clear(&kit.scope(), &items, true).await.unwrap();
    assert_eq!(done.branches.len(), 2, "{done:?}");
    assert!(list(&kit.scope()).await.unwrap().is_empty());
    assert!(!kit.worktrees.join(id.to_string()).exists());
}

#[tokio::test]
async fn nothing_of_a_run_that_somebody_works_on_is_touched() {
    let kit = Kit::new().await;
    let open = kit.open(&folder("a", Base::ParentHead)).await;
    let items = list(&kit.scope()).await.unwrap();
    let held = take_lock(&kit.run, None).unwrap();
    let done = clear(&kit.scope(), &items, true).await.unwrap();
    assert!(done.folders.is_empty() && done.branches.is_empty() && done.kept.len() == 1, "{done:?}");
    assert!(open.path.exists());
    assert!(list(&kit.scope()).await.unwrap()[0].is_held);
    drop(held);
    assert_eq!(clear(&kit.scope(), &items, true).await.unwrap().folders, [open.path]);
}
