//! The files that the rules look at: those of the repository, or a sample. Tells code from comments and
//! texts, and a file's own code from its tests.

use claw_kit::run_program;
use std::path::{Path, PathBuf};

/// A set of files.
pub struct Tree {
    files: Vec<File>,
}

/// One text file.
pub struct File {
    /// From the top of the repository, with `/`.
    pub path: String,
    /// As it is.
    pub text: String,
    /// For Rust: the text with comments and the insides of strings blanked, byte for byte; else empty.
    pub code: String,
}

impl Tree {
    /// The sample files.
    pub fn of(files: &[(&str, &str)]) -> Self {
        Self {
            files: files
                .iter()
                .map(|(path, text)| File::new((*path).to_owned(), (*text).to_owned()))
                .collect(),
        }
    }

    /// All text files that belong to the repository.
    pub fn of_repository() -> Self {
        let root = root();
        let names =
            match run_program(&root, "git", &["ls-files", "--cached", "--others", "--exclude-standard"]) {
                Some(list) => list.lines().map(str::to_owned).collect(),
                None => walk(&root, &root),
            };
        let read =
            |path: String| Some(File::new(path.clone(), std::fs::read_to_string(root.join(path)).ok()?));
        let files: Vec<File> = names.into_iter().filter_map(read).collect();
        assert!(
            files.iter().any(|f| f.path == "Cargo.toml"),
            "the repository was not found at {}",
            root.display()
        );
        Self { files }
    }

    /// All files.
    pub fn files(&self) -> impl Iterator<Item = &File> {
        self.files.iter()
    }

    /// The Rust files.
    pub fn rust(&self) -> impl Iterator<Item = &File> {
        self.files().filter(|f| f.path.ends_with(".rs"))
    }

    /// One file, when it is there.
    pub fn file(&self, path: &str) -> Option<&File> {
        self.files().find(|f| f.path == path)
    }
}

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let top =
        here.ancestors().find(|folder| folder.join("Cargo.lock").exists() && folder.join("crates").exists());
    top.unwrap_or(here).to_owned()
}

fn walk(root: &Path, folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if name != "target" && name != ".git" && name != ".claw" {
                found.extend(walk(root, &path));
            }
        } else if let Ok(short) = path.strip_prefix(root) {
            found.push(short.to_string_lossy().into_owned());
        }
    }
    found
}

impl File {
    fn new(path: String, text: String) -> Self {
        let code = if path.ends_with(".rs") { code_of(&text) } else { String::new() };
        Self { path, text, code }
    }

    /// The last part of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// The whole file is test code.
    pub fn is_test(&self) -> bool {
        let outside = self.path.starts_with("tests/") && !self.path.starts_with("tests/kit/src/");
        outside
            || self.name() == "tests.rs"
            || self.path.contains("/tests/") && !self.path.starts_with("tests/")
    }

    /// Where the inline test module begins; the length of the file when there is none.
    fn tests_begin(&self) -> usize {
        const MARK: &str = "#[cfg(test)]";
        let starts_module = |at: &usize| {
            let rest = self.code[at + MARK.len()..].trim_start();
            rest.strip_prefix("mod ").is_some_and(|name| {
                name.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_')
                    .trim_start()
                    .starts_with('{')
            })
        };
        self.code.match_indices(MARK).map(|(at, _)| at).find(starts_module).unwrap_or(self.code.len())
    }

    /// The code without its tests.
    pub fn own_code(&self) -> &str {
        if self.is_test() { "" } else { &self.code[..self.tests_begin()] }
    }

    /// The code of the tests.
    pub fn test_code(&self) -> &str {
        if self.is_test() { &self.code } else { &self.code[self.tests_begin()..] }
    }

    /// `path:line` of a byte offset.
    pub fn place(&self, offset: usize) -> String {
        format!("{}:{}", self.path, self.code[..offset].matches('\n').count() + 1)
    }
}

/// Whether a byte can stand in a name.
pub fn in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Blanks comments and the insides of strings and characters. Keeps the length and the line feeds.
fn code_of(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let (from, to) = match blank_span(bytes, at) {
            Some(span) => span,
            None => {
                at += 1;
                continue;
            }
        };
        for byte in &mut out[from..to.min(bytes.len())] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        // A closing quote is passed over, so that it does not open the next string.
        let closes = matches!(bytes.get(to), Some(b'"' | b'\'')) && matches!(bytes[at], b'"' | b'\'' | b'r');
        at = to + usize::from(closes);
    }
    String::from_utf8(out).expect("only whole pieces were blanked")
}

/// The span to blank when something that is not code begins here.
fn blank_span(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        let end = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
        return Some((at, at + end));
    }
    if rest.starts_with(b"/*") {
        return Some((at, at + block_comment(rest)));
    }
    match bytes[at] {
        b'"' => Some((at + 1, at + string_end(rest))),
        b'r' => raw_string(bytes, at),
        b'\'' => character(rest).map(|end| (at + 1, at + end)),
        _ => None,
    }
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// Offset of the closing quote.
fn string_end(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != b'"' {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    at
}

fn raw_string(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let before = at.checked_sub(1).map(|n| bytes[n]);
    let prefixed =
        matches!(before, Some(b'b' | b'c')) && at.checked_sub(2).is_none_or(|n| !in_name(bytes[n]));
    if before.is_some_and(in_name) && !prefixed {
        return None;
    }
    let hashes = bytes[at + 1..].iter().take_while(|b| **b == b'#').count();
    let open = at + 1 + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let close = [&b"\""[..], &b"#".repeat(hashes)].concat();
    let body = &bytes[open + 1..];
    let end = body.windows(close.len()).position(|window| window == close).unwrap_or(body.len());
    Some((open + 1, open + 1 + end))
}

/// Offset of the closing quote of a character; none for a lifetime.
fn character(rest: &[u8]) -> Option<usize> {
    if rest.get(1) == Some(&b'\\') {
        return (3..rest.len()).find(|n| rest[*n] == b'\'');
    }
    let width = match rest.get(1)? {
        0..0x80 => 1,
        0x80..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0.. => 4,
    };
    (rest.get(1 + width) == Some(&b'\'')).then_some(1 + width)
}
