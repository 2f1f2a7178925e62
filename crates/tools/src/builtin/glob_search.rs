//! `glob_search`: names of files, the newest first.

use super::walk::{self, Walk};
use crate::error::ToolError;
use crate::input;
use crate::output::ToolOutput;
use crate::tool::{Effect, Hidden, Tool, ToolContext};
use claw_kernel::cancel::CancelToken;
use claw_kernel::tasks;
use futures_util::future::BoxFuture;
use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const NAME: &str = "glob_search";
const MOST: usize = 100;

/// Finds files by name.
#[derive(Debug)]
pub struct GlobSearch;

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// Such as `**/*.rs` or `src/*.toml`; `*` lists a folder.
    #[serde(default = "everything")]
    pattern: String,
    /// The folder; the working folder if left out.
    #[serde(default)]
    path: Option<String>,
}

fn everything() -> String {
    "*".to_owned()
}

impl Tool for GlobSearch {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["glob", "ls", "list_files"]
    }

    fn description(&self) -> String {
        "Finds files by name pattern, the newest first, at most 100; `*` lists a folder. Ignored files (.gitignore) are \
         left out.".to_owned()
    }

    fn input_schema(&self) -> Value {
        input::schema::<Input>()
    }

    fn effect(&self, ctx: &ToolContext, input: &Value) -> Result<Effect, ToolError> {
        let input: Input = input::parse(NAME, input)?;
        let root = ctx.folder.resolve(&parts(&input).0);
        Ok(Effect { reads: vec![root], ..Effect::default() })
    }

    fn call<'a>(
        &'a self,
        ctx: &'a ToolContext,
        judged: &'a Effect,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let input: Input = input::parse(NAME, &input)?;
            let (root, matcher) = plan(judged.read(NAME)?, &input)?;
            let cancel = ctx.cancel.clone();
            let hidden = ctx.hidden.clone();
            let work = tasks::blocking(NAME, move || search((&root, hidden), &matcher, &cancel));
            let found = tokio::select! {
                found = work => found.map_err(|error| ToolError::Panicked(error.to_string()))??,
                () = ctx.cancel.cancelled() => return Err(ToolError::Cancelled),
            };
            let names: Vec<_> = found.files.iter().map(|path| ctx.folder.shown(path).into_owned()).collect();
            Ok(output(names, found.total))
        })
    }
}

/// The folder to walk as typed, and what is compared with each path below it. What is fixed at the start of the pattern
/// is part of the folder.
fn parts(input: &Input) -> (String, String) {
    let magic = |part: &&str| part.contains(['*', '?', '[', '{', '\\']);
    let parts: Vec<&str> = input.pattern.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let fixed = parts.iter().position(magic).unwrap_or(parts.len().saturating_sub(1));
    let mut start = if input.pattern.starts_with('/') {
        "/".to_owned()
    } else {
        format!("{}/", input.path.as_deref().filter(|path| !path.is_empty()).unwrap_or("."))
    };
    start.push_str(&parts[..fixed].join("/"));
    let rest = if parts.is_empty() { "*".to_owned() } else { parts[fixed..].join("/") };
    (start, rest)
}

fn plan(root: &Path, input: &Input) -> Result<(PathBuf, GlobMatcher), ToolError> {
    let root = root.to_owned();
    match std::fs::metadata(&root) {
        Ok(meta) if meta.is_dir() => {}
        Ok(_) => return Err(ToolError::Refused(format!("{} is not a folder", root.display()))),
        Err(source) => return Err(ToolError::Io { path: root, source }),
    }
    let glob = GlobBuilder::new(&parts(input).1).literal_separator(true).build().map_err(|error| {
        ToolError::Input { tool: NAME, path: "pattern".to_owned(), message: error.to_string() }
    })?;
    Ok((root, glob.compile_matcher()))
}

struct Found {
    files: Vec<PathBuf>,
    total: usize,
}

fn search(
    (root, hidden): (&Path, Hidden),
    matcher: &GlobMatcher,
    cancel: &CancelToken,
) -> Result<Found, ToolError> {
    let mut newest: BinaryHeap<Reverse<(SystemTime, PathBuf)>> = BinaryHeap::new();
    let mut total = 0;
    let pattern = matcher.glob().glob();
    let deep = pattern.contains("**");
    // Folders are named where one folder is listed, not where a tree is searched.
    let depth = (!deep).then(|| pattern.split('/').count());
    for entry in (Walk { root, globs: None, types: None, depth, folders: !deep, hidden }).entries() {
        walk::go_on(cancel)?;
        let path = entry.path();
        if !path.strip_prefix(root).is_ok_and(|below| matcher.is_match(below)) {
            continue;
        }
        total += 1;
        let changed =
            entry.metadata().ok().and_then(|meta| meta.modified().ok()).unwrap_or(SystemTime::UNIX_EPOCH);
        // A slash at the end of folders: `join` with nothing.
        let folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        newest.push(Reverse((changed, if folder { path.join("") } else { path.to_owned() })));
        if newest.len() > MOST {
            newest.pop();
        }
    }
    let files = newest.into_sorted_vec().into_iter().map(|Reverse((_, path))| path).collect();
    Ok(Found { files, total })
}

fn output(names: Vec<String>, total: usize) -> ToolOutput {
    let truncated = total > names.len();
    let mut text = if names.is_empty() { "no files found".to_owned() } else { names.join("\n") };
    if truncated {
        text.push_str(&format!("\n[{total} files match, the newest {} are shown]", names.len()));
    }
    let data = json!({"numFiles": names.len(), "filenames": names, "truncated": truncated});
    ToolOutput { text, data, ..ToolOutput::default() }
}

#[cfg(test)]
mod tests;
