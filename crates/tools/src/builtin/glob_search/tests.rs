use super::GlobSearch;
use crate::builtin::testing::{Work, ok, refused, tree};
use serde_json::json;

#[tokio::test]
async fn names_are_found_by_pattern_without_what_is_ignored() {
    let work = tree();
    let agent = work.agent("A");
    let mut found = ok(&GlobSearch, &agent, json!({"pattern": "**/*.rs"})).await.text;
    assert!(!found.contains("target"));
    let mut lines: Vec<_> = found.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["src/a.rs", "src/deep/b.rs"]);
    found = ok(&GlobSearch, &agent, json!({"pattern": "*", "path": "src"})).await.text;
    lines = found.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["src/a.rs", "src/c.txt", "src/deep/"]);
    found = ok(&GlobSearch, &agent, json!({"pattern": "src/d*/*.rs"})).await.text;
    assert_eq!(found, "src/deep/b.rs");
    assert_eq!(ok(&GlobSearch, &agent, json!({"pattern": "*.zig"})).await.text, "no files found");
    assert!(refused(&GlobSearch, &agent, json!({"pattern": "no/*.x"})).await.contains("No such file"));
    assert!(refused(&GlobSearch, &agent, json!({"pattern": "{a"})).await.contains("pattern: "));
}

#[tokio::test]
async fn many_names_are_cut_and_said() {
    let work = Work::new();
    (0..120).for_each(|n| drop(work.put(&format!("f{n}"), "")));
    let found = ok(&GlobSearch, &work.agent("A"), json!({"pattern": "f*"})).await;
    assert!(found.text.ends_with("[120 files match, the newest 100 are shown]"));
    assert_eq!((found.data["numFiles"].as_u64(), &found.data["truncated"]), (Some(100), &json!(true)));
}
