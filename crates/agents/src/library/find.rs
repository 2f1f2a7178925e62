//! Finds the files: from the project, the user, plugins; which of two of one name counts; and again when they change.

use super::agent_file::{AgentFile, Canonical};
use super::command_file::CommandFile;
use super::frontmatter::{Flaw, MOST_BYTES, Severity};
use super::skill_file::SkillFile;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Files of one kind below one root.
const MOST_FILES: usize = 2_000;
/// Folders below each other.
const MOST_DEPTH: usize = 6;
/// Folders of a project's and of a user's files, the one that counts first.
const HOMES: [&str; 2] = [".claw", ".claude"];

/// Who brings a file. Ordered: of two of one name the first counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The repository.
    Project,
    /// The user.
    User,
    /// A plugin, by name.
    Plugin(String),
    /// Comes with claw.
    Bundled,
}

impl Source {
    /// A name as it is called: what a plugin brings has the plugin's name in front.
    pub fn qualified(&self, name: &str) -> String {
        match self {
            Self::Project | Self::User | Self::Bundled => name.to_owned(),
            Self::Plugin(plugin) => format!("{plugin}:{name}"),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Project => f.write_str("project"),
            Self::User => f.write_str("user"),
            Self::Plugin(name) => write!(f, "plugin {name}"),
            Self::Bundled => f.write_str("bundled"),
        }
    }
}

/// A folder that holds `agents/`, `skills/`, `commands/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Who brings it.
    pub source: Source,
    /// The folder.
    pub folder: PathBuf,
}

impl Root {
    /// The roots of a project, from the working folder up to `top`, then the user's. The nearest one first.
    pub fn around(cwd: &Path, top: &Path, config_home: &Path, home: &Path) -> Vec<Self> {
        let root = |source: Source, folder: PathBuf| Self { source, folder };
        let mut roots: Vec<Self> = Vec::new();
        for folder in cwd.ancestors().take_while(|folder| folder.starts_with(top)) {
            // The user's own files are no project's.
            let own = HOMES.map(|name| folder.join(name));
            let own = own.into_iter().filter(|at| folder != home && at != config_home);
            roots.extend(own.map(|at| root(Source::Project, at)));
        }
        roots.push(root(Source::User, config_home.to_owned()));
        let users = HOMES.map(|name| home.join(name)).into_iter().filter(|at| at != config_home);
        roots.extend(users.map(|at| root(Source::User, at)));
        roots
    }
}

/// A thing that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<T> {
    /// Its file.
    pub path: PathBuf,
    /// Who brings it.
    pub source: Source,
    /// What stands in it.
    pub item: T,
    /// The file of the same name that counts in its place.
    pub hidden_by: Option<PathBuf>,
}

/// All files that were found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Library {
    agents: Vec<Entry<AgentFile>>,
    skills: Vec<Entry<SkillFile>>,
    commands: Vec<Entry<CommandFile>>,
    flaws: Vec<(PathBuf, Flaw)>,
    seen: Vec<(PathBuf, SystemTime)>,
}

impl Library {
    /// Reads all files below the roots. `tools`: canonical names.
    pub fn load(roots: &[Root], tools: &dyn Fn(&str) -> Option<&'static str>) -> Self {
        let mut library = Self::default();
        for root in roots {
            library.take(root, tools);
        }
        hide(&mut library.agents, |agent| agent.definition.name.to_lowercase());
        hide(&mut library.skills, |skill| skill.name.to_lowercase());
        hide(&mut library.commands, |command| command.name.to_lowercase());
        library
    }

    fn take(&mut self, root: &Root, tools: Canonical<'_>) {
        let source = &root.source;
        for path in self.files(&root.folder.join("agents"), MOST_DEPTH) {
            let read = self.read(&path, |text| AgentFile::read(&path, text, source, tools));
            self.agents.extend(read.map(|item| entry(&path, source, item)));
        }
        let skills = self.files(&root.folder.join("skills"), MOST_DEPTH);
        for path in skills.into_iter().filter(|path| path.ends_with("SKILL.md")) {
            let read = self.read(&path, |text| SkillFile::read(&path, text, source));
            self.skills.extend(read.map(|item| entry(&path, source, item)));
        }
        let commands = root.folder.join("commands");
        for path in self.files(&commands, MOST_DEPTH) {
            let below = path.strip_prefix(&commands).unwrap_or(&path).to_owned();
            let read = self.read(&path, |text| CommandFile::read(&below, text, source));
            self.commands.extend(read.map(|item| entry(&path, source, item)));
        }
    }

