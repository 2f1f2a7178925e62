use super::ReadFile;
use crate::builtin::testing::{SECRET, Work, ok, refused};
use rustix::fs::{CWD, FileType, Mode, mkfifoat};
use serde_json::json;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

#[tokio::test]
async fn lines_are_numbered_and_parts_say_where_to_go_on() {
    let work = Work::new();
    work.put("f", "one\ntwo\r\nthree\n");
    let agent = work.agent("A");
    let all = ok(&ReadFile, &agent, json!({"file_path": "f"})).await;
    assert_eq!(all.text, "     1\tone\n     2\ttwo\n     3\tthree");
    assert_eq!(all.data["file"]["totalLines"], 3);
    let part = ok(&ReadFile, &agent, json!({"path": "f", "offset": 2, "limit": 1})).await;
    assert_eq!(part.text, "     2\ttwo\n[3 lines in all; go on with offset 3]");
    let past = ok(&ReadFile, &agent, json!({"path": "f", "offset": 9})).await;
    assert_eq!(past.text, "[the file has 3 lines; line 9 is past its end]");
    work.put("empty", "");
    assert_eq!(ok(&ReadFile, &agent, json!({"path": "empty"})).await.text, "[the file is empty]");
}

#[tokio::test]
async fn what_is_no_regular_file_is_named_and_not_opened() {
    let work = Work::new();
    let agent = work.agent("A");
    mkfifoat(CWD, work.path("pipe"), Mode::RWXU).unwrap();
    let _socket = UnixListener::bind(work.path("sock")).unwrap();
    symlink("self", work.path("self")).unwrap();
    std::fs::create_dir(work.path("dir")).unwrap();
    let cases = [
        ("pipe", "a named pipe (FIFO)"),
        ("sock", "a socket"),
        ("dir", "a folder; list it with glob_search"),
        ("/dev/zero", "a character device"),
        ("/proc/self/environ", "belongs to a running process"),
        ("/proc/self/root/proc/self/environ", "belongs to a running process"),
        ("self", "symbolic links"),
        ("missing", "No such file"),
    ];
    for (path, says) in cases {
        let text = refused(&ReadFile, &agent, json!({"path": path})).await;
        assert!(text.contains(says), "{path}: {text}");
    }
    assert_eq!(FileType::from_raw_mode(rustix::fs::stat(work.path("pipe")).unwrap().st_mode), FileType::Fifo);
}

#[tokio::test]
async fn binary_files_are_named_and_images_are_given() {
    let work = Work::new();
    let agent = work.agent("A");
    work.put("a.pdf", b"%PDF-1.7\0");
    work.put("b", b"text\0");
    work.put("c.png", b"\x89PNG\r\n\x1a\n");
    assert!(
        refused(&ReadFile, &agent, json!({"path": "a.pdf"}))
            .await
            .contains("it is a PDF, whose text is not read here")
    );
    assert!(
        refused(&ReadFile, &agent, json!({"path": "b"})).await.contains("binary (a zero byte at offset 4)")
    );
    let image = ok(&ReadFile, &agent, json!({"path": "c.png"})).await;
    assert_eq!(image.images, [("image/png".to_owned(), "iVBORw0KGgo=".to_owned())]);
}

#[tokio::test]
async fn huge_files_are_read_in_parts_only() {
    let work = Work::new();
    let agent = work.agent("A");
    work.put("sparse", "");
    claw_kernel::durable::truncate(&work.path("sparse"), 3 << 30).unwrap();
    assert!(
        refused(&ReadFile, &agent, json!({"path": "sparse"})).await.contains("has 3072 MiB; read a part")
    );
    let text = refused(&ReadFile, &agent, json!({"path": "sparse", "limit": 5})).await;
    assert!(text.contains("it is binary"), "{text}");
    work.put("long", "line\n".repeat(3_000_000));
    let part = ok(&ReadFile, &agent, json!({"path": "long", "offset": 1000, "limit": 2})).await;
    assert_eq!(part.text, "  1000\tline\n  1001\tline\n[there may be more; go on with offset 1002]");
}

#[tokio::test]
async fn long_lines_and_long_files_are_cut_between_characters() {
    let work = Work::new();
    let agent = work.agent("A");
    for n in 0..4 {
        work.put("f", format!("{}{}", "a".repeat(n), "🦀".repeat(20_000)));
        let text = ok(&ReadFile, &agent, json!({"path": "f"})).await.text;
        assert!(text.ends_with(&format!("[… {} bytes cut]", 80_000 - 4 * (2_000 - n))), "{}", &text[7_900..]);
        assert!(!text.contains('\u{FFFD}'));
    }
    work.put("g", "x".repeat(200) + "\n" + &"y\n".repeat(9_000));
    let text = ok(&ReadFile, &agent, json!({"path": "g"})).await.text;
    assert!(text.ends_with("[9001 lines in all; go on with offset 2001]"), "{}", &text[text.len() - 100..]);
}

#[tokio::test]
async fn a_cut_leaves_no_part_of_a_secret() {
    let work = Work::new();
    for (before, after) in [(1990, 1), (1999, 0), (1990, 20_000)] {
        work.put("f", format!("{}{SECRET}{}", "a".repeat(before), "b".repeat(after)));
        let text = ok(&ReadFile, &work.agent("A"), json!({"path": "f"})).await.text;
        assert!(text.contains("cut]") && !text.contains("sk-"), "{text}");
    }
}
