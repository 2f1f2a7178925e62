use super::GrepSearch;
use crate::builtin::testing::{SECRET, Work, call, ok, refused, tree};
use serde_json::json;

#[tokio::test]
async fn content_is_found_with_lines_around_it() {
    let work = tree();
    let agent = work.agent("A");
    let files = ok(&GrepSearch, &agent, json!({"pattern": "needle"})).await;
    assert_eq!(files.text, "src/c.txt\nsrc/deep/b.rs");
    let input = json!({"pattern": "needle", "output_mode": "content", "-i": true, "-C": 1, "type": "rust"});
    let lines = ok(&GrepSearch, &agent, input).await;
    assert_eq!(
        lines.text,
        "src/a.rs-1-one\nsrc/a.rs:2:Needle two\nsrc/a.rs-3-three\nsrc/deep/b.rs:1:needle\nsrc/deep/b.rs:2:needle"
    );
    assert_eq!((lines.data["numMatches"].as_u64(), lines.data["numFiles"].as_u64()), (Some(3), Some(2)));
    let count =
        ok(&GrepSearch, &agent, json!({"pattern": "needle", "output_mode": "count", "glob": "*.rs"})).await;
    assert_eq!(count.text, "src/deep/b.rs:2");
    let across = json!({"pattern": "one.*three", "multiline": true, "output_mode": "content", "-n": false});
    assert_eq!(
        ok(&GrepSearch, &agent, across).await.text,
        "src/a.rs:one\nsrc/a.rs:Needle two\nsrc/a.rs:three"
    );
    let one = json!({"pattern": "crab|🦀", "path": "src/c.txt", "output_mode": "content"});
    assert_eq!(ok(&GrepSearch, &agent, one).await.text, "src/c.txt:1:needle 🦀");
    assert_eq!(ok(&GrepSearch, &agent, json!({"pattern": "nowhere"})).await.text, "no matches");
}

#[tokio::test]
async fn a_long_answer_says_where_to_go_on() {
    let work = Work::new();
    work.put("f", "x\n".repeat(1000));
    let agent = work.agent("A");
    let input = json!({"pattern": "x", "output_mode": "content", "head_limit": 2, "offset": 3});
    let found = ok(&GrepSearch, &agent, input).await;
    assert_eq!(found.text, "f:4:x\nf:5:x\n[cut; go on with offset 5, or narrow the search]");
    let all = ok(&GrepSearch, &agent, json!({"pattern": "x", "output_mode": "content"})).await.text;
    assert_eq!(all.lines().count(), 251);
}

#[tokio::test]
async fn bad_searches_name_what_is_wrong() {
    let work = tree();
    let agent = work.agent("A");
    assert!(refused(&GrepSearch, &agent, json!({"pattern": "("})).await.contains("pattern: "));
    assert!(
        refused(&GrepSearch, &agent, json!({"pattern": "x", "type": "klingon"})).await.contains("type: ")
    );
    assert!(refused(&GrepSearch, &agent, json!({"pattern": "x", "path": "src/pipe"})).await.contains("FIFO"));
    let text = refused(&GrepSearch, &agent, json!({"pattern": "x", "output_mode": "all"})).await;
    assert!(text.contains("output_mode: unknown variant `all`"), "{text}");
}

#[tokio::test]
async fn an_ignore_file_that_is_a_pipe_holds_up_nothing() {
    let work = Work::new();
    work.put("src/a.txt", "needle");
    work.put("trap/b.txt", "needle");
    for name in [".gitignore", "trap/.ignore"] {
        rustix::fs::mkfifoat(rustix::fs::CWD, work.path(name), rustix::fs::Mode::RWXU).unwrap();
    }
    let agent = work.agent("a");
    let found = ok(&GrepSearch, &agent, json!({ "pattern": "needle", "path": "src" })).await;
    assert!(found.text.contains("a.txt"), "{}", found.text);
    let found = call(&GrepSearch, &agent, json!({ "pattern": "needle", "path": "." })).await;
    assert!(!found.is_ok_and(|found| found.text.contains("b.txt")));
}

#[tokio::test]
async fn a_cut_leaves_no_part_of_a_secret() {
    let work = Work::new();
    for before in [1990, 1995, 1999] {
        work.put("f", format!("{}{SECRET} needle", "a".repeat(before)));
        let input = json!({"pattern": "needle", "output_mode": "content"});
        let text = ok(&GrepSearch, &work.agent("A"), input).await.text;
        assert!(text.contains("cut]") && !text.contains("sk-"), "{text}");
    }
}