    /// Markdown files below a folder, in the order of their names.
    fn files(&mut self, folder: &Path, depth: usize) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        self.see(folder);
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        let mut files = Vec::new();
        for path in paths {
            let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
            if hidden || files.len() >= MOST_FILES {
                continue;
            }
            if path.is_dir() {
                // A link that leads round comes to an end here.
                if depth > 0 {
                    files.extend(self.files(&path, depth - 1));
                }
            } else if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("md")) {
                files.push(path);
            }
        }
        files.truncate(MOST_FILES);
        files
    }

    fn see(&mut self, path: &Path) {
        if let Ok(changed) = fs::metadata(path).and_then(|meta| meta.modified()) {
            self.seen.push((path.to_owned(), changed));
        }
    }

    fn read<T>(&mut self, path: &Path, make: impl FnOnce(&str) -> (Option<T>, Vec<Flaw>)) -> Option<T> {
        self.see(path);
        match text_of(path) {
            Ok(text) => {
                let (made, flaws) = make(&text);
                self.flaws.extend(flaws.into_iter().map(|flaw| (path.to_owned(), flaw)));
                made
            }
            Err(error) => {
                self.flaws.push((path.to_owned(), Flaw::error(1, format!("cannot be read: {error}"))));
                None
            }
        }
    }

    /// Whether a file or a folder that was read has changed since. New roots are not looked for.
    pub fn is_stale(&self) -> bool {
        self.seen.iter().any(|(path, then)| {
            fs::metadata(path).and_then(|meta| meta.modified()).map_or(true, |now| now != *then)
        })
    }

    /// Agents, those that are hidden too.
    pub fn agents(&self) -> &[Entry<AgentFile>] {
        &self.agents
    }

    /// Skills, those that are hidden too.
    pub fn skills(&self) -> &[Entry<SkillFile>] {
        &self.skills
    }

    /// Slash commands, those that are hidden too.
    pub fn commands(&self) -> &[Entry<CommandFile>] {
        &self.commands
    }

    /// What is wrong with which file.
    pub fn flaws(&self) -> &[(PathBuf, Flaw)] {
        &self.flaws
    }

    /// Whether a file had to be left out.
    pub fn has_errors(&self) -> bool {
        self.flaws.iter().any(|(_, flaw)| flaw.severity == Severity::Error)
    }

    /// The skill of that name, in any case; what a plugin brings also without the plugin's name, where that is plain.
    pub fn skill(&self, name: &str) -> Option<&Entry<SkillFile>> {
        named(&self.skills, name, |skill| &skill.name)
    }

    /// The command of that name, likewise.
    pub fn command(&self, name: &str) -> Option<&Entry<CommandFile>> {
        named(&self.commands, name, |command| &command.name)
    }
}

fn named<'a, T>(all: &'a [Entry<T>], wanted: &str, name: impl Fn(&T) -> &str) -> Option<&'a Entry<T>> {
    let wanted = wanted.trim().trim_start_matches('/');
    let mut open = all.iter().filter(|entry| entry.hidden_by.is_none());
    let whole = open.clone().find(|entry| name(&entry.item).eq_ignore_ascii_case(wanted));
    whole.or_else(|| {
        let is_it = |entry: &&Entry<T>| {
            name(&entry.item).rsplit_once(':').is_some_and(|(_, last)| last.eq_ignore_ascii_case(wanted))
        };
        let found = open.find(is_it)?;
        open.find(is_it).is_none().then_some(found)
    })
}

fn entry<T>(path: &Path, source: &Source, item: T) -> Entry<T> {
    Entry { path: path.to_owned(), source: source.clone(), item, hidden_by: None }
}

