//! Which tools of a server the user has seen: a list that is another one later is asked about before it is used.

use super::offer::OfferedTool;
use claw_kernel::digest::Digest;
use claw_kernel::durable::{self, Mode, Sync};
use claw_kernel::tasks;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of the file.
const MOST: u64 = 4 << 20;
const VERSION: u32 = 1;

/// The file: for each server (by what it is, not by its name) the tools that were seen, each with its digest.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Seen {
    version: u32,
    servers: BTreeMap<String, BTreeMap<String, Digest>>,
}

/// What the user has seen. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Approvals {
    file: Option<PathBuf>,
    /// Writers in this process take turns.
    turn: Arc<Mutex<()>>,
}

impl Approvals {
    /// Kept in this file; its folder is made.
    pub fn at(file: impl Into<PathBuf>) -> Self {
        Self { file: Some(file.into()), turn: Arc::default() }
    }

    /// What is different from what was seen, one line for each tool; empty: nothing, or the server was never seen, and
    /// now it is.
    pub(super) async fn changes(&self, identity: Digest, tools: &[OfferedTool]) -> Vec<String> {
        let Some(file) = self.file.clone() else { return Vec::new() };
        let (turn, tools) = (self.turn.clone(), by_name(tools));
        let work = move || {
            let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
            let mut seen = read(&file);
            match seen.servers.get(&identity.hex()) {
                Some(known) => differences(known, &tools),
                None => {
                    seen.servers.insert(identity.hex(), tools);
                    keep(&file, &seen);
                    Vec::new()
                }
            }
        };
        tasks::blocking("mcp approvals", work).await.unwrap_or_default()
    }

    /// These are seen now.
    pub(super) async fn approve(&self, identity: Digest, tools: &[OfferedTool]) {
        let Some(file) = self.file.clone() else { return };
        let (turn, tools) = (self.turn.clone(), by_name(tools));
        let work = move || {
            let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
            let mut seen = read(&file);
            seen.servers.insert(identity.hex(), tools);
            keep(&file, &seen);
        };
        let _ = tasks::blocking("mcp approvals", work).await;
    }
}

fn by_name(tools: &[OfferedTool]) -> BTreeMap<String, Digest> {
    tools.iter().map(|tool| (tool.raw.clone(), tool.digest)).collect()
}

fn differences(known: &BTreeMap<String, Digest>, now: &BTreeMap<String, Digest>) -> Vec<String> {
    let shown = |name: &str| claw_kernel::visible::visible_line(name).into_owned();
    let mut lines = Vec::new();
    for (name, digest) in now {
        match known.get(name) {
            None => lines.push(format!("new: {}", shown(name))),
            Some(before) if before != digest => lines.push(format!("changed: {}", shown(name))),
            Some(_) => {}
        }
    }
    // One that is gone can do nothing.
    lines
}

fn read(file: &Path) -> Seen {
    let read = || -> io::Result<Seen> {
        let meta = std::fs::metadata(file)?;
        if !meta.is_file() || meta.len() > MOST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        serde_json::from_slice(&std::fs::read(file)?).map_err(io::Error::other)
    };
    match read() {
        Ok(seen) if seen.version == VERSION => seen,
        Ok(_) | Err(_) => Seen { version: VERSION, servers: BTreeMap::new() },
    }
}

fn keep(file: &Path, seen: &Seen) {
    let write = || -> io::Result<()> {
        if let Some(folder) = file.parent() {
            durable::private_dir(folder)?;
        }
        durable::replace(file, &serde_json::to_vec(seen)?, Mode::Private, Sync::No)
    };
    if let Err(error) = write() {
        tracing::warn!(file = %file.display(), %error, "what was seen of a server's tools cannot be kept");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, says: &str) -> OfferedTool {
        OfferedTool {
            name: "mcp__s__x",
            raw: name.into(),
            description: says.into(),
            schema: serde_json::Value::Null,
            is_read_only: false,
            digest: Digest::of(says),
        }
    }

    #[tokio::test]
    async fn what_changed_since_it_was_seen_is_told_until_it_is_approved() {
        let folder = tempfile::tempdir().unwrap();
        let approvals = Approvals::at(folder.path().join("a/seen.json"));
        let server = Digest::of("server");
        assert_eq!(approvals.changes(server, &[tool("a", "1"), tool("b", "1")]).await, Vec::<String>::new());
        let later = [tool("a", "2"), tool("c", "1")];
        let again = Approvals::at(folder.path().join("a/seen.json"));
        assert_eq!(again.changes(server, &later).await, ["changed: a", "new: c"]);
        again.approve(server, &later).await;
        assert_eq!(approvals.changes(server, &later).await, Vec::<String>::new());
        assert_eq!(approvals.changes(server, &[tool("a", "2")]).await, Vec::<String>::new());
    }
}
