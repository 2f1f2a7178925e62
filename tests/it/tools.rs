//! The tools on the real machine, called by a scripted model: what they leave behind, what they refuse to touch.

use claw_kit::{
    Claw, Gate, Output, Pty, Reply, Request, Route, Sandbox, ScriptedProvider, processes_with, run_program,
    wait_until,
};
use serde_json::{Value, json};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(20);

/// One message with these calls, numbered from 0.
fn calls(list: &[(&str, Value)]) -> Reply {
    list.iter().enumerate().fold(Reply::empty(), |reply, (n, (name, input))| {
        reply.with_tool(&format!("call_{n}"), name, input.clone())
    })
}

/// A model that sends these messages one after the other, then says `done`.
fn model(messages: &[&[(&str, Value)]]) -> ScriptedProvider {
    let calls = messages.iter().map(|list| Route::reply(calls(list)).times(1));
    ScriptedProvider::new(calls.chain([Route::reply(Reply::text("done"))]))
}

fn bash(command: &str) -> (&'static str, Value) {
    ("bash", json!({"command": command}))
}

fn run(sandbox: &Sandbox) -> Output {
    let output = Claw::new(CLAW, sandbox).args(["-p", "go"]).run(BOUND).expect_code(0);
    assert!(!output.stderr.contains("panicked"), "{output}");
    output
}

/// The results that the last request carries, as text, in order, with whether each is an error.
fn results(request: &Request) -> Vec<(String, bool)> {
    let text = |block: &Value| match &block["content"] {
        Value::String(text) => text.clone(),
        list => list.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect(),
    };
    let last = request.messages().last().cloned().unwrap_or_default();
    let blocks = last["content"].as_array().cloned().unwrap_or_default();
    let results = blocks.iter().filter(|block| block["type"] == "tool_result");
    results.map(|block| (text(block), block["is_error"].as_bool().unwrap_or(false))).collect()
}

#[test]
fn a_command_that_leaves_something_behind_returns_and_says_what_was_ended() {
    let commands = [
        "sleep 7461 & echo started",
        "(sleep 7462 >/dev/null &) ; echo x",
        "sleep 7463 2>/dev/null & exit 3",
        "yes > /dev/null & disown; echo y",
        "setsid sleep 7464 & echo z",
    ];
    let list: Vec<_> = commands.iter().map(|command| bash(command)).collect();
    let provider = model(&[&list]);
    let sandbox = Sandbox::anthropic(&provider);
    let output = run(&sandbox);
    assert!(output.took < Duration::from_secs(6) && !output.left_behind, "{output}");
    let results = results(&provider.last_request());
    for (result, word) in results.iter().zip(["started", "x", "3", "y", "z"]) {
        assert!(result.0.contains(word), "{result:?}");
        assert!(
            result.0.contains("ended") || result.0.contains("background"),
            "no word of what was left: {result:?}"
        );
    }
    assert_eq!(processes_with("sleep 746"), 0);
}

#[test]
fn prompts_get_no_terminal_and_no_input_and_leave_the_screen_alone() {
    let commands = [
        "cat",
        "read x </dev/tty && echo got",
        "git init -q r && cd r && echo a > a && git add a && git -c user.name=T -c user.email=t@example.org commit",
        "stty -echo </dev/tty; printf '\\033[?25l' > /dev/tty; echo over",
    ];
    let list: Vec<_> = commands.iter().map(|command| bash(command)).collect();
    let provider = model(&[&list]);
    let sandbox = Sandbox::anthropic(&provider);
    let output = Pty::new(CLAW, &sandbox).args(["-p", "go"]).start().wait(Duration::from_secs(10));
    assert_eq!(output.code, 0, "{}", output.raw);
    assert!(output.cooked && !output.screen.cursor_hidden, "{:?}", output.raw);
    let results = results(&provider.last_request());
    assert_eq!(results.len(), 4);
    assert!(!results[1].0.contains("got"), "{results:?}");
    let commits = run_program(&sandbox.project().join("r"), "git", &["log", "--oneline"]);
    assert_eq!(commits, None, "a commit without a message");
}

