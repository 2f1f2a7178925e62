//! The files of a plan: the user's own and the nested ones, read and checked key by key.

use super::surroundings::Surroundings;
use super::{inputs, shape};
use crate::workflow::file::{NodeFile, Section, WorkflowFile};
use crate::workflow::keys::{self, NodeKind};
use crate::workflow::problem::{Code, Problem};
use crate::workflow::reader;
use crate::workflow::spans::Source;
use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

/// Bodies and nested files lie at most so many levels deep.
const LEVELS: usize = 16;
/// Nested files in all, each counted as often as it is called.
const NESTED_FILES: usize = 256;

/// One file. Called twice, it is here twice: each call has inputs of its own.
#[derive(Debug)]
pub(super) struct FileUnit {
    pub source: Source,
    pub folder: PathBuf,
    pub written: WorkflowFile,
    /// Files that its nodes call: where the node's name stands, and the file's place.
    pub called: HashMap<usize, usize>,
    /// The calling file; always stands before this one.
    pub caller: Option<usize>,
    level: usize,
}

/// All files, and what is wrong with how they call each other (E112, a problem of the graph).
#[derive(Debug)]
pub(super) struct Loaded {
    pub files: Vec<FileUnit>,
    pub problems: Vec<Problem>,
}

/// A node that calls a file.
struct Call {
    at: usize,
    path: PathBuf,
    level: usize,
    problem: Problem,
}

/// Reads the nested files too. The whole stage of keys.
///
/// # Errors
/// E100 to E109 of all files.
pub(super) fn load(file: &Path, text: &str, surroundings: &dyn Surroundings) -> Result<Loaded, Vec<Problem>> {
    let mut loader = Loader { surroundings, files: Vec::new(), keys: Vec::new(), graph: Vec::new() };
    loader.take(file, text, None, 0);
    let mut at = 0;
    while at < loader.files.len() {
        loader.calls_of(at);
        at += 1;
    }
    if loader.keys.is_empty() {
        return Ok(Loaded { files: loader.files, problems: loader.graph });
    }
    super::from_source::in_order(&mut loader.keys);
    Err(loader.keys)
}

struct Loader<'a> {
    surroundings: &'a dyn Surroundings,
    files: Vec<FileUnit>,
    keys: Vec<Problem>,
    graph: Vec<Problem>,
}

impl Loader<'_> {
    /// Takes a file in, unless it is not even TOML. Its place.
    fn take(&mut self, file: &Path, text: &str, caller: Option<usize>, level: usize) -> Option<usize> {
        let source = Source::new(file, text);
        let (mut written, problems) = match reader::read_what_is_good(&source) {
            Ok(read) => read,
            Err(problems) => {
                self.keys.extend(problems);
                return None;
            }
        };
        fill_defaults(&mut written);
        self.keys.extend(checked(&source, &written, problems));
        let folder = file.parent().unwrap_or(Path::new("")).to_owned();
        self.files.push(FileUnit { source, folder, written, called: HashMap::new(), caller, level });
        Some(self.files.len() - 1)
    }

    fn calls_of(&mut self, at: usize) {
        let (mut calls, mut deep) = (Vec::new(), Vec::new());
        let unit = &self.files[at];
        walk(unit, &unit.written.nodes, unit.level, &mut calls, &mut deep);
        self.keys.extend(deep);
        for call in calls {
            let mut chain = self.chain(at);
            if chain.contains(&call.path) {
                chain.push(call.path);
                let names: Vec<String> = chain.iter().map(|path| path.display().to_string()).collect();
                let message = format!("the file calls itself: {}", names.join(" -> "));
                self.graph.push(Problem { code: Code::E112, message, ..call.problem });
                continue;
            }
            if self.files.len() > NESTED_FILES {
                let message = format!("there are more than {NESTED_FILES} nested files");
                self.keys.push(Problem { code: Code::E103, message, ..call.problem });
                return;
            }
            match self.surroundings.read_text(&call.path) {
                Ok(text) => {
                    if let Some(place) = self.take(&call.path, &text, Some(at), call.level) {
                        self.files[at].called.insert(call.at, place);
                    }
                }
                Err(error) => {
                    let message = format!("`{}` cannot be read: {error}", call.path.display());
                    self.keys.push(Problem { message, ..call.problem });
                }
            }
        }
    }

    /// The file and those that call it, the first caller first.
    fn chain(&self, at: usize) -> Vec<PathBuf> {
        let mut chain = Vec::new();
        let mut next = Some(at);
        while let Some(file) = next {
            chain.push(lexical(&self.files[file].source.file));
            next = self.files[file].caller;
        }
        chain.reverse();
        chain
    }
}

