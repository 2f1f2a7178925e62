//! Rules about Rust files.

use super::tree::{File, Tree, in_name};

/// Lines of code in a file, blank lines, comments and tests not counted.
pub const MOST_CODE_LINES: usize = 600;
/// Lines of a test file.
pub const MOST_TEST_LINES: usize = 900;
/// Lines of `main.rs`.
pub const MOST_MAIN_LINES: usize = 15;

const LIBRARY_ROOMS: &[(&str, &[&str])] = &[
    ("clap", &["crates/cli/src/args"]),
    ("indicatif", &["crates/cli/src/terminal"]),
    ("console", &["crates/cli/src/terminal"]),
    ("crossterm", &["crates/cli/src/terminal"]),
    ("pulldown_cmark", &["crates/cli/src/terminal/markdown"]),
    ("syntect", &["crates/cli/src/terminal/markdown"]),
    ("petgraph", &["crates/orchestrator/src/plan/graph"]),
    ("dashmap", &["crates/orchestrator/src/report/board"]),
    ("reqwest", &["crates/providers", "crates/tools/src/web", "crates/agents/src/mcp"]),
    ("ractor", &["crates/kernel/src/supervise"]),
    ("landlock", &["crates/tools"]),
    ("portable_pty", &["tests/kit"]),
    ("vt100", &["tests/kit"]),
    ("socket2", &["tests/kit"]),
];

/// Where a banned function may be used after all.
const EXCEPTION_ROOMS: &[&str] = &[
    "crates/kernel/src/durable",
    "crates/kernel/src/supervise",
    "crates/kernel/src/tasks",
    "crates/tools/src/process",
    "tests/kit/src/machine",
];

