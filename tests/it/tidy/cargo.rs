//! Rules about manifests, the lock file and the settings of the tools.

use super::tree::{File, Tree};

/// Packages in the lock file.
pub const MOST_PACKAGES: usize = 480;

/// Each crate and what it may depend on.
const ARROWS: &[(&str, &[&str])] = &[
    ("kernel", &[]),
    ("providers", &["kernel"]),
    ("tools", &["kernel"]),
    ("agents", &["kernel", "providers", "tools"]),
    ("orchestrator", &["kernel", "providers", "tools", "agents"]),
    ("cli", &["kernel", "providers", "tools", "agents", "orchestrator"]),
    ("kit", &[]),
];

/// One `key = value` of a manifest with the section it stands in.
struct Entry<'a> {
    line: usize,
    section: &'a str,
    key: &'a str,
    value: &'a str,
}

/// Reads as much TOML as manifests use: sections, and keys at the start of a line.
fn entries(text: &str) -> Vec<Entry<'_>> {
    let mut section = "";
    let mut found = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let line = line.trim_end();
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            section = name.trim_start_matches('[');
            // `[dependencies.x]` is an entry of `[dependencies]`.
            if let Some((_, key)) = section.rsplit_once("dependencies.") {
                found.push(Entry { line: n + 1, section, key, value: "" });
            }
        } else if let Some((key, value)) =
            line.split_once('=').filter(|_| line.starts_with(|c: char| c.is_alphanumeric()))
        {
            found.push(Entry { line: n + 1, section, key: key.trim(), value: value.trim() });
        }
    }
    found
}

impl Entry<'_> {
    fn package(&self) -> &str {
        self.key.split('.').next().unwrap_or(self.key)
    }

    fn is_dependency(&self) -> bool {
        let in_table = self.section.ends_with("dependencies") && self.section != "workspace.dependencies";
        in_table || self.section.contains("dependencies.") && self.section.ends_with(self.key)
    }
}

fn member_manifests(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.files().filter(|f| f.path.ends_with("/Cargo.toml") && !f.path.starts_with("tests/fuzz/"))
}

/// The arrows between our crates point downwards; the kit is for tests and knows none of them.
pub fn arrows(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for file in member_manifests(tree) {
        let own = file.path.rsplit('/').nth(1).unwrap_or_default();
        let allowed = ARROWS.iter().find(|(name, _)| *name == own).map_or(&[][..], |(_, list)| list);
        for entry in entries(&file.text).iter().filter(|e| e.is_dependency()) {
            let Some(other) = entry.package().strip_prefix("claw-") else { continue };
            let for_tests = entry.section.contains("dev-dependencies");
            let legal = allowed.contains(&other) || for_tests && other == "kit";
            if !legal {
                found.push(format!("{}:{}: {own} must not know {other}", file.path, entry.line));
            }
        }
    }
    found
}

/// Versions and lints come from the workspace.
pub fn inherited(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for file in member_manifests(tree) {
        let entries = entries(&file.text);
        if !entries
            .iter()
            .any(|e| e.section == "lints" && e.key == "workspace" && e.value.starts_with("true"))
        {
            found.push(format!("{}: no `[lints] workspace = true`", file.path));
        }
        for entry in entries.iter().filter(|e| e.is_dependency()) {
            let from_workspace =
                entry.key.ends_with(".workspace") || entry.value.contains("workspace = true");
            if !from_workspace && entry.key != "workspace" && !entry.value.is_empty() {
                found.push(format!(
                    "{}:{}: {} has a version of its own",
                    file.path,
                    entry.line,
                    entry.package()
                ));
            }
        }
    }
    found
}

/// A dependency has a comment on its line, or its paragraph has one at its head.
pub fn reasons(tree: &Tree) -> Vec<String> {
    let Some(file) = tree.file("Cargo.toml") else { return Vec::new() };
    let lines: Vec<&str> = file.text.lines().collect();
    let without = |entry: &&Entry<'_>| {
        let own = lines[entry.line - 1].contains(" # ");
        let paragraph = lines[..entry.line - 1].iter().rev().take_while(|line| !line.trim().is_empty());
        !own && !paragraph.into_iter().any(|line| line.starts_with('#'))
    };
    let say = |entry: &Entry<'_>| format!("Cargo.toml:{}: why {}?", entry.line, entry.package());
    entries(&file.text)
        .iter()
        .filter(|e| e.section == "workspace.dependencies")
        .filter(without)
        .map(say)
        .collect()
}

/// Few packages, one crypto library (ring).
pub fn locked(tree: &Tree) -> Vec<String> {
    const OTHER_CRYPTO: &[&str] = &[
        "aws-lc-rs",
        "aws-lc-sys",
        "aws-lc-fips-sys",
        "openssl",
        "openssl-sys",
        "native-tls",
        "boring",
        "mbedtls",
    ];
    let Some(file) = tree.file("Cargo.lock") else { return Vec::new() };
    let count = file.text.lines().filter(|line| *line == "[[package]]").count();
    let mut found = Vec::new();
    if count > MOST_PACKAGES {
        found.push(format!("Cargo.lock: {count} packages, at most {MOST_PACKAGES}"));
    }
    for name in OTHER_CRYPTO {
        if file.text.lines().any(|line| line == format!("name = \"{name}\"")) {
            found.push(format!("Cargo.lock: {name} is a second crypto library"));
        }
    }
    found
}

/// Supervision needs a release that unwinds; clippy holds functions to 60 lines and 7 arguments.
pub fn settings(tree: &Tree) -> Vec<String> {
    const WANTED: &[(&str, &str, &str, &str)] = &[
        ("Cargo.toml", "profile.release", "panic", "\"unwind\""),
        ("Cargo.toml", "workspace.lints.clippy", "too_many_lines", "\"warn\""),
        ("Cargo.toml", "workspace.lints.clippy", "allow_attributes", "\"deny\""),
        ("Cargo.toml", "workspace.lints.clippy", "disallowed_methods", "\"deny\""),
        ("clippy.toml", "", "too-many-lines-threshold", "60"),
        ("clippy.toml", "", "too-many-arguments-threshold", "7"),
    ];
    let mut found = Vec::new();
    for (path, section, key, value) in WANTED {
        let Some(file) = tree.file(path) else { continue };
        let holds = |e: &Entry<'_>| {
            e.section == *section
                && e.key == *key
                && e.value.split('#').next().unwrap_or_default().trim() == *value
        };
        if !entries(&file.text).iter().any(holds) {
            found.push(format!("{path}: [{section}] wants {key} = {value}"));
        }
    }
    found
}
