use super::EditFile;
use crate::builtin::testing::{SECRET, Work, call, ok, refused};
use crate::builtin::{ReadFile, WriteFile};
use futures_util::future::join_all;
use serde_json::json;

#[tokio::test]
async fn twenty_edits_at_once_are_all_in_the_file() {
    let work = Work::new();
    let agent = work.agent("A");
    let lines: String = (0..20).map(|n| format!("line{n:02}.{}\n", "x".repeat(5000))).collect();
    for _ in 0..10 {
        work.put("n.txt", &lines);
        let inputs = (0..20).map(|n| json!({"path": "n.txt", "old_string": format!("line{n:02}."), "new_string": format!("EDIT{n:02}.")}));
        for done in join_all(inputs.map(|input| call(&EditFile, &agent, input))).await {
            done.unwrap();
        }
        assert_eq!(work.bytes("n.txt"), lines.replace("line", "EDIT").as_bytes());
        ok(&ReadFile, &agent, json!({"path": "n.txt"})).await;
        work.put("n.txt", &lines);
        ok(&ReadFile, &agent, json!({"path": "n.txt"})).await;
    }
}

#[tokio::test]
async fn not_found_and_found_too_often_say_where_to_look() {
    let work = Work::new();
    let agent = work.agent("A");
    work.put("f", "fn a() {}\n  let total = 1;\nx\nx\n");
    let edit = |old: &str| json!({"file_path": "f", "oldString": old, "newString": "new"});
    let text = refused(&EditFile, &agent, edit("let total  = 1;")).await;
    assert!(text.ends_with("the nearest to its first line is line 2:   let total = 1;"), "{text}");
    let text = refused(&EditFile, &agent, edit("let totel = 1;")).await;
    assert!(text.contains("line 2"), "{text}");
    assert!(
        refused(&EditFile, &agent, edit("quite another thing"))
            .await
            .ends_with("nor a line like it; read the file again")
    );
    let text = refused(&EditFile, &agent, edit("x")).await;
    assert!(text.contains("is found 2 times") && text.contains("(lines 3, 4)"), "{text}");
    assert!(refused(&EditFile, &agent, edit("new")).await.contains("the same"));
    assert!(refused(&EditFile, &agent, edit("")).await.contains("empty"));
    let all = ok(
        &EditFile,
        &agent,
        json!({"path": "f", "old_string": "x", "new_string": "y", "replace_all": true}),
    )
    .await;
    assert_eq!(all.text, "edited f at 2 places");
    assert_eq!(work.bytes("f"), b"fn a() {}\n  let total = 1;\ny\ny\n");
}

#[tokio::test]
async fn other_encodings_stay_as_they_are() {
    let work = Work::new();
    let agent = work.agent("A");
    work.put("latin1", b"caf\xE9\ntwo\n");
    let text =
        refused(&EditFile, &agent, json!({"path": "latin1", "old_string": "two", "new_string": "TWO"})).await;
    assert!(text.contains("not UTF-8 (byte 0xE9 at offset 3)"), "{text}");
    assert_eq!(work.bytes("latin1"), b"caf\xE9\ntwo\n");
}

#[tokio::test]
async fn an_edit_of_what_changed_since_it_was_read_is_refused() {
    let work = Work::new();
    let (a, b) = (work.agent("A"), work.agent("B"));
    work.put("f", "1\n2\n");
    ok(&ReadFile, &a, json!({"path": "f"})).await;
    ok(&WriteFile, &b, json!({"path": "f", "content": "1\n3\n"})).await;
    let edit = json!({"path": "f", "old_string": "1", "new_string": "one"});
    let text = refused(&EditFile, &a, edit.clone()).await;
    assert!(text.contains("changed since you read it, by agent B; read it again"), "{text}");
    ok(&ReadFile, &a, json!({"path": "f"})).await;
    assert_eq!(ok(&EditFile, &a, edit).await.text, "edited f at line 1");
    assert_eq!(work.bytes("f"), b"one\n3\n");
}

#[tokio::test]
async fn a_million_matches_and_long_lines_cost_no_more_than_their_length() {
    let work = Work::new();
    work.put("x.txt", "x".repeat(1_000_000));
    let agent = work.agent("a");
    let input = json!({ "path": "x.txt", "old_string": "x", "new_string": "yy", "replace_all": true });
    ok(&EditFile, &agent, input).await;
    assert_eq!(work.bytes("x.txt").len(), 2_000_000);
    work.put("long.txt", format!("{}\n", "ab".repeat(150)).repeat(5_000));
    let input = json!({ "path": "long.txt", "old_string": "cd".repeat(150), "new_string": "z" });
    assert!(call(&EditFile, &agent, input).await.is_err());
}

#[tokio::test]
async fn the_nearest_line_holds_no_part_of_a_secret() {
    let work = Work::new();
    work.put("f", format!("{}needle {SECRET}", "a".repeat(180)));
    let input = json!({"path": "f", "old_string": "needle\nmore", "new_string": "x"});
    let text = refused(&EditFile, &work.agent("A"), input).await;
    assert!(text.contains("nearest") && !text.contains("sk-"), "{text}");
}
