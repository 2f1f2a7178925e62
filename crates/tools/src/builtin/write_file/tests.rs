use super::WriteFile;
use crate::builtin::ReadFile;
use crate::builtin::testing::{Work, ok, refused};
use crate::tool::Tool;
use serde_json::json;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

#[tokio::test]
async fn a_new_file_gets_its_folders_and_an_old_one_keeps_its_ends() {
    let work = Work::new();
    let agent = work.agent("A");
    let made = ok(&WriteFile, &agent, json!({"filePath": "a/b/c.txt", "content": "x\n"})).await;
    assert_eq!((made.text.as_str(), &made.data["type"]), ("created a/b/c.txt (2 bytes)", &json!("create")));
    work.put("crlf", b"\xEF\xBB\xBFa\r\nb\r\n");
    let updated = ok(&WriteFile, &agent, json!({"path": "crlf", "content": "a\nB\n"})).await;
    assert_eq!(work.bytes("crlf"), b"\xEF\xBB\xBFa\r\nB\r\n");
    assert_eq!(updated.data["type"], "update");
    assert!(updated.data["structuredPatch"][0]["lines"].as_array().unwrap().contains(&json!("+B")));
}

#[tokio::test]
async fn modes_and_links_stay() {
    let work = Work::new();
    let agent = work.agent("A");
    let target = work.put("other/target", "old");
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink("other/target", work.path("link")).unwrap();
    symlink("other/new", work.path("dangling")).unwrap();
    let input = json!({"path": "link", "content": "new"});
    assert_eq!(WriteFile.effect(&agent, &input).unwrap().writes, std::slice::from_ref(&target));
    ok(&WriteFile, &agent, input).await;
    ok(&WriteFile, &agent, json!({"path": "dangling", "content": "x"})).await;
    assert!(work.path("link").is_symlink() && work.path("dangling").is_symlink());
    assert_eq!((work.bytes("other/target"), work.bytes("other/new")), (b"new".to_vec(), b"x".to_vec()));
    assert_eq!(target.metadata().unwrap().mode() & 0o777, 0o755);
    std::fs::hard_link(&target, work.path("second")).unwrap();
    let text = ok(&WriteFile, &agent, json!({"path": "second", "content": "2"})).await.text;
    assert!(text.contains("1 other hard link(s) to it keep the old content"), "{text}");
    assert_eq!((work.bytes("second"), work.bytes("other/target")), (b"2".to_vec(), b"new".to_vec()));
    assert_eq!(std::fs::read_dir(work.path("other")).unwrap().count(), 2, "nothing is left beside");
}

#[tokio::test]
async fn an_old_copy_never_overwrites_the_change_of_a_sibling() {
    for path in ["f", "link"] {
        let work = Work::new();
        let (a, b) = (work.agent("A"), work.agent("B"));
        work.put("f", "1\n2\n");
        symlink("f", work.path("link")).unwrap();
        ok(&ReadFile, &a, json!({"path": "f"})).await;
        ok(&ReadFile, &b, json!({"path": path})).await;
        ok(&WriteFile, &b, json!({"path": path, "content": "B\n2\n"})).await;
        let text = refused(&WriteFile, &a, json!({"path": "f", "content": "1\nA\n"})).await;
        assert!(text.contains("changed since you read it, by agent B"), "{text}");
        assert_eq!(work.bytes("f"), b"B\n2\n");
        ok(&ReadFile, &a, json!({"path": "f"})).await;
        ok(&WriteFile, &a, json!({"path": "f", "content": "B\nA\n"})).await;
        ok(&WriteFile, &a, json!({"path": "f", "content": "B\nAA\n"})).await;
        let text = refused(&WriteFile, &work.agent("C"), json!({"path": "f", "content": "x"})).await;
        assert!(text.contains("was written by agent A and you have not read it"), "{text}");
    }
}

#[tokio::test]
async fn what_is_no_file_is_not_written() {
    let work = Work::new();
    let agent = work.agent("A");
    std::fs::create_dir(work.path("d")).unwrap();
    assert!(refused(&WriteFile, &agent, json!({"path": "d", "content": ""})).await.contains("is a folder"));
    assert!(
        refused(&WriteFile, &agent, json!({"path": "/dev/null", "content": ""})).await.contains("device")
    );
    let text = refused(&WriteFile, &agent, json!({"path": "x"})).await;
    assert!(text.contains("missing field `content`"), "{text}");
}

#[tokio::test]
async fn what_was_judged_is_what_is_written_whatever_moves_meanwhile() {
    let work = Work::new();
    let agent = work.agent("a");
    std::fs::create_dir_all(work.path("d")).unwrap();
    std::fs::create_dir_all(work.path("outside")).unwrap();
    let input = json!({ "path": "d/x", "content": "new" });
    let judged = WriteFile.effect(&agent, &input).unwrap();
    // Between the judgement and the call the folder becomes a way out, and the agent's own folder moves.
    std::fs::remove_dir(work.path("d")).unwrap();
    std::os::unix::fs::symlink(work.path("outside"), work.path("d")).unwrap();
    agent.folder.move_to(work.path("outside"));
    assert!(WriteFile.call(&agent, &judged, input).await.is_err());
    assert_eq!(std::fs::read_dir(work.path("outside")).unwrap().count(), 0);
}
