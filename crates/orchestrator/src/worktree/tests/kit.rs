//! A repository with a commit, and folders beside it.

use crate::addr::StepAddr;
use crate::plan::model::Base;
use crate::run::Stubs;
use crate::rundir::{NewRun, RunDir, Runs};
use crate::scheduler::Folder;
use crate::worktree::folder::{Closed, Ground, OpenFolder};
use crate::worktree::folders::Folders;
use crate::worktree::gc::GcScope;
use crate::worktree::git::Git;
use crate::worktree::names::name_of;
use crate::worktree::record::RunFolders;
use crate::worktree::repo::Repo;
use claw_agents::permission::NobodyToAsk;
use claw_agents::services::{AgentServices, Sandboxes, Shared};
use claw_kernel::durable::{LogWriter, Mode, Sync, replace};
use claw_kernel::ids::RunId;
use claw_tools::registry::Registry;
use claw_tools::sandbox::SandboxPolicy;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub struct Kit {
    _root: tempfile::TempDir,
    pub top: PathBuf,
    pub worktrees: PathBuf,
    pub repo: Repo,
    pub run: RunDir,
    pub runs: Runs,
}

pub fn put(top: &Path, name: &str, text: &str) {
    let path = top.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    replace(&path, text.as_bytes(), Mode::Keep, Sync::No).unwrap();
}

pub fn read(top: &Path, name: &str) -> String {
    std::fs::read_to_string(top.join(name)).unwrap()
}

fn policy(folder: &Path) -> Arc<SandboxPolicy> {
    Arc::new(SandboxPolicy::full(folder))
}

pub async fn git(folder: &Path, arguments: &[&str]) -> String {
    let who = Git::new(folder, policy(folder))
        .with("GIT_AUTHOR_NAME", "someone")
        .with("GIT_AUTHOR_EMAIL", "someone@example.org")
        .with("GIT_COMMITTER_NAME", "someone")
        .with("GIT_COMMITTER_EMAIL", "someone@example.org")
        .with("GIT_CONFIG_GLOBAL", "/dev/null");
    who.call(arguments).line().await.unwrap()
}

impl Kit {
    pub async fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().canonicalize().unwrap();
        let top = real.join("project");
        std::fs::create_dir(&top).unwrap();
        git(&top, &["init", "-q", "-b", "main"]).await;
        put(&top, "a.txt", "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n");
        put(&top, "deep/b.txt", "b\n");
        put(&top, ".gitignore", "*.log\ntarget/\n");
        git(&top, &["add", "-A"]).await;
        git(&top, &["commit", "-q", "-m", "first"]).await;
        let runs = Runs::of_project(&top, None);
        let run = runs.create(NewRun { name: "w".into(), ..NewRun::default() }).unwrap();
        let repo = Repo::open(&top, policy(&top)).await.unwrap();
        Self { top, worktrees: real.join("state/worktrees"), repo, run, runs, _root: root }
    }

    pub fn id(&self) -> RunId {
        self.run.id()
    }

    pub fn folders(&self) -> RunFolders {
        RunFolders::of(&self.worktrees, self.id())
    }

    pub async fn open(&self, folder: &Folder) -> OpenFolder {
        let folders = self.folders();
        let ground = Ground { repo: &self.repo, folders: &folders, run: self.id() };
        ground.open(folder, false).await.unwrap()
    }

    pub async fn close(&self, folder: &Folder) -> Closed {
        let folders = self.folders();
        let ground = Ground { repo: &self.repo, folders: &folders, run: self.id() };
        let record = folders.load(&name_of(&folder.owner, folder.attempt)).unwrap().unwrap();
        ground.close(&record).await.unwrap()
    }

    /// A branch on which a step did that.
    pub async fn work(&self, owner: &str, act: impl FnOnce(&Path)) -> Folder {
        let folder = folder(owner, Base::ParentHead);
        let open = self.open(&folder).await;
        act(&open.path);
        assert_eq!(self.close(&folder).await.kept, None);
        folder
    }

    pub fn services(&self) -> Folders {
        let agents = AgentServices {
            model: Arc::new(Stubs::parse("{}").unwrap()),
            registry: Registry::builtin().into(),
            ports: Arc::default(),
            redactor: Arc::default(),
            logs: LogWriter::start().unwrap(),
            rules: Arc::default(),
            asker: Arc::new(NobodyToAsk),
            sandboxes: Sandboxes::default(),
            hooks: Arc::new(claw_agents::hooks::Hooks::none()),
            mcp: claw_agents::mcp::McpServers::none(),
            memory: "".into(),
            protected: Vec::new(),
            compaction: claw_agents::compaction::CompactionSettings::default(),
            shared: Shared::default(),
        };
        Folders::new(self.run.clone(), &self.top, &self.worktrees, Arc::new(agents))
    }

    pub fn scope(&self) -> GcScope {
        GcScope { workspace: self.top.clone(), runs: self.runs.clone(), worktrees: self.worktrees.clone() }
    }

    /// Every file of the workspace but those of claw, and git's index, HEAD and branches outside of claw's.
    pub fn picture(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let mut all = BTreeMap::new();
        let walk = ignore::WalkBuilder::new(&self.top).standard_filters(false).build();
        for entry in walk {
            let entry = entry.unwrap();
            let path = entry.path();
            let below = path.strip_prefix(&self.top).unwrap();
            let own = [
                ".claw",
                ".git/objects",
                ".git/worktrees",
                ".git/refs/heads/claw",
                ".git/logs/refs/heads/claw",
            ];
            if own.iter().any(|own| below.starts_with(own)) || path.is_dir() && !path.is_symlink() {
                continue;
            }
            let meta = path.symlink_metadata().unwrap();
            let bytes = match std::fs::read_link(path) {
                Ok(target) => target.into_os_string().into_encoded_bytes(),
                Err(_) => std::fs::read(path).unwrap(),
            };
            all.insert(below.to_owned(), (meta.permissions().mode(), bytes));
        }
        all
    }
}

pub fn addr(text: &str) -> StepAddr {
    text.parse().unwrap()
}

pub fn folder(owner: &str, base: Base) -> Folder {
    Folder { owner: addr(owner), attempt: 1, base, goes_on_from: None }
}
