//! `grep_search`: what is in files, by ripgrep's own libraries.

use super::walk::{self, Walk};
use crate::cut;
use crate::error::ToolError;
use crate::files::kind;
use crate::input;
use crate::output::ToolOutput;
use crate::tool::{Effect, Hidden, Tool, ToolContext};
use claw_kernel::cancel::CancelToken;
use claw_kernel::redact::Redactor;
use claw_kernel::tasks;
use futures_util::future::BoxFuture;
use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const NAME: &str = "grep_search";
/// Lines or files that are given when no limit is asked for.
const DEFAULT_LIMIT: usize = 250;
const MOST_LIMIT: usize = 5_000;
/// Characters of all lines together, and of one.
const MOST_TEXT: usize = 30_000;
const MOST_LINE: usize = 500;
/// Bytes of one file held while lines are looked for across line ends, or of one line.
const HEAP: usize = 32 * 1024 * 1024;

/// Searches in files.
#[derive(Debug)]
pub struct GrepSearch;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OutputMode {
    /// Matching lines.
    Content,
    /// Names of files that match.
    #[default]
    FilesWithMatches,
    /// Matching lines of each file, counted.
    Count,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
struct Input {
    /// A regular expression (Rust's).
    #[serde(alias = "query", alias = "regex")]
    pattern: String,
    /// File or folder; the working folder if left out.
    #[serde(default)]
    path: Option<String>,
    /// Only files of this name pattern, such as `*.rs`.
    #[serde(default, alias = "include")]
    glob: Option<String>,
    /// Only files of this type, such as `rust`, `py`, `js`.
    #[serde(default, rename = "type", alias = "file_type")]
    file_type: Option<String>,
    /// files_with_matches if left out.
    #[serde(default, alias = "outputMode")]
    output_mode: OutputMode,
    /// Lines shown after each match.
    #[serde(default, rename = "-A", alias = "after")]
    after: Option<usize>,
    /// Lines shown before each match.
    #[serde(default, rename = "-B", alias = "before")]
    before: Option<usize>,
    /// Lines shown around each match.
    #[serde(default, rename = "-C", alias = "context")]
    context: Option<usize>,
    /// Line numbers; true if left out.
    #[serde(default, rename = "-n")]
    numbers: Option<bool>,
    /// Any case.
    #[serde(default, rename = "-i", alias = "case_insensitive")]
    any_case: bool,
    /// Matches may go over line ends.
    #[serde(default)]
    multiline: bool,
    /// Lines or files at most; 250 if left out.
    #[serde(default, alias = "headLimit")]
    head_limit: Option<usize>,
    /// Lines or files passed over first.
    #[serde(default)]
    offset: usize,
}

impl Tool for GrepSearch {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["grep", "search", "ripgrep"]
    }

    fn description(&self) -> String {
        "Searches in files by regular expression. Ignored files (.gitignore), binary files and .git are left out."
            .to_owned()
    }

    fn input_schema(&self) -> Value {
        input::schema::<Input>()
    }

    fn effect(&self, ctx: &ToolContext, input: &Value) -> Result<Effect, ToolError> {
        let input: Input = input::parse(NAME, input)?;
        Ok(Effect { reads: vec![root(ctx, &input)], ..Effect::default() })
    }

    fn call<'a>(
        &'a self,
        ctx: &'a ToolContext,
        judged: &'a Effect,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let input: Input = input::parse(NAME, &input)?;
            let plan = Plan::of(judged.read(NAME)?, input)?;
            let cancel = ctx.cancel.clone();
            let current = ctx.folder.current();
            let redactor = Arc::clone(&ctx.redactor);
            let hidden = ctx.hidden.clone();
            let work = tasks::blocking(NAME, move || plan.search(&current, redactor, hidden, &cancel));
            tokio::select! {
                done = work => done.map_err(|error| ToolError::Panicked(error.to_string()))?,
                () = ctx.cancel.cancelled() => Err(ToolError::Cancelled),
            }
        })
    }
}

