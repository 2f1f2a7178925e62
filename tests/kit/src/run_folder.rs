//! Reads the folder of a run as a user would: manifests, journal lines, outputs.

use crate::sandbox::collect;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One folder below `.claw/runs/`.
#[derive(Clone, Debug)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// A run folder at this place.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The id of the run.
    pub fn id(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// A file of the run as text.
    ///
    /// # Panics
    /// When it cannot be read.
    pub fn read(&self, path: &str) -> String {
        let path = self.path.join(path);
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()))
    }

    /// All manifests by the name of their attempt (`explore=security.1`).
    ///
    /// # Panics
    /// When one is not whole JSON.
    pub fn manifests(&self) -> BTreeMap<String, Value> {
        let nodes = self.path.join("nodes");
        let mut found = BTreeMap::new();
        collect(&nodes, &mut |path| {
            if path.file_name().is_some_and(|name| name == "manifest.json") {
                let text = std::fs::read_to_string(path).expect("a manifest can be read");
                let value = serde_json::from_str(&text)
                    .unwrap_or_else(|e| panic!("{} is torn: {e}\n{text}", path.display()));
                let name = path.parent().and_then(|p| p.strip_prefix(&nodes).ok());
                found.insert(name.unwrap_or(path).to_string_lossy().into_owned(), value);
            }
        });
        found
    }

    /// The manifest of the last attempt of a step.
    ///
    /// # Panics
    /// When there is none.
    pub fn manifest(&self, step: &str) -> Value {
        let attempts =
            |name: &str| -> Option<u64> { name.strip_prefix(step)?.strip_prefix('.')?.parse().ok() };
        let manifests = self.manifests();
        let last =
            manifests.iter().filter_map(|(name, value)| Some((attempts(name)?, value))).max_by_key(|x| x.0);
        match last {
            Some((_, value)) => value.clone(),
            None => panic!("no manifest of {step} among {:?}", manifests.keys()),
        }
    }

    /// The status of each attempt.
    pub fn statuses(&self) -> BTreeMap<String, String> {
        let text = |value: Value| value["status"].as_str().unwrap_or("(none)").to_owned();
        self.manifests().into_iter().map(|(name, value)| (name, text(value))).collect()
    }

    /// The records of the journal. A torn last line is left out.
    ///
    /// # Panics
    /// When a line before the last is no JSON.
    pub fn journal(&self) -> Vec<Value> {
        let text = std::fs::read(self.path.join("journal.jsonl")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let record = |(n, line): (usize, &str)| {
            serde_json::from_str(line).unwrap_or_else(|e| panic!("journal line {}: {e}: {line}", n + 1))
        };
        whole.lines().enumerate().map(record).collect()
    }

    /// The journal's records of one event.
    pub fn events(&self, event: &str) -> Vec<Value> {
        self.journal().into_iter().filter(|record| record["event"] == event).collect()
    }

    /// The report for people.
    pub fn report(&self) -> String {
        self.read("report.md")
    }
}