#[test]
fn a_time_limit_ends_the_whole_group_and_keeps_what_came() {
    let limited = |command: &str| ("bash", json!({"command": command, "timeout": 1000}));
    let list = [
        limited("echo before; sh -c 'sleep 7471 & sleep 7472'"),
        limited("trap '' TERM; echo deaf; while :; do sleep 7.473; done"),
    ];
    let provider = model(&[&list]);
    let sandbox = Sandbox::anthropic(&provider);
    let output = run(&sandbox);
    assert!(output.took < Duration::from_secs(8), "{output}");
    for (result, word) in results(&provider.last_request()).iter().zip(["before", "deaf"]) {
        assert!(result.0.contains("timed out after 1000 ms") && result.0.contains(word), "{result:?}");
    }
    assert_eq!(processes_with("sleep 747") + processes_with("sleep 7.473"), 0);
}

#[test]
fn output_is_cut_between_characters_and_binary_is_harmless() {
    let mut list: Vec<_> = (0..4)
        .chain(29_990..30_004)
        .map(|n| bash(&format!("head -c {n} /dev/zero | tr '\\0' a; for i in 1 2 3 4 5 6 7 8; do printf 'é日🦀👩‍👩‍👧'; done; head -c 40000 /dev/zero | tr '\\0' b; printf '🦀'")))
        .collect();
    list.push(bash("head -c 100000 /dev/urandom"));
    list.push(bash("printf 'a\\000b\\033[31mred\\033[0m'"));
    let provider = model(&[&list]);
    let sandbox = Sandbox::anthropic(&provider);
    run(&sandbox);
    let results = results(&provider.last_request());
    assert_eq!(results.len(), list.len());
    for (text, is_error) in &results[..18] {
        assert!(!is_error && !text.contains('\u{fffd}'), "a character was cut in two");
        assert!(text.len() < 40_000 && text.contains("bytes"), "the cut is not said: {} bytes", text.len());
        assert!(text.ends_with('🦀') || text.contains("b🦀"), "the end is kept");
    }
    assert!(results[18].0.len() < 200_000);
}

