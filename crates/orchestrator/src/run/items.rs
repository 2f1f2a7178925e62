//! Items of a dynamic `each` that lie on the disk: paths that match, lines, JSON documents.

use crate::scheduler::{ItemsFailed, ItemsToRead};
use globset::{GlobSet, GlobSetBuilder};
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A list that is longer is a mistake.
const MOST_ITEMS: usize = 1_000_000;
/// A file that is larger is not read.
const MOST_BYTES: u64 = 256 << 20;

/// Reads them. Paths are relative to `workspace`, sorted. Blocking.
pub(super) fn read(source: &ItemsToRead, workspace: &Path) -> Result<Vec<Value>, ItemsFailed> {
    match source {
        ItemsToRead::Glob { include, exclude } => matching(include, exclude, workspace),
        ItemsToRead::Lines(path) => {
            let text = read_text(&below(workspace, path)?)?;
            Ok(text.lines().map(Value::from).collect())
        }
        ItemsToRead::Jsonl(path) => {
            let path = below(workspace, path)?;
            let text = read_text(&path)?;
            let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
            lines
                .map(|(at, line)| {
                    serde_json::from_str(line)
                        .map_err(|error| failed(format!("{}:{}: not JSON: {error}", path.display(), at + 1)))
                })
                .collect()
        }
    }
}

fn failed(message: String) -> ItemsFailed {
    ItemsFailed { message }
}

/// What an agent reads is asked for elsewhere; here only the workspace is open.
fn below(workspace: &Path, path: &str) -> Result<PathBuf, ItemsFailed> {
    let error = |error: std::io::Error| failed(format!("{path}: {error}"));
    let real = workspace.join(path).canonicalize().map_err(error)?;
    if real.starts_with(workspace.canonicalize().map_err(error)?) {
        Ok(real)
    } else {
        Err(failed(format!("{path}: not a file below the workspace")))
    }
}

fn read_text(path: &Path) -> Result<String, ItemsFailed> {
    let error = |error: std::io::Error| failed(format!("{}: {error}", path.display()));
    let meta = std::fs::metadata(path).map_err(error)?;
    if !meta.is_file() {
        return Err(failed(format!("{}: not a regular file", path.display())));
    }
    if meta.len() > MOST_BYTES {
        return Err(failed(format!("{}: larger than {MOST_BYTES} bytes", path.display())));
    }
    let mut text = String::new();
    File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_string(&mut text)).map_err(error)?;
    Ok(text)
}

fn matching(include: &[String], exclude: &[String], workspace: &Path) -> Result<Vec<Value>, ItemsFailed> {
    let include = patterns(include)?;
    let exclude = patterns(exclude)?;
    let mut paths = Vec::new();
    // Ignore files hold, and claw's own state is never an item.
    let walk = ignore::WalkBuilder::new(workspace)
        .require_git(false)
        .filter_entry(|entry| !(entry.depth() == 1 && entry.file_name() == ".claw"))
        .build();
    for entry in walk {
        let entry = entry.map_err(|error| failed(error.to_string()))?;
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        let Ok(relative) = entry.path().strip_prefix(workspace) else { continue };
        if include.is_match(relative) && !exclude.is_match(relative) {
            let Some(text) = relative.to_str() else {
                return Err(failed(format!("{}: the name is not UTF-8", relative.display())));
            };
            paths.push(text.to_owned());
            if paths.len() > MOST_ITEMS {
                return Err(failed(format!("more than {MOST_ITEMS} paths match")));
            }
        }
    }
    paths.sort();
    Ok(paths.into_iter().map(Value::from).collect())
}

fn patterns(texts: &[String]) -> Result<GlobSet, ItemsFailed> {
    let mut set = GlobSetBuilder::new();
    for text in texts {
        let glob = globset::GlobBuilder::new(text).literal_separator(true).build();
        set.add(glob.map_err(|error: globset::Error| failed(error.to_string()))?);
    }
    set.build().map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use claw_kernel::durable::{Mode, Sync, replace};
    use serde_json::json;

    #[test]
    fn matching_paths_are_sorted_and_ignored_files_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            replace(&path, text.as_bytes(), Mode::Keep, Sync::No).unwrap();
        };
        for name in ["src/b.rs", "src/a.rs", "src/deep/c.rs", "target/x.rs", "src/a.txt", ".claw/runs/y.rs"] {
            put(name, "");
        }
        put(".gitignore", "target/\n");
        let source =
            ItemsToRead::Glob { include: vec!["**/*.rs".into()], exclude: vec!["src/deep/**".into()] };
        assert_eq!(read(&source, folder.path()).unwrap(), [json!("src/a.rs"), json!("src/b.rs")]);
    }

    #[test]
    fn a_bad_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jsonl");
        replace(&path, b"{\"a\":1}\n\n{oops\n", Mode::Keep, Sync::No).unwrap();
        let error = read(&ItemsToRead::Jsonl("x.jsonl".into()), folder.path()).unwrap_err();
        assert!(error.message.contains("x.jsonl:3: not JSON"), "{error}");
    }
}
