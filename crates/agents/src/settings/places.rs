//! Where settings lie, and in which order they count.

use super::origin::Scope;
use super::walk::Kind;
use std::path::{Path, PathBuf};

/// The administrator's policy.
const MANAGED: &str = "/etc/claw/settings.json";

/// The folders that matter.
#[derive(Clone, Debug)]
pub struct Places {
    /// The user's home.
    pub home: PathBuf,
    /// Where the user's settings of claw lie.
    pub config_home: PathBuf,
    /// Top of the repository; the working folder where there is none. Absolute.
    pub project: PathBuf,
    /// The working folder, absolute.
    pub cwd: PathBuf,
    managed: PathBuf,
}

/// A file that may exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedFile {
    /// Where.
    pub path: PathBuf,
    /// Whose word it is.
    pub scope: Scope,
    /// What is read of it.
    pub kind: Kind,
}

/// Of the files of one folder, low to high.
const PROJECT: [(&str, Kind); 5] = [
    (".mcp.json", Kind::Servers),
    (".claude.json", Kind::Shared),
    (".claw.json", Kind::Settings),
    (".claude/settings.json", Kind::Settings),
    (".claw/settings.json", Kind::Settings),
];
const LOCAL: [&str; 2] = [".claude/settings.local.json", ".claw/settings.local.json"];

impl Places {
    /// `cwd`: absolute, resolved.
    pub fn new(home: &Path, config_home: &Path, cwd: &Path) -> Self {
        let top = cwd.ancestors().find(|above| above.join(".git").exists()).unwrap_or(cwd);
        Self {
            home: home.to_owned(),
            config_home: cwd.join(config_home),
            project: top.to_owned(),
            cwd: cwd.to_owned(),
            managed: MANAGED.into(),
        }
    }

    /// With another file for the policy: for tests.
    #[must_use]
    pub fn with_managed(mut self, file: &Path) -> Self {
        self.managed = file.to_owned();
        self
    }

    /// The user's own file of claw.
    pub fn user_file(&self) -> PathBuf {
        self.config_home.join("settings.json")
    }

    /// The user's own file in this project.
    pub fn local_file(&self) -> PathBuf {
        self.project.join(LOCAL[1])
    }

    /// The project's file.
    pub fn project_file(&self) -> PathBuf {
        self.project.join(PROJECT[4].0)
    }

    /// Files below flags and variables, low to high. A file that is the user's is not the project's as well.
    pub fn files(&self) -> Vec<PlacedFile> {
        let user = [
            (self.home.join(".claude.json"), Kind::Shared),
            (self.home.join(".claude/settings.json"), Kind::Settings),
            (self.user_file(), Kind::Settings),
        ];
        let mut files: Vec<PlacedFile> =
            user.into_iter().map(|(path, kind)| PlacedFile { path, scope: Scope::User, kind }).collect();
        let mut folders: Vec<&Path> =
            self.cwd.ancestors().take_while(|above| above.starts_with(&self.project)).collect();
        folders.reverse();
        let project = folders.iter().flat_map(|folder| {
            PROJECT.map(|(name, kind)| PlacedFile { path: folder.join(name), scope: Scope::Project, kind })
        });
        let local = folders.iter().flat_map(|folder| {
            LOCAL.map(|name| PlacedFile {
                path: folder.join(name),
                scope: Scope::Local,
                kind: Kind::Settings,
            })
        });
        for file in project.chain(local) {
            if !files.iter().any(|known| known.path == file.path) {
                files.push(file);
            }
        }
        files
    }

    /// The policy.
    pub fn managed(&self) -> PlacedFile {
        PlacedFile { path: self.managed.clone(), scope: Scope::Managed, kind: Kind::Settings }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use claw_kernel::durable::private_dir;

    #[test]
    fn files_go_from_the_user_down_the_repository_to_the_local_ones() {
        let top = tempfile::tempdir().unwrap();
        let repo = top.path().join("repo");
        private_dir(&repo.join(".git")).unwrap();
        private_dir(&repo.join("sub")).unwrap();
        let places = Places::new(top.path(), &top.path().join(".claw"), &repo.join("sub"));
        let names: Vec<String> = places
            .files()
            .iter()
            .map(|file| file.path.strip_prefix(top.path()).unwrap().display().to_string())
            .collect();
        assert_eq!(names[..3], [".claude.json", ".claude/settings.json", ".claw/settings.json"]);
        assert_eq!(names[3], "repo/.mcp.json");
        assert_eq!(names[7], "repo/.claw/settings.json");
        assert_eq!(names[12], "repo/sub/.claw/settings.json");
        assert_eq!(names.last().unwrap(), "repo/sub/.claw/settings.local.json");
        assert_eq!(names.len(), 17);
    }

    #[test]
    fn at_home_the_users_files_are_not_the_projects() {
        let top = tempfile::tempdir().unwrap();
        let places = Places::new(top.path(), &top.path().join(".claw"), top.path());
        let users = places.files().iter().filter(|file| file.scope == Scope::User).count();
        let project: Vec<PathBuf> = places
            .files()
            .into_iter()
            .filter(|file| file.scope == Scope::Project)
            .map(|file| file.path)
            .collect();
        assert_eq!((users, project), (3, vec![top.path().join(".mcp.json"), top.path().join(".claw.json")]));
    }
}