fn root(ctx: &ToolContext, input: &Input) -> PathBuf {
    ctx.folder.resolve(input.path.as_deref().filter(|path| !path.is_empty()).unwrap_or("."))
}

fn wrong(path: &str, error: impl ToString) -> ToolError {
    ToolError::Input { tool: NAME, path: path.to_owned(), message: error.to_string() }
}

struct Plan {
    root: PathBuf,
    single: bool,
    matcher: RegexMatcher,
    searcher: Searcher,
    globs: Option<Override>,
    types: Option<Types>,
    input: Input,
}

impl Plan {
    fn of(root: &Path, input: Input) -> Result<Self, ToolError> {
        let root = root.to_owned();
        let meta = std::fs::metadata(&root).map_err(|source| ToolError::Io { path: root.clone(), source })?;
        let matcher = RegexMatcherBuilder::new()
            .case_insensitive(input.any_case)
            .multi_line(true)
            .dot_matches_new_line(input.multiline)
            .crlf(!input.multiline)
            .build(&input.pattern)
            .map_err(|error| wrong("pattern", error))?;
        let context = |side: Option<usize>| match input.output_mode {
            OutputMode::Content => side.or(input.context).unwrap_or(0).min(100),
            OutputMode::FilesWithMatches | OutputMode::Count => 0,
        };
        let searcher = SearcherBuilder::new()
            .line_number(true)
            .line_terminator(if input.multiline {
                LineTerminator::byte(b'\n')
            } else {
                LineTerminator::crlf()
            })
            .multi_line(input.multiline)
            .before_context(context(input.before))
            .after_context(context(input.after))
            .heap_limit(Some(HEAP))
            .binary_detection(BinaryDetection::quit(0))
            .build();
        let globs = input.glob.as_deref().map(|glob| globs(&root, glob)).transpose()?;
        let types = input.file_type.as_deref().map(types).transpose()?;
        Ok(Self { single: !meta.is_dir(), root, matcher, searcher, globs, types, input })
    }

    fn search(
        mut self,
        current: &Path,
        redactor: Arc<Redactor>,
        hidden: Hidden,
        cancel: &CancelToken,
    ) -> Result<ToolOutput, ToolError> {
        let limit = self.input.head_limit.filter(|limit| *limit > 0).unwrap_or(DEFAULT_LIMIT).min(MOST_LIMIT);
        let mut found = Found::new(&self.input, limit, redactor);
        if self.single {
            let root = self.root.clone();
            self.file(&root, current, &mut found)?;
            return Ok(found.output());
        }
        let (globs, types) = (self.globs.take(), self.types.take());
        let root = self.root.clone();
        for entry in (Walk { root: &root, globs, types, depth: None, folders: false, hidden }).entries() {
            walk::go_on(cancel)?;
            // What cannot be read is passed over and told: it may have gone meanwhile.
            if let Err(error) = self.file(entry.path(), current, &mut found) {
                found.failed += 1;
                found.first_failure.get_or_insert_with(|| error.to_string());
            }
            if found.is_full() {
                break;
            }
        }
        Ok(found.output())
    }

    fn file(&mut self, path: &Path, current: &Path, found: &mut Found) -> Result<(), ToolError> {
        let (file, _) = kind::open_regular(path)?;
        let shown = path.strip_prefix(current).unwrap_or(path).to_string_lossy().into_owned();
        let mut sink = InFile { found, shown: &shown, matches: 0 };
        let searched = self.searcher.search_file(&self.matcher, &file, &mut sink);
        let matches = sink.matches;
        found.end_of_file(&shown, matches);
        searched.map_err(|source| ToolError::Io { path: path.to_owned(), source })
    }
}

fn globs(root: &Path, glob: &str) -> Result<Override, ToolError> {
    let mut globs = OverrideBuilder::new(root);
    globs.add(glob).map_err(|error| wrong("glob", error))?;
    globs.build().map_err(|error| wrong("glob", error))
}

fn types(name: &str) -> Result<Types, ToolError> {
    let mut types = TypesBuilder::new();
    types.add_defaults();
    types.select(name);
    types.build().map_err(|error| wrong("type", error))
}