/// Roots come in the order of who counts: the first of a name stays.
fn hide<T>(entries: &mut [Entry<T>], name: impl Fn(&T) -> String) {
    let mut first: std::collections::HashMap<String, PathBuf> = std::collections::HashMap::new();
    for entry in entries {
        match first.entry(name(&entry.item)) {
            std::collections::hash_map::Entry::Occupied(known) => entry.hidden_by = Some(known.get().clone()),
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(entry.path.clone());
            }
        }
    }
}

/// A regular file of text, not too long.
fn text_of(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MOST_BYTES {
        return Err(io::Error::other(format!("longer than {MOST_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use claw_kernel::durable::{Mode, Sync, replace};
    use claw_tools::registry::Registry;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }
        fn path(&self, below: &str) -> PathBuf {
            self.0.path().join(below)
        }
        fn write(&self, below: &str, text: &str) {
            let path = self.path(below);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            replace(&path, text.as_bytes(), Mode::Keep, Sync::No).unwrap();
        }
        fn load(&self) -> Library {
            let roots =
                Root::around(&self.path("p/sub"), &self.path("p"), &self.path("h/.claw"), &self.path("h"));
            let registry = Registry::builtin();
            Library::load(&roots, &|name| registry.canonical(name))
        }
    }

    #[test]
    fn the_nearest_project_file_counts_then_the_users() {
        let tree = Tree::new();
        let agent = |text: &str| format!("---\nname: a\ndescription: {text}\n---\n");
        tree.write("p/sub/.claude/agents/a.md", &agent("near"));
        tree.write("p/.claw/agents/deep/a.md", &agent("top"));
        tree.write("h/.claude/agents/a.md", &agent("user"));
        tree.write("h/.claw/agents/b.md", "---\nname: b\ndescription: own\n---\n");
        let library = tree.load();
        let seen: Vec<_> = library
            .agents()
            .iter()
            .map(|entry| (entry.item.definition.description.as_str(), entry.hidden_by.is_some()))
            .collect();
        assert_eq!(seen, [("near", false), ("top", true), ("own", false), ("user", true)]);
        assert_eq!(library.agents()[2].source, Source::User);
    }

    #[test]
    fn one_broken_file_takes_nothing_down() {
        let tree = Tree::new();
        tree.write("p/.claude/agents/bad.md", "---\nname: ../x\n---\n");
        tree.write("p/.claude/agents/good.md", "---\nname: good\ndescription: x\n---\n");
        fs::create_dir_all(tree.path("p/.claude/skills/dir/SKILL.md")).unwrap();
        tree.write("p/.claude/skills/s/SKILL.md", "---\nname: s\ndescription: d\n---\nuse it");
        tree.write("p/.claude/commands/git/commit.md", "Commit.");
        let library = tree.load();
        assert_eq!(library.agents().len(), 1);
        assert_eq!(library.skill("S").unwrap().item.body, "use it");
        assert_eq!(library.command("/git:commit").unwrap().item.description, "Commit.");
        assert_eq!(library.command("commit").unwrap().item.name, "git:commit");
        assert!(library.has_errors());
    }

    #[test]
    fn a_change_is_seen() {
        let tree = Tree::new();
        tree.write("p/.claude/skills/s/SKILL.md", "---\nname: s\ndescription: d\n---\n");
        let library = tree.load();
        assert!(!library.is_stale());
        fs::remove_file(tree.path("p/.claude/skills/s/SKILL.md")).unwrap();
        assert!(library.is_stale());
    }

    #[test]
    fn links_that_lead_round_and_devices_are_no_trouble() {
        let tree = Tree::new();
        tree.write("p/.claude/commands/a.md", "x");
        std::os::unix::fs::symlink(tree.path("p/.claude/commands"), tree.path("p/.claude/commands/loop"))
            .unwrap();
        std::os::unix::fs::symlink("/dev/zero", tree.path("p/.claude/commands/zero.md")).unwrap();
        let library = tree.load();
        assert!(library.command("a").is_some());
        assert!(library.flaws().iter().any(|(_, flaw)| flaw.message.contains("not a regular file")));
    }
}