/// Finds the calls, in bodies too. The depth is bounded here, and before by the reader of TOML.
fn walk(unit: &FileUnit, nodes: &[NodeFile], level: usize, calls: &mut Vec<Call>, deep: &mut Vec<Problem>) {
    for node in nodes {
        let path = |key: &str| format!("node.{}.{key}", node.path());
        let inner = matches!(node.kind, NodeKind::Group | NodeKind::Workflow);
        if inner && level + 1 >= LEVELS {
            let message = format!("bodies and nested files lie at most {LEVELS} levels deep");
            deep.push(unit.source.problem(Code::E103, node.span.clone(), path("kind"), message));
            continue;
        }
        if node.kind == NodeKind::Workflow
            && let Some(value) = node.keys.get("file")
            && let Some(name) = value.text()
        {
            let problem = unit.source.problem(Code::E109, value.span.clone(), path("file"), String::new());
            let file = lexical(&unit.folder.join(name));
            calls.push(Call { at: node.span.start, path: file, level: level + 1, problem });
        }
        walk(unit, &node.body, level + 1, calls, deep);
    }
}

/// Without `.` and with `..` taken back where that is possible.
fn lexical(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(out.components().next_back(), Some(Component::Normal(_))) => {
                out.pop();
            }
            Component::ParentDir | Component::Normal(_) | Component::RootDir | Component::Prefix(_) => {
                out.push(part);
            }
        }
    }
    out
}

/// What the table cannot say, behind what it said. Only where the table had nothing to say itself.
fn checked(source: &Source, file: &WorkflowFile, mut problems: Vec<Problem>) -> Vec<Problem> {
    let bad: HashSet<String> = problems.iter().map(|problem| node_of(&problem.path)).collect();
    if !problems.iter().any(|problem| problem.path.starts_with("inputs")) {
        problems.extend(inputs::declarations(source, file));
    }
    if let Some(budget) = file.top.section("budget").filter(|_| !bad.contains("budget")) {
        problems.extend(shape::budget(source, budget, "budget"));
    }
    if problems.iter().any(|problem| problem.path.starts_with("defaults")) {
        return problems;
    }
    let mut left: Vec<&NodeFile> = file.nodes.iter().rev().collect();
    while let Some(node) = left.pop() {
        if bad.is_empty() || !bad.contains(&format!("node.{}", node.path())) {
            problems.extend(shape::check(source, node));
        }
        left.extend(node.body.iter().rev());
    }
    problems
}

/// The node of a key's path (`node.fix.body.edit` of `node.fix.body.edit.prompt`), or the table of the top level.
fn node_of(path: &str) -> String {
    let parts: Vec<&str> = path.split('.').collect();
    if parts.first() != Some(&"node") {
        return parts.first().copied().unwrap_or_default().to_owned();
    }
    let mut end = 2;
    while parts.get(end) == Some(&"body") && parts.len() > end + 1 {
        end += 2;
    }
    parts[..end.min(parts.len())].join(".")
}

/// Lends the keys of `defaults` to the nodes whose kind has them, in bodies too.
fn fill_defaults(file: &mut WorkflowFile) {
    let Some(defaults) = file.top.section("defaults").filter(|defaults| !defaults.entries.is_empty()) else {
        return;
    };
    fn fill(nodes: &mut [NodeFile], defaults: &Section) {
        for node in nodes {
            lend(node, defaults);
            fill(&mut node.body, defaults);
        }
    }
    fill(&mut file.nodes, defaults);
}

fn lend(node: &mut NodeFile, defaults: &Section) {
    let own = &node.keys;
    // A node that says where its prompt is does not want the default one beside it.
    let prompted = own.get("prompt").is_some() || own.get("prompt_file").is_some();
    let agent_merge = own.text("strategy") == Some("agent");
    let kind = node.kind;
    node.keys.fill_from(defaults, |key| {
        let of_agent = keys::own(NodeKind::Agent).iter().any(|known| known.name == key.name);
        let fits = keys::of(kind).any(|known| known.name == key.name)
            && (kind != NodeKind::Merge || agent_merge || !of_agent);
        let taken = match key.name {
            "prompt" | "prompt_file" => !prompted,
            // These speak of attempts, which a group and a gate do not have.
            "retry" | "timeout" => !matches!(kind, NodeKind::Group | NodeKind::Workflow | NodeKind::Gate),
            "isolation" | "base" => shape::has_folder(kind, agent_merge),
            _ => true,
        };
        fits && taken
    });
}