/// What was found so far, bounded.
struct Found {
    redactor: Arc<Redactor>,
    mode: OutputMode,
    numbers: bool,
    skip: usize,
    limit: usize,
    lines: Vec<String>,
    size: usize,
    /// Lines or files that match, shown or not.
    passed: usize,
    matches: u64,
    files: Vec<String>,
    full: bool,
    failed: usize,
    first_failure: Option<String>,
}

impl Found {
    fn new(input: &Input, limit: usize, redactor: Arc<Redactor>) -> Self {
        Self {
            redactor,
            mode: input.output_mode,
            numbers: input.numbers.unwrap_or(true),
            skip: input.offset,
            limit,
            lines: Vec::new(),
            size: 0,
            passed: 0,
            matches: 0,
            files: Vec::new(),
            full: false,
            failed: 0,
            first_failure: None,
        }
    }

    fn is_full(&self) -> bool {
        self.full
    }

    /// Takes a line of the answer; says whether there may be more.
    fn push(&mut self, line: impl FnOnce() -> String) -> bool {
        self.passed += 1;
        if self.passed <= self.skip {
            return true;
        }
        if self.lines.len() == self.limit || self.size >= MOST_TEXT {
            self.full = true;
            return false;
        }
        let line = line();
        self.size += line.chars().count() + 1;
        self.lines.push(line);
        true
    }

    fn end_of_file(&mut self, shown: &str, matches: u64) {
        if matches == 0 {
            return;
        }
        self.matches += matches;
        self.files.push(shown.to_owned());
        match self.mode {
            OutputMode::Content => {}
            OutputMode::FilesWithMatches => {
                self.push(|| shown.to_owned());
            }
            OutputMode::Count => {
                self.push(|| format!("{shown}:{matches}"));
            }
        }
    }

    fn output(mut self) -> ToolOutput {
        let content = self.lines.join("\n");
        let mut text = if self.lines.is_empty() { "no matches".to_owned() } else { content.clone() };
        if self.full {
            let next = self.skip + self.lines.len();
            text.push_str(&format!("\n[cut; go on with offset {next}, or narrow the search]"));
        }
        if let Some(why) = &self.first_failure {
            text.push_str(&format!("\n[{} file(s) could not be searched; the first: {why}]", self.failed));
        }
        self.files.truncate(MOST_LIMIT);
        let data = json!({
            "mode": self.mode,
            "numMatches": self.matches,
            "numFiles": self.files.len(),
            "filenames": self.files,
            "content": content,
            "truncated": self.full,
        });
        ToolOutput { text, data, ..ToolOutput::default() }
    }
}

struct InFile<'f> {
    found: &'f mut Found,
    shown: &'f str,
    matches: u64,
}

impl InFile<'_> {
    fn lines(&mut self, number: Option<u64>, bytes: &[u8], sign: char) -> bool {
        let text = String::from_utf8_lossy(bytes);
        for (at, line) in text.lines().enumerate() {
            let (shown, numbers, redactor) =
                (self.shown, self.found.numbers, Arc::clone(&self.found.redactor));
            let more = self.found.push(|| {
                let line = cut::head(&redactor.apply(line), MOST_LINE);
                match number {
                    Some(number) if numbers => format!("{shown}{sign}{}{sign}{line}", number + at as u64),
                    Some(_) | None => format!("{shown}{sign}{line}"),
                }
            });
            if !more {
                return false;
            }
        }
        true
    }
}

impl Sink for InFile<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.matches += 1;
        match self.found.mode {
            OutputMode::Content => Ok(self.lines(found.line_number(), found.bytes(), ':')),
            OutputMode::FilesWithMatches => Ok(false),
            OutputMode::Count => Ok(true),
        }
    }

    fn context(&mut self, _searcher: &Searcher, line: &SinkContext<'_>) -> Result<bool, io::Error> {
        Ok(self.lines(line.line_number(), line.bytes(), '-'))
    }
}

#[cfg(test)]
mod tests;
