//! Reads all settings files: bounded, regular files only, never through a link that leads out of the repository.

use super::diagnostic::{Diagnostic, Severity};
use super::gate::{Gated, gate};
use super::leaf::Leaf;
use super::merged::Merged;
use super::node::{Node, Place, Source};
use super::origin::Scope;
use super::places::{PlacedFile, Places};
use super::text::parse;
use super::typed::Settings;
use super::walk::{Kind, walk};
use crate::trust::TrustItem;
use claw_tools::error::ToolError;
use claw_tools::files::kind::open_regular;
use claw_tools::files::paths;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// Bytes of a settings file.
const MOST: u64 = 1 << 20;
/// Bytes of a file that another program keeps its state in.
const MOST_SHARED: u64 = 64 << 20;

/// What is said beside the files.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// `--settings`: a file, or JSON that begins with `{`.
    pub flag: Option<String>,
    /// `model` by a variable: its name and value.
    pub model: Option<(&'static str, String)>,
}

/// A file as it was when it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    path: PathBuf,
    seen: Option<(SystemTime, u64)>,
}

/// All files, read and checked; what counts of them is decided with [`Loaded::settle`].
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Where they lie.
    pub places: Places,
    /// What is wrong, in the order of the files.
    pub diagnostics: Vec<Diagnostic>,
    gated: Vec<Gated>,
    stamps: Vec<Stamp>,
    beside: Beside,
}

/// What a look at the files found.
#[derive(Debug)]
pub enum Reloaded {
    /// Nothing has changed.
    Same,
    /// They have changed, and can be used.
    Fresh(Box<Loaded>),
    /// They have changed, and cannot be used: what was read before stays in force.
    Broken(Vec<Diagnostic>),
}

impl Loaded {
    /// Reads all files. What is wrong with them is in `diagnostics`.
    pub fn read(places: Places, beside: Beside) -> Self {
        let mut reading =
            Reading { places: &places, leaves: Vec::new(), diagnostics: Vec::new(), stamps: Vec::new() };
        for file in places.files() {
            reading.file(&file);
        }
        if let Some((variable, model)) = &beside.model {
            let source = Source { scope: Scope::Environment, file: None, says: (*variable).to_owned() };
            reading.said(&Arc::new(source), &serde_json::json!({ "model": model }));
        }
        if let Some(flag) = &beside.flag {
            reading.flag(flag);
        }
        reading.file(&places.managed());
        let Reading { leaves, mut diagnostics, stamps, .. } = reading;
        let (gated, refused) = gate(leaves);
        diagnostics.extend(refused);
        Self { places, diagnostics, gated, stamps, beside }
    }

    /// The files that were there, low to high.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.stamps.iter().filter(|stamp| stamp.seen.is_some()).map(|stamp| stamp.path.as_path())
    }

    /// What keeps claw from starting.
    pub fn errors(&self) -> Vec<Diagnostic> {
        self.of(Severity::Error)
    }

    /// What is told and does not count.
    pub fn warnings(&self) -> Vec<Diagnostic> {
        self.of(Severity::Warning)
    }

    fn of(&self, severity: Severity) -> Vec<Diagnostic> {
        self.diagnostics.iter().filter(|one| one.severity == severity).cloned().collect()
    }

    /// What the repository brings and only a decision of the user lets count, in the order of the files.
    pub fn items(&self) -> Vec<&TrustItem> {
        self.gated.iter().filter_map(|gated| gated.item.as_ref()).collect()
    }

    /// What counts. `trusted`: the user's decision on an item.
    pub fn settle(&self, trusted: &dyn Fn(&TrustItem) -> bool) -> Settings {
        let merged = Merged::new(&self.gated, trusted);
        Settings::new(&merged, &self.places)
    }

    /// Every value with its place and what it shadows.
    pub fn merged(&self, trusted: &dyn Fn(&TrustItem) -> bool) -> Merged {
        Merged::new(&self.gated, trusted)
    }

    /// Looks at the files again. A few calls of the system where nothing has changed.
    pub fn reload_if_changed(&self) -> Reloaded {
        if self.stamps.iter().all(|stamp| stamp.seen == seen(&stamp.path)) {
            return Reloaded::Same;
        }
        let fresh = Self::read(self.places.clone(), self.beside.clone());
        let errors = fresh.errors();
        if errors.is_empty() { Reloaded::Fresh(Box::new(fresh)) } else { Reloaded::Broken(errors) }
    }
}

