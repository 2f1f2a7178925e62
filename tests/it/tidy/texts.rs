//! Rules about texts that are not code: docs, scripts, example workflows.

use super::tree::{File, Tree};

/// No text says where or how it was made. The words are put together here, so that this file does not hold
/// them itself.
pub fn no_machine_paths(tree: &Tree) -> Vec<String> {
    let words = [
        concat!("/wo", "rk/"),
        concat!("/tmp", "/tb"),
        concat!("/tmp", "/brief"),
        concat!("DEVELO", "PERS.md"),
        concat!("../sha", "red/"),
    ];
    let mut found = Vec::new();
    for file in tree.files() {
        for word in words {
            if let Some(at) =
                file.text.match_indices(word).map(|(at, _)| at).find(|at| begins_here(file, *at))
            {
                let line = file.text[..at].matches('\n').count() + 1;
                found.push(format!("{}:{line}: {word} means nothing to a reader", file.path));
            }
        }
    }
    found
}

/// The word is not the tail of a longer path, such as `~/work/`.
fn begins_here(file: &File, at: usize) -> bool {
    !file.text[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || "~._-/}".contains(c))
}

/// Each example workflow is planned and run by some test.
pub fn workflows_are_tested(tree: &Tree) -> Vec<String> {
    let tests: Vec<&File> = tree.rust().filter(|f| f.path.starts_with("tests/it/") || f.is_test()).collect();
    let lonely = |file: &&File| !tests.iter().any(|test| test.text.contains(file.path.as_str()));
    // Folders below it hold parts of examples and answers for them.
    let is_example = |path: &str| {
        path.strip_prefix("workflows/").is_some_and(|name| name.ends_with(".toml") && !name.contains('/'))
    };
    let examples = tree.files().filter(|file| is_example(&file.path));
    examples.filter(lonely).map(|file| format!("{}: no test names it", file.path)).collect()
}

/// A script has a shebang, a comment at its head and stops at the first error.
pub fn scripts_have_heads(tree: &Tree) -> Vec<String> {
    let scripts = tree
        .files()
        .filter(|f| f.path.starts_with("scripts/") && f.path.ends_with(".sh") || f.path == ".ci/run");
    let broken = |file: &&File| {
        let mut lines = file.text.lines();
        let shebang = lines.next().is_some_and(|line| line == "#!/usr/bin/env bash");
        let head = lines.next().is_some_and(|line| line.starts_with("# "));
        !(shebang && head && file.text.contains("\nset -euo pipefail\n"))
    };
    let say = |file: &File| format!("{}: shebang, a comment what it does, `set -euo pipefail`", file.path);
    scripts.filter(broken).map(say).collect()
}