#[test]
fn what_is_no_plain_file_is_named_and_not_opened() {
    let read = |path: &str| ("read_file", json!({"path": path}));
    let list = [
        read("pipe"),
        read("/dev/zero"),
        read("folder"),
        read("me"),
        read("empty.txt"),
        ("read_file", json!({"path": "three.txt", "offset": 50})),
        ("read_file", json!({"path": "sparse", "limit": 5})),
        read("binary"),
        ("grep_search", json!({"pattern": "needle", "path": "."})),
    ];
    let provider = model(&[&list]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("three.txt", "one\ntwo needle\nthree\n");
    sandbox.write("empty.txt", "");
    sandbox.write("binary", [0u8, 159, 146, 150, 0, 1, 2]);
    let made = run_program(
        &sandbox.project(),
        "sh",
        &["-c", "mkfifo pipe && mkdir folder && ln -s me me && truncate -s 3G sparse"],
    );
    assert!(made.is_some());
    // Everything may be read here: so it is the tool that says no.
    let args = ["-p", "go", "--permission-mode", "danger-full-access", "--allow-root"];
    let output = Claw::new(CLAW, &sandbox).args(args).run(BOUND).expect_code(0);
    assert!(output.took < Duration::from_secs(5), "{output}");
    let results = results(&provider.last_request());
    for (n, words) in [
        (0, &["pipe", "fifo", "FIFO"][..]),
        (1, &["device"]),
        (2, &["folder", "directory"]),
        (3, &["link", "loop", "levels"]),
        (4, &["empty"]),
        (5, &["3 lines", "3"]),
        (6, &["MiB", "large", "binary"]),
        (7, &["binary"]),
        (8, &["three.txt"]),
    ] {
        assert!(words.iter().any(|word| results[n].0.contains(word)), "call {n}: {:?}", results[n]);
    }
    for n in [0, 1, 2, 3, 7] {
        assert!(results[n].1, "call {n} is no error: {:?}", results[n]);
    }
}

#[test]
fn an_edit_keeps_line_ends_and_byte_order_mark() {
    /// Name, bytes before, the edit, bytes after where it is not refused.
    type Case = (&'static str, &'static [u8], Value, Option<&'static [u8]>);
    let files: [Case; 4] = [
        (
            "crlf.txt",
            b"\xEF\xBB\xBFone\r\ntwo\r\nthree",
            json!({"old_string": "two\n", "new_string": "TWO\nNEW\n"}),
            Some(b"\xEF\xBB\xBFone\r\nTWO\r\nNEW\r\nthree"),
        ),
        (
            "mixed.txt",
            b"one\r\ntwo\nthree\r\n",
            json!({"old_string": "two", "new_string": "TWO"}),
            Some(b"one\r\nTWO\nthree\r\n"),
        ),
        ("twice.txt", b"same\r\nsame\r\n", json!({"old_string": "same\n", "new_string": "other\n"}), None),
        ("latin1.txt", b"caf\xE9\ntwo\n", json!({"old_string": "two", "new_string": "TWO"}), None),
    ];
    let reads: Vec<_> = files.iter().map(|file| ("read_file", json!({"path": file.0}))).collect();
    let edits: Vec<_> = files
        .iter()
        .map(|(path, _, edit, _)| {
            let mut edit = edit.clone();
            edit["path"] = json!(path);
            ("edit_file", edit)
        })
        .collect();
    let provider = model(&[&reads, &edits]);
    let sandbox = Sandbox::anthropic(&provider);
    for (path, before, ..) in &files {
        sandbox.write(path, before);
    }
    run(&sandbox);
    let results = results(&provider.last_request());
    for ((path, before, _, after), result) in files.iter().zip(&results) {
        let now = std::fs::read(sandbox.project().join(path)).unwrap();
        match after {
            Some(after) => assert_eq!(now.as_slice(), *after, "{path}: {result:?}"),
            None if *path == "latin1.txt" => {
                assert!(
                    now == b"caf\xE9\nTWO\n" || (now == *before && result.1),
                    "{path}: {now:?} {result:?}"
                );
            }
            None => assert!(now == *before && result.1, "{path}: {result:?}"),
        }
    }
}

#[test]
fn a_write_keeps_mode_links_and_leaves_no_temporary_file() {
    let write = |path: &str| ("write_file", json!({"path": path, "content": "#!/bin/sh\necho new\n"}));
    let paths = ["script.sh", "private.txt", "link", "dangling", "hard.txt", "new/deep/er.txt"];
    let reads: Vec<_> = paths[..5].iter().map(|path| ("read_file", json!({"path": path}))).collect();
    let writes: Vec<_> = paths.iter().map(|path| write(path)).collect();
    let provider = model(&[&reads, &writes]);
    let sandbox = Sandbox::anthropic(&provider);
    for path in ["script.sh", "private.txt", "other/target.txt", "hard.txt"] {
        sandbox.write(path, "old\n");
    }
    let script = "chmod 755 script.sh; chmod 600 private.txt; ln -s other/target.txt link; ln -s other/absent.txt dangling; ln hard.txt hard2.txt";
    assert!(run_program(&sandbox.project(), "sh", &["-c", script]).is_some());
    run(&sandbox);
    let results = results(&provider.last_request());
    let meta = |path: &str| std::fs::metadata(sandbox.project().join(path)).unwrap();
    let new = "#!/bin/sh\necho new\n";
    assert_eq!(
        (sandbox.read("script.sh").as_str(), meta("script.sh").permissions().mode() & 0o777),
        (new, 0o755)
    );
    assert_eq!(
        (sandbox.read("private.txt").as_str(), meta("private.txt").permissions().mode() & 0o777),
        (new, 0o600)
    );
    assert!(sandbox.project().join("link").is_symlink(), "the link became a file");
    assert_eq!(sandbox.read("other/target.txt"), new);
    assert!(sandbox.project().join("dangling").is_symlink());
    assert!(results[3].1 || sandbox.read("other/absent.txt") == new, "{:?}", results[3]);
    assert_eq!(sandbox.read("hard.txt"), new, "{:?}", results[4]);
    let linked = meta("hard.txt").nlink() == 2;
    assert!(
        linked == (sandbox.read("hard2.txt") == new),
        "the other name is neither the file nor a file of its own"
    );
    assert_eq!(sandbox.read("new/deep/er.txt"), new);
    let left = run_program(
        &sandbox.project(),
        "sh",
        &["-c", "find . -path ./.claw -prune -o -type f -print | sort"],
    );
    let left = left.unwrap_or_default();
    let known = ["script.sh", "private.txt", "target.txt", "absent.txt", "hard.txt", "hard2.txt", "er.txt"];
    for line in left.lines() {
        assert!(known.iter().any(|name| line.ends_with(&format!("/{name}"))), "left behind: {line}");
    }
}

#[test]
fn a_kill_in_the_middle_of_a_write_leaves_the_file_old_or_new() {
    let new = "n".repeat(4_000_000);
    let call = Reply::tool("t1", "write_file", json!({"path": "big.txt", "content": new}));
    for moment in 0..4 {
        let provider =
            ScriptedProvider::new([Route::reply(call.clone()).times(1), Route::reply(Reply::text("done"))]);
        let sandbox = Sandbox::anthropic(&provider);
        sandbox.write("big.txt", "old");
        let names = || std::fs::read_dir(sandbox.project()).map_or(0, Iterator::count);
        let size = || std::fs::metadata(sandbox.project().join("big.txt")).map_or(0, |meta| meta.len());
        let before = names();
        let running = Claw::new(CLAW, &sandbox).args(["-p", "go"]).spawn();
        provider.wait_for_requests(1, BOUND);
        // The first two kills hit as soon as anything moves in the folder, the others at its end.
        wait_until("a sign of the write", BOUND, || {
            (moment < 2 && names() != before) || size() != 3 || provider.count() > 1 || !running.is_running()
        });
        running.kill9();
        let now = sandbox.read("big.txt");
        assert!(now == "old" || now == new, "torn at {} bytes", now.len());
    }
}

#[test]
fn twenty_edits_of_one_file_in_one_message_are_all_in_it() {
    let text: String = (0..20).map(|n| format!("line {n:02}.\n")).collect();
    let edits: Vec<_> = (0..20)
        .map(|n| {
            let path = if n % 2 == 0 { "n.txt" } else { "same.txt" };
            ("edit_file", json!({"path": path, "old_string": format!("line {n:02}."), "new_string": format!("EDIT{n:02}.")}))
        })
        .collect();
    for _ in 0..3 {
        let provider = model(&[&[("read_file", json!({"path": "n.txt"}))], &edits]);
        let sandbox = Sandbox::anthropic(&provider);
        sandbox.write("n.txt", &text);
        assert!(run_program(&sandbox.project(), "ln", &["-s", "n.txt", "same.txt"]).is_some());
        run(&sandbox);
        let results = results(&provider.last_request());
        assert!(results.iter().all(|(_, is_error)| !is_error), "{results:?}");
        let now = sandbox.read("n.txt");
        assert!((0..20).all(|n| now.contains(&format!("EDIT{n:02}."))), "{now}");
    }
}

#[test]
fn a_write_from_an_old_copy_is_refused_and_names_who_changed_it() {
    for path in ["f.txt", "alias.txt"] {
        let (a_writes, b_reads) = (Gate::closed(), Gate::closed());
        let read = |path: &str| Reply::tool("r", "read_file", json!({"path": path}));
        let provider = ScriptedProvider::new([
            Route::reply(read(path)).contains("AGENT-A").lacks("tool_result"),
            Route::reply(
                Reply::tool("w", "write_file", json!({"path": path, "content": "one\ntwo\nOLD-COPY\n"}))
                    .gate(&a_writes),
            )
            .contains("AGENT-A")
            .lacks("OLD-COPY"),
            Route::reply(Reply::text("a ends")).contains("AGENT-A").label("refused"),
            Route::reply(read("f.txt").gate(&b_reads)).contains("AGENT-B").lacks("tool_result"),
            Route::reply(Reply::tool(
                "e",
                "edit_file",
                json!({"path": "f.txt", "old_string": "one", "new_string": "LINE-OF-B"}),
            ))
            .contains("AGENT-B")
            .lacks("LINE-OF-B"),
            Route::reply(Reply::text("b ends")).contains("AGENT-B"),
        ]);
        let sandbox = Sandbox::anthropic(&provider);
        sandbox.write("f.txt", "one\ntwo\nthree\n");
        assert!(run_program(&sandbox.project(), "ln", &["-s", "f.txt", "alias.txt"]).is_some());
        sandbox.write(
            "wf.toml",
            "schema = 1\n[workflow]\nname = \"two\"\n[node.first]\nprompt = \"AGENT-A\"\n[node.second]\nprompt = \"AGENT-B\"\n",
        );
        let running = Claw::new(CLAW, &sandbox).args(["run", "wf.toml"]).spawn();
        a_writes.wait_for_waiting(1, BOUND);
        b_reads.open();
        running.wait_for_stderr("second: succeeded", BOUND);
        a_writes.open();
        running.wait(BOUND).expect_code(0);
        assert_eq!(sandbox.read("f.txt"), "LINE-OF-B\ntwo\nthree\n", "{path}");
        let results = results(&provider.requests_of("refused")[0]);
        let (text, is_error) = results.last().cloned().unwrap_or_default();
        assert!(is_error && text.contains("changed since you read it"), "{path}: {text}");
        assert!(text.contains("second"), "{path}: who changed it is not said: {text}");
    }
}

#[test]
fn the_write_wall_holds_and_reading_roles_cannot_write() {
    let outside = std::env::var("CARGO_TARGET_TMPDIR").unwrap_or_else(|_| "/var/tmp".to_owned());
    let target = format!("{outside}/claw-must-not-exist-{}", std::process::id());
    let list = [
        bash(&format!("echo x > {target} && echo wrote")),
        ("write_file", json!({"path": target, "content": "x"})),
        bash("echo inside > inside.txt && echo wrote"),
    ];
    let provider = model(&[&list]);
    let sandbox = Sandbox::anthropic(&provider);
    run(&sandbox);
    let said = results(&provider.last_request());
    assert!(!std::path::Path::new(&target).exists(), "{said:?}");
    // A command may have a private folder of that name; what it writes there is gone with it.
    assert!(said[1].1 && sandbox.read("inside.txt") == "inside\n", "{said:?}");
    let provider =
        model(&[&[bash("touch explored"), ("write_file", json!({"path": "explored", "content": "x"}))]]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write(
        "wf.toml",
        "schema = 1\n[workflow]\nname = \"x\"\n[node.a]\nagent = \"Explore\"\nprompt = \"x\"\n",
    );
    Claw::new(CLAW, &sandbox).args(["run", "wf.toml"]).run(BOUND).expect_code(0);
    let offered = provider.requests()[0].tool_names().join(" ");
    assert!(!offered.contains("bash") && !offered.contains("write"), "{offered}");
    assert!(!sandbox.has("explored") && results(&provider.last_request()).iter().all(|result| result.1));
}

#[test]
fn one_agents_cd_moves_nobody_else() {
    let provider = ScriptedProvider::new([
        Route::reply(calls(&[bash("cd sub && pwd"), bash("pwd > where-a.txt")]))
            .contains("AGENT-A")
            .lacks("tool_result"),
        Route::reply(calls(&[bash("pwd > where-b.txt")])).contains("AGENT-B").lacks("tool_result"),
        Route::reply(Reply::text("ok")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("sub/x", "");
    sandbox.write(
        "wf.toml",
        "schema = 1\n[workflow]\nname = \"cd\"\n[node.first]\nprompt = \"AGENT-A\"\n[node.second]\nneeds = [\"first\"]\nprompt = \"AGENT-B\"\n",
    );
    Claw::new(CLAW, &sandbox).args(["run", "wf.toml"]).run(BOUND).expect_code(0);
    assert_eq!(sandbox.read("where-b.txt").trim(), sandbox.project().to_string_lossy());
}

#[test]
fn tools_are_held_back_until_the_model_asks_for_them() {
    let provider = model(&[
        &[("tool_search", json!({"query": "multi_edit"}))],
        &[("MultiEdit", json!({"path": "f", "edits": [{"old_string": "one", "new_string": "two"}]}))],
        // Never loaded, called all the same.
        &[("Sleep", json!({"duration_ms": 1}))],
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("f", "one\n");
    run(&sandbox);
    let requests = provider.requests();
    let names: Vec<Vec<&str>> = requests.iter().map(|request| request.tool_names()).collect();
    assert!(names[0].contains(&"bash") && names[0].contains(&"tool_search"), "{names:?}");
    assert!(!names[0].contains(&"multi_edit") && !names[0].contains(&"sleep"), "{names:?}");
    assert_eq!(names[1][..names[0].len()], names[0], "what was there stays where it was");
    assert_eq!(names[1].last(), Some(&"multi_edit"));
    assert!(results(&requests[1])[0].0.starts_with("loaded: multi_edit"), "{:?}", results(&requests[1]));
    assert!(results(&requests[2])[0].0.contains("made 1 edits"), "{:?}", results(&requests[2]));
    assert_eq!(results(&requests[3]), [("waited 1 ms".to_owned(), false)]);
    let first = requests[0].body.clone();
    let size = first["tools"].to_string().len() + first["system"].to_string().len();
    assert!(size < 20_000, "system prompt and tools have {size} bytes");
}

#[test]
fn background_commands_are_read_later_and_end_with_the_conversation() {
    let provider = model(&[
        &[("bash", json!({"command": "echo ready; sleep 7481", "run_in_background": true}))],
        &[("bash_output", json!({"id": "bash_1", "wait_ms": 300}))],
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    let output = run(&sandbox);
    assert!(!output.left_behind, "{output}");
    let requests = provider.requests();
    assert!(requests[1].tool_names().contains(&"kill_shell"), "{:?}", requests[1].tool_names());
    let text = &results(&requests[2])[0].0;
    assert!(text.contains("ready") && text.contains("[running]"), "{text}");
    assert_eq!(processes_with("sleep 7481"), 0);
}

#[test]
fn no_address_inside_is_fetched_whatever_the_mode() {
    let trap = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    trap.set_nonblocking(true).unwrap();
    let port = trap.local_addr().unwrap().port();
    let fetch = |host: &str| ("web_fetch", json!({"url": format!("http://{host}:{port}/"), "prompt": "x"}));
    let hosts = [
        "127.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "2130706433",
        "0x7f.1",
        "0",
        "localhost",
        "localhost.",
        "docs.example@127.0.0.1",
        "169.254.169.254",
        "metadata.google.internal",
    ];
    let mut list: Vec<_> = hosts.iter().map(|host| fetch(host)).collect();
    list.push(("web_fetch", json!({"url": "file:///etc/passwd"})));
    list.push(("web_fetch", json!({"url": "gopher://127.0.0.1/"})));
    let provider = model(&[&list]);
    let sandbox = Sandbox::anthropic(&provider);
    let args = ["-p", "go", "--permission-mode", "danger-full-access", "--allow-root"];
    Claw::new(CLAW, &sandbox).args(args).run(BOUND).expect_code(0);
    let results = results(&provider.last_request());
    assert_eq!(results.len(), list.len());
    assert!(results.iter().all(|(_, is_error)| *is_error), "{results:?}");
    assert!(trap.accept().is_err(), "somebody connected");
}

#[test]
fn a_page_of_the_internet_is_asked_for_and_denied_where_nobody_is_there() {
    let provider = model(&[&[("WebFetch", json!({"url": "https://example.org/"}))]]);
    let sandbox = Sandbox::anthropic(&provider);
    run(&sandbox);
    let text = results(&provider.last_request())[0].0.clone();
    assert!(text.starts_with("denied") && text.contains("network"), "{text}");
}

#[test]
fn an_interpreter_keeps_its_state_from_message_to_message() {
    let code = |code: &str| ("repl", json!({"language": "shell", "code": code}));
    let provider = model(&[&[code("x=20; touch seen")], &[code("echo $((x + 1))")]]);
    let sandbox = Sandbox::anthropic(&provider);
    let output = run(&sandbox);
    assert!(!output.left_behind, "{output}");
    assert_eq!(results(&provider.last_request())[0].0, "21");
    assert!(sandbox.project().join("seen").exists());
}