fn seen(path: &Path) -> Option<(SystemTime, u64)> {
    let meta = path.metadata().ok()?;
    Some((meta.modified().ok()?, meta.len()))
}

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error("it is a link out of the repository, to {}", .0.display())]
    LeadsOut(PathBuf),
    #[error(transparent)]
    Refused(#[from] ToolError),
    #[error("it cannot be read: {0}")]
    Io(#[from] std::io::Error),
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
    #[error("it is no UTF-8 text")]
    NotText,
}

struct Reading<'a> {
    places: &'a Places,
    leaves: Vec<Leaf>,
    diagnostics: Vec<Diagnostic>,
    stamps: Vec<Stamp>,
}

impl Reading<'_> {
    fn file(&mut self, file: &PlacedFile) {
        self.stamps.push(Stamp { path: file.path.clone(), seen: seen(&file.path) });
        let source =
            Arc::new(Source { scope: file.scope, file: Some(file.path.clone()), says: String::new() });
        match self.text(file) {
            Ok(Some(text)) => self.parsed(&text, &source, file.kind),
            Ok(None) => {}
            Err(why) => self.wrong(&source, file.kind, why.to_string()),
        }
    }

    /// A file that cannot be used stops the start; one of servers alone governs nothing, and only its servers are missing.
    fn wrong(&mut self, source: &Arc<Source>, kind: Kind, message: String) {
        let origin = Place::whole(source).origin("");
        let problem = Diagnostic::new(severity_in(kind), origin, message);
        self.diagnostics.push(problem.with_help("repair it or move it away"));
    }

    fn parsed(&mut self, text: &str, source: &Arc<Source>, kind: Kind) {
        match parse(text, source) {
            Ok(node) => self.walked(&node, kind),
            Err(problem) => self.diagnostics.push(Diagnostic { severity: severity_in(kind), ..problem }),
        }
    }

    fn walked(&mut self, node: &Node, kind: Kind) {
        let walked = walk(node, kind);
        self.leaves.extend(walked.leaves);
        self.diagnostics.extend(walked.diagnostics);
    }

    fn said(&mut self, source: &Arc<Source>, json: &serde_json::Value) {
        self.walked(&Node::said(source, json), Kind::Settings);
    }

    fn flag(&mut self, flag: &str) {
        if flag.trim_start().starts_with('{') {
            let source = Source { scope: Scope::Flag, file: None, says: "--settings".to_owned() };
            self.parsed(flag, &Arc::new(source), Kind::Settings);
            return;
        }
        let path = self.places.cwd.join(flag);
        let file = PlacedFile { path: path.clone(), scope: Scope::Flag, kind: Kind::Settings };
        let is_there = path.symlink_metadata().is_ok();
        self.file(&file);
        if !is_there {
            let source = Source { scope: Scope::Flag, file: Some(path), says: String::new() };
            self.wrong(&Arc::new(source), Kind::Settings, "--settings: there is no such file".to_owned());
        }
    }

    /// The text of a file; `None` where there is none.
    fn text(&self, file: &PlacedFile) -> Result<Option<String>, Unusable> {
        use std::io::ErrorKind::{NotADirectory, NotFound};
        match file.path.symlink_metadata() {
            Ok(_) => {}
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let resolved = paths::resolve(&file.path);
        if file.scope.is_of_repository() && !resolved.starts_with(paths::resolve(&self.places.project)) {
            return Err(Unusable::LeadsOut(resolved));
        }
        let (opened, _) = open_regular(&resolved)?;
        let most = if file.kind == Kind::Shared { MOST_SHARED } else { MOST };
        let mut bytes = Vec::new();
        opened.take(most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            return Err(Unusable::TooLarge(most));
        }
        String::from_utf8(bytes).map(Some).map_err(|_| Unusable::NotText)
    }
}

fn severity_in(kind: Kind) -> Severity {
    match kind {
        Kind::Settings | Kind::Shared => Severity::Error,
        Kind::Servers => Severity::Warning,
    }
}
