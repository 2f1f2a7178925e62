//! The sandbox policies of a process: one for each reach and workspace, shared by all agents of the same rights.

use crate::permission::{Reach, Wall};
use claw_tools::sandbox::{self, SandboxPolicy};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Policies above which those are given up that nobody uses: they are made anew when they are needed.
const MOST: usize = 256;

/// What commands in a lent folder may write beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loan {
    /// Folders (absolute).
    pub writable: Vec<PathBuf>,
    /// What governs in those (absolute).
    pub governing: Vec<PathBuf>,
}

type Kept = HashMap<(Reach, PathBuf), Arc<SandboxPolicy>>;

/// What the sandbox of every agent has in common, and those made so far.
#[derive(Debug, Default)]
pub struct Sandboxes {
    /// More folders that commands may write (absolute).
    pub writable: Vec<PathBuf>,
    /// Whether commands have a network.
    pub network: bool,
    /// The settings switched the sandbox off: then commands are asked.
    pub is_off: bool,
    made: Mutex<Kept>,
    /// Folders that the user added while agents work.
    added: Mutex<Vec<PathBuf>>,
    /// Folders of claw's own state in which agents work.
    lent: Mutex<HashMap<PathBuf, Loan>>,
}

impl Sandboxes {
    /// A template for policies.
    pub fn new(writable: Vec<PathBuf>, network: bool) -> Self {
        Self { writable, network, is_off: false, ..Self::default() }
    }

    /// No sandbox at all.
    pub fn off() -> Self {
        Self { is_off: true, ..Self::default() }
    }

    /// One more folder that agents may write, from their next conversation on.
    pub fn add(&self, folder: PathBuf) {
        let mut added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
        if !added.contains(&folder) {
            added.push(folder);
            drop(added);
            // Those that are in use keep what they are.
            let made = std::mem::take(&mut *self.made.lock().unwrap_or_else(PoisonError::into_inner));
            drop(made);
        }
    }

    /// All folders beside the workspace that may be written.
    pub fn all_writable(&self) -> Vec<PathBuf> {
        let added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
        self.writable.iter().chain(added.iter()).cloned().collect()
    }

    /// The policy for a reach in a workspace. `protected` governs.
    pub fn policy(&self, reach: Reach, workspace: &Path, protected: &[PathBuf]) -> Arc<SandboxPolicy> {
        // Given up after the lock: a policy removes its temporary folder.
        let mut unused = Vec::new();
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (reach, workspace.to_owned());
        if let Some(policy) = made.get(&key) {
            return policy.clone();
        }
        let policy = Arc::new(self.build(reach, workspace, protected));
        if made.len() >= MOST {
            unused.extend(made.extract_if(|_, policy| Arc::strong_count(policy) == 1));
        }
        made.insert(key, policy.clone());
        drop(made);
        drop(unused);
        policy
    }

    /// Removes the temporary folders of all policies, whoever still holds one. Call it once, at the end, when no command
    /// runs any more. Blocks as long as that takes; mostly there is nothing in them.
    pub fn close(&self) {
        let made = std::mem::take(&mut *self.made.lock().unwrap_or_else(PoisonError::into_inner));
        made.into_values().for_each(|policy| policy.close());
    }

    /// From now on agents may work in this folder of claw's own state, until it is taken back.
    pub fn lend(&self, folder: &Path, loan: Loan) {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned(), loan);
    }

    /// The folder goes: what was made for it goes as well.
    pub fn take_back(&self, folder: &Path) {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner).remove(folder);
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let unused: Vec<_> = made.extract_if(|(_, workspace), _| workspace == folder).collect();
        drop(made);
        drop(unused);
    }

    /// What belongs to a folder that is lent.
    pub(crate) fn loan(&self, folder: &Path) -> Option<Loan> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner).get(folder).cloned()
    }

    fn build(&self, reach: Reach, workspace: &Path, protected: &[PathBuf]) -> SandboxPolicy {
        let reach = match reach {
            _ if self.is_off => sandbox::Reach::Full,
            Reach::ReadOnly => sandbox::Reach::ReadOnly,
            Reach::WorkspaceWrite => sandbox::Reach::WorkspaceWrite,
            Reach::DangerFullAccess => sandbox::Reach::Full,
        };
        let network = if self.network || reach == sandbox::Reach::Full {
            sandbox::Network::On
        } else {
            sandbox::Network::Off
        };
        let policy = SandboxPolicy::new(reach, workspace)
            .with_writable(self.all_writable())
            .with_network(network)
            .with_governing(protected.iter().cloned());
        match self.loan(workspace) {
            Some(loan) => policy.with_writable(loan.writable).with_governing(loan.governing).lent(),
            None => policy,
        }
    }
}

/// What the system holds of a policy.
pub(crate) fn wall_of(policy: &SandboxPolicy) -> Wall {
    if policy.status().is_walled() { Wall::Holds } else { Wall::Absent }
}
