//! The sandbox policies of a process: one for each reach and workspace, shared by all agents of the same rights.

use crate::definition::AgentDefinition;
use crate::permission::{Reach, RuleSet, Wall};
use crate::settings;
use claw_tools::sandbox::{self, Cover, HostRule, Hosts, InvalidHost, Most, Network, SandboxPolicy};
use std::collections::HashMap;
use std::ffi::OsString;
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

/// Caches that most build tools use, below the home folder.
const CACHES: [&str; 10] =
    [".cache", ".cargo", ".gradle", ".ivy2", ".m2", ".npm", ".nuget", ".pnpm-store", ".yarn", "go/pkg"];

/// What all sandboxes have in common beside reach and workspace: from the settings. Paths are absolute.
#[derive(Clone, Debug)]
pub struct Outfit {
    /// The most that is used of what the system has.
    pub most: Most,
    /// The network of commands.
    pub network: Network,
    /// Folders that stay visible whatever covers them.
    pub visible: Vec<PathBuf>,
    /// Folders that commands write without a trace.
    pub caches: Vec<PathBuf>,
    /// What commands do not see, beside the usual.
    pub masked: Vec<Cover>,
    /// Files that these deny to read are masked, too.
    pub rules: Arc<RuleSet>,
    /// Variables that commands get beside the usual.
    pub environment: Vec<(OsString, OsString)>,
}

impl Default for Outfit {
    fn default() -> Self {
        Self {
            most: Most::Full,
            network: Network::Off,
            visible: Vec::new(),
            caches: Vec::new(),
            masked: Vec::new(),
            rules: Arc::default(),
            environment: Vec::new(),
        }
    }
}

type Kept = HashMap<(Reach, PathBuf), Arc<SandboxPolicy>>;

/// What the sandbox of every agent has in common, and those made so far.
#[derive(Debug, Default)]
pub struct Sandboxes {
    /// More folders that commands may write (absolute).
    pub writable: Vec<PathBuf>,
    /// The rest.
    pub outfit: Outfit,
    /// The settings switched the sandbox off: then commands are asked.
    pub is_off: bool,
    made: Mutex<Kept>,
    /// Of agents that work on copies.
    copies: Mutex<Vec<Arc<SandboxPolicy>>>,
    /// Folders that the user added while agents work.
    added: Mutex<Vec<PathBuf>>,
    /// Folders of claw's own state in which agents work.
    lent: Mutex<HashMap<PathBuf, Loan>>,
}

impl Sandboxes {
    /// A template for policies.
    pub fn new(writable: Vec<PathBuf>, network: bool) -> Self {
        let network = if network { Network::On } else { Network::Off };
        Self { writable, outfit: Outfit { network, ..Outfit::default() }, ..Self::default() }
    }

    /// As the settings say. `read`: variables of this process.
    ///
    /// # Errors
    /// A host of the network's list is none.
    pub fn of(
        section: &settings::SandboxSection,
        home: &Path,
        read: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, InvalidHost> {
        let is_off = section.enabled == Some(false)
            || section.filesystem == Some(settings::Filesystem::Off)
            || section.kind.as_deref() == Some("none");
        let network = match &section.network {
            None | Some(settings::Network::Off) => Network::Off,
            Some(settings::Network::On) => Network::On,
            Some(settings::Network::AllowList(hosts)) => {
                let rules: Result<_, _> = hosts.iter().cloned().map(HostRule::try_from).collect();
                Network::AllowList(Hosts::new(rules?))
            }
        };
        let caches = match section.caches.as_slice() {
            [] => CACHES.iter().map(|cache| home.join(cache)).collect(),
            listed => listed.to_vec(),
        };
        let writable = match section.filesystem {
            Some(settings::Filesystem::AllowList) => section.allowed_mounts.clone(),
            Some(settings::Filesystem::WorkspaceOnly | settings::Filesystem::Off) | None => Vec::new(),
        };
        let outfit = Outfit {
            most: if section.kind.as_deref() == Some("write-wall") { Most::WriteWall } else { Most::Full },
            network,
            visible: section.allowed_mounts.clone(),
            caches,
            masked: Vec::new(),
            rules: Arc::default(),
            environment: section.env.iter().filter_map(|name| Some((name.into(), read(name)?))).collect(),
        };
        Ok(Self { writable, outfit, is_off, ..Self::default() })
    }

    /// The policy for an agent: one that only checks works on a copy of its own.
    pub(crate) fn policy_for(
        &self,
        agent: &AgentDefinition,
        reach: Reach,
        workspace: &Path,
        protected: &[PathBuf],
    ) -> Arc<SandboxPolicy> {
        if reach == Reach::ReadOnly && agent.works_on_a_copy() && !self.is_off {
            return self.copying(workspace, protected);
        }
        self.policy(reach, workspace, protected)
    }

    /// A policy of one's own, whose commands write a copy of the workspace that is thrown away with it.
    pub fn copying(&self, workspace: &Path, protected: &[PathBuf]) -> Arc<SandboxPolicy> {
        let policy = Arc::new(self.build(Reach::ReadOnly, workspace, protected).with_private_copy());
        let mut copies = self.copies.lock().unwrap_or_else(PoisonError::into_inner);
        let unused: Vec<_> = copies.extract_if(.., |copy| Arc::strong_count(copy) == 1).collect();
        copies.push(Arc::clone(&policy));
        drop(copies);
        // Given up after the lock: a policy removes its temporary folders.
        drop(unused);
        policy
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
        let copies = std::mem::take(&mut *self.copies.lock().unwrap_or_else(PoisonError::into_inner));
        made.into_values().chain(copies).for_each(|policy| policy.close());
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
        if reach == sandbox::Reach::Full {
            return SandboxPolicy::full(workspace).with_governing(protected.iter().cloned());
        }
        let policy = SandboxPolicy::new(reach, workspace)
            .with_writable(self.all_writable())
            .with_most(self.outfit.most)
            .with_network(self.outfit.network.clone())
            .with_visible(self.outfit.visible.iter().cloned())
            .with_caches(self.outfit.caches.iter().cloned())
            .with_masked(self.outfit.masked.iter().cloned())
            .with_masked(denied(&self.outfit.rules, workspace))
            .with_environment(self.outfit.environment.iter().cloned())
            .with_governing(protected.iter().cloned());
        match self.loan(workspace) {
            Some(loan) => policy.with_writable(loan.writable).with_governing(loan.governing).lent(),
            None => policy,
        }
    }
}

/// What rules deny to read. A pattern that cannot be searched for covers all of the folder that it starts in.
fn denied(rules: &RuleSet, workspace: &Path) -> Vec<Cover> {
    let cover = |root: &Path, rest: &str| {
        let pattern = root.join(rest);
        let pattern = if rest.is_empty() { None } else { pattern.to_str().map(Cover::pattern) };
        pattern.and_then(Result::ok).unwrap_or_else(|| Cover::path(root))
    };
    rules.denied_reads(workspace).iter().map(|denied| cover(&denied.root, &denied.rest)).collect()
}

/// What the system holds of a policy.
pub(crate) fn wall_of(policy: &SandboxPolicy) -> Wall {
    if policy.status().is_walled() { Wall::Holds } else { Wall::Absent }
}
