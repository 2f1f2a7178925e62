//! A home, a project and an environment that no other test and no user sees.

use crate::machine::{replace_file, run_program};
use crate::provider::{ScriptedProvider, Wire};
use crate::run_folder::RunFolder;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The key that the sandbox hands to claw. No request body, no file of a run, no output may contain it.
pub const CANARY: &str = "sk-canary-7f3a9d51c0e84b26";

/// A temporary home and project. Everything is removed at the end.
#[derive(Debug)]
pub struct Sandbox {
    folder: TempDir,
    env: Vec<(String, String)>,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Sandbox {
    /// An empty home and an empty project, no provider and no key.
    ///
    /// # Panics
    /// When the folders cannot be made.
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("claw-").tempdir().expect("a temporary folder");
        let mut sandbox = Self { folder, env: Vec::new() };
        for (name, part) in [
            ("HOME", "home"),
            ("CLAW_CONFIG_HOME", "home/.claw"),
            ("XDG_CONFIG_HOME", "home/.config"),
            ("XDG_CACHE_HOME", "home/.cache"),
            ("XDG_DATA_HOME", "home/.local/share"),
            ("XDG_STATE_HOME", "home/.local/state"),
            ("XDG_RUNTIME_DIR", "run"),
            ("TMPDIR", "tmp"),
        ] {
            let path = sandbox.folder.path().join(part);
            std::fs::create_dir_all(&path).expect("a folder in the sandbox");
            sandbox = sandbox.env(name, &path.to_string_lossy());
        }
        let private = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(sandbox.folder.path().join("run"), private).expect("a private folder");
        std::fs::create_dir_all(sandbox.project()).expect("a project folder");
        let path = std::env::var("PATH").unwrap_or_default();
        sandbox.env("PATH", &path).env("LANG", "C.UTF-8")
    }

    /// A sandbox whose Anthropic provider is `provider`.
    pub fn anthropic(provider: &ScriptedProvider) -> Self {
        Self::new().with_provider(provider, Wire::Anthropic)
    }

    /// A sandbox whose OpenAI-compatible provider is `provider`.
    pub fn openai(provider: &ScriptedProvider) -> Self {
        Self::new().with_provider(provider, Wire::OpenAi)
    }

    /// Points one wire at the provider and sets its key to the canary.
    pub fn with_provider(self, provider: &ScriptedProvider, wire: Wire) -> Self {
        match wire {
            Wire::Anthropic => {
                self.env("ANTHROPIC_BASE_URL", &provider.anthropic_url()).env("ANTHROPIC_API_KEY", CANARY)
            }
            Wire::OpenAi => self.env("OPENAI_BASE_URL", &provider.openai_url()).env("OPENAI_API_KEY", CANARY),
        }
    }

    /// Sets a variable of the environment that claw gets.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self = self.without_env(name);
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Takes a variable away.
    pub fn without_env(mut self, name: &str) -> Self {
        self.env.retain(|(known, _)| known != name);
        self
    }

    /// Makes the project a git repository with one commit of what is there.
    ///
    /// # Panics
    /// When git is not there.
    pub fn with_git(self) -> Self {
        self.git(&["init", "-q", "-b", "main"]);
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "start"]);
        self
    }

    /// Runs git in the project and returns what it prints.
    ///
    /// # Panics
    /// When it fails.
    pub fn git(&self, args: &[&str]) -> String {
        let who = ["-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"];
        let all: Vec<&str> = who.iter().chain(args).copied().collect();
        run_program(&self.project(), "git", &all).unwrap_or_else(|| panic!("git {args:?} failed"))
    }

    /// All variables that claw gets.
    pub fn environment(&self) -> &[(String, String)] {
        &self.env
    }

    /// The home folder.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The project folder, in which claw runs.
    pub fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// The folder for temporary files that claw gets.
    pub fn temporary(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }

    /// Writes a file of the project, with its folders, and returns its path.
    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.project().join(path);
        replace_file(&path, text);
        path
    }

    /// Writes a file of the home folder, with its folders, and returns its path.
    pub fn write_home(&self, path: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.home().join(path);
        replace_file(&path, text);
        path
    }

    /// Reads a file of the project.
    ///
    /// # Panics
    /// When it cannot be read as text.
    pub fn read(&self, path: &str) -> String {
        let path = self.project().join(path);
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()))
    }

    /// Whether a file or folder of the project exists.
    pub fn has(&self, path: &str) -> bool {
        self.project().join(path).exists()
    }

    /// The folders of all runs, oldest first.
    pub fn runs(&self) -> Vec<RunFolder> {
        let folder = self.project().join(".claw/runs");
        let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok().map(|e| e.path()))
            .filter(|path| path.join("run.json").exists() || path.join("journal.jsonl").exists())
            .collect();
        paths.sort();
        paths.into_iter().map(RunFolder::new).collect()
    }

    /// The folder of the newest run.
    ///
    /// # Panics
    /// When there is none.
    pub fn newest_run(&self) -> RunFolder {
        self.runs().pop().unwrap_or_else(|| panic!("no run below {}", self.project().display()))
    }

    /// Files below home and project that contain the key. Should be none.
    pub fn files_with_canary(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        collect(self.folder.path(), &mut |path| {
            let holds = std::fs::read(path)
                .is_ok_and(|bytes| bytes.windows(CANARY.len()).any(|part| part == CANARY.as_bytes()));
            if holds {
                found.push(path.to_owned());
            }
        });
        found
    }
}

/// Visits every file below a folder; symbolic links are not followed.
pub(crate) fn collect(folder: &Path, visit: &mut impl FnMut(&Path)) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            collect(&entry.path(), visit);
        } else if kind.is_file() {
            visit(&entry.path());
        }
    }
}