/// The file is the room itself (`room.rs`) or lies in it.
fn in_room(path: &str, room: &str) -> bool {
    path.strip_prefix(room).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

/// A library with a room of its own is used nowhere else. Actor shells are the files called `actor.rs`.
pub fn one_library_one_room(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for file in tree.rust() {
        for (library, rooms) in LIBRARY_ROOMS {
            let shell = *library == "ractor" && file.name() == "actor.rs";
            if shell || rooms.iter().any(|room| in_room(&file.path, room)) {
                continue;
            }
            if let Some(at) = first_use(&file.code, library) {
                found.push(format!("{}: {library} belongs in {}", file.place(at), rooms.join(", ")));
            }
        }
    }
    found
}

/// Where a crate is named as the start of a path.
fn first_use(code: &str, library: &str) -> Option<usize> {
    let bytes = code.as_bytes();
    code.match_indices(library).map(|(at, _)| at).find(|at| {
        let before = code[..*at].trim_end();
        let after = code[at + library.len()..].trim_start();
        let starts = at.checked_sub(1).is_none_or(|n| !in_name(bytes[n]));
        // `self::console` and `x.console` are our own; `::console` at the start of a path is the crate.
        let owner = before.strip_suffix("::").unwrap_or_default().bytes().next_back();
        let ours = before.ends_with('.') || owner.is_some_and(|b| in_name(b) || b == b'>');
        let imported = before.ends_with("use") || before.ends_with("extern crate");
        let ends = !after.bytes().next().is_some_and(in_name);
        starts && !ours && ends && (after.starts_with("::") || imported && after.starts_with([';', ' ']))
    })
}

/// The bans of `clippy.toml` are opened only in the rooms that own them.
pub fn exceptions(tree: &Tree) -> Vec<String> {
    let banned = ["clippy::disallowed_methods", "clippy::disallowed_macros", "clippy::disallowed_types"];
    let mut found = Vec::new();
    for file in tree.rust().filter(|f| !EXCEPTION_ROOMS.iter().any(|room| in_room(&f.path, room))) {
        for ban in banned {
            found.extend(
                file.code
                    .match_indices(ban)
                    .map(|(at, _)| format!("{}: {ban} is opened here", file.place(at))),
            );
        }
    }
    found
}

/// No `allow` attribute, and each `expect` attribute says why.
pub fn no_allow(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for file in tree.rust() {
        for (at, attribute) in attributes(&file.code) {
            if has_call(attribute, "allow") {
                found.push(format!("{}: a lint is switched off", file.place(at)));
            }
            if has_call(attribute, "expect") && !attribute.contains("reason") {
                found.push(format!("{}: an expectation without a reason", file.place(at)));
            }
        }
    }
    found
}

/// All `#[…]` and `#![…]` with their offsets.
fn attributes(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.match_indices('#').filter_map(|(at, _)| {
        let rest = &code[at..];
        if !rest.starts_with("#[") && !rest.starts_with("#![") {
            return None;
        }
        let mut depth = 0_usize;
        for (n, c) in rest.char_indices() {
            match c {
                '[' => depth += 1,
                ']' if depth == 1 => return Some((at, &rest[..n])),
                ']' => depth -= 1,
                _ => {}
            }
        }
        None
    })
}

fn has_call(attribute: &str, name: &str) -> bool {
    attribute.match_indices(name).any(|(at, _)| {
        let starts = attribute[..at].bytes().next_back().is_none_or(|b| !in_name(b));
        starts && attribute[at + name.len()..].trim_start().starts_with('(')
    })
}

/// Files stay readable.
pub fn file_sizes(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for file in tree.rust() {
        let lines = file.own_code().lines().filter(|line| !line.trim().is_empty()).count();
        if lines > MOST_CODE_LINES {
            found.push(format!("{}: {lines} lines of code, at most {MOST_CODE_LINES}", file.path));
        }
        let lines = file.text.lines().count();
        if file.is_test() && lines > MOST_TEST_LINES {
            found.push(format!("{}: {lines} lines, a test file has at most {MOST_TEST_LINES}", file.path));
        }
    }
    found
}

/// `lib.rs` and `mod.rs` hold docs, modules and re-exports (a table of what is registered is fine); `main.rs`
/// says where the program starts.
pub fn no_logic_at_the_door(tree: &Tree) -> Vec<String> {
    const LOGIC: &[&str] = &["fn", "impl", "struct", "enum", "trait", "union", "macro_rules"];
    let mut found = Vec::new();
    for file in tree.rust().filter(|f| !f.is_test()) {
        let lines = file.text.lines().count();
        if file.name() == "main.rs" && lines > MOST_MAIN_LINES {
            found.push(format!("{}: {lines} lines, at most {MOST_MAIN_LINES}", file.path));
        }
        if file.name() != "lib.rs" && file.name() != "mod.rs" {
            continue;
        }
        for (n, line) in file.own_code().lines().enumerate() {
            let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            if let Some(word) = words.into_iter().find(|word| LOGIC.contains(word)) {
                found.push(format!("{}:{}: `{word}` does not belong in {}", file.path, n + 1, file.name()));
            }
        }
    }
    found
}

/// A module is called after what it owns.
pub fn module_names(tree: &Tree) -> Vec<String> {
    const EMPTY: &[&str] =
        &["util", "utils", "helper", "helpers", "common", "manager", "managers", "misc", "shared", "stuff"];
    let mut found = Vec::new();
    for file in tree.rust() {
        let parts = file.path.trim_end_matches(".rs").split('/');
        if let Some(part) = parts.into_iter().find(|part| EMPTY.contains(part)) {
            found.push(format!("{}: what does `{part}` own?", file.path));
        }
        for (at, _) in file.code.match_indices("mod ") {
            let rest = &file.code[at + 4..];
            let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            if EMPTY.contains(&name) && !file.code[..at].bytes().next_back().is_some_and(in_name) {
                found.push(format!("{}: what does `{name}` own?", file.place(at)));
            }
        }
    }
    found
}

/// No `Result<_, String>`.
pub fn no_text_errors(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for file in tree.rust() {
        let code = file.own_code();
        for (at, _) in code.match_indices("Result<") {
            let error = arguments(&code[at + "Result<".len()..]).get(1).map(|e| e.trim().to_owned());
            if matches!(error.as_deref(), Some("String" | "std::string::String" | "&str" | "&'static str")) {
                found.push(format!("{}: an error is a type, not a text", file.place(at)));
            }
        }
    }
    found
}

/// The generic arguments up to the closing `>`.
fn arguments(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let mut parts = vec![String::new()];
    let mut before = ' ';
    for c in text.chars() {
        match c {
            '>' if before == '-' => {}
            '>' if depth == 0 => break,
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            ';' | '{' => break,
            _ => {}
        }
        before = c;
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts
}

/// Tests wait for an event or pause the clock; only the kit lets time pass.
pub fn no_sleep_in_tests(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for file in tree.rust().filter(|f| !f.path.starts_with("tests/kit/")) {
        let code = file.test_code();
        let offset = file.code.len() - code.len();
        let paused = code.contains("start_paused");
        for (at, _) in code.match_indices("sleep(") {
            let asleep = code[..at].ends_with("thread::") || code[..at].ends_with("time::") && !paused;
            if asleep {
                found.push(format!("{}: a test sleeps", file.place(offset + at)));
            }
        }
    }
    found
}

/// A file begins with `//!`: what it owns and what it must not know.
pub fn module_docs(tree: &Tree) -> Vec<String> {
    let documented = |file: &&File| {
        file.text.starts_with("//!") || file.name().ends_with("tests.rs") || in_tests_folder(file)
    };
    let path = |file: &File| format!("{}: begins without `//!`", file.path);
    tree.rust().filter(|file| !documented(file)).map(path).collect()
}

fn in_tests_folder(file: &File) -> bool {
    file.path.starts_with("crates/") && file.path.contains("/tests/")
}
